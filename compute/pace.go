package compute

import "time"

// Pace decides for each step whether proposing tokens pays, so that an answer that follows no pattern takes hardly longer than
// without proposals (spec engine.md 6.2). It keeps an account of the time that steps with proposals have cost beyond that of
// their tokens one by one: what proposals win is put in, and they are tried while the account holds, as a small
// share of all time is put in too. The zero value is ready. It serves one answer and one goroutine.
type Pace struct {
	plain  float64 // seconds of a step without proposals, a moving average
	plains int     // such steps so far
	extra  float64 // seconds that a step lost lately where nothing was accepted; 0: not known
	lost   float64 // seconds in all, below 0 when proposals have won
	total  float64 // seconds of all steps
	after  bool    // the last step had proposals
}

const (
	paceFirst  = 2     // steps without proposals before the first ones: the first run of a program is slower
	paceShare  = 0.015 // of all time may be lost
	paceGrace  = 1     // steps that may be lost before
	paceCredit = 4     // steps' time that gains are worth at most, so that a text that changes is noticed
	paceKeep   = 0.8   // weight of the old average
)

// Propose says whether the next step should have proposals.
func (p *Pace) Propose() bool {
	if p.plains < paceFirst {
		return false
	}
	extra := p.extra
	if extra == 0 {
		extra = p.plain
	}
	return p.lost+extra <= paceShare*p.total+paceGrace*p.plain
}

// Note says what a step yielded and how long it took. A step with proposals has yielded one token at least, or the answer is over.
func (p *Pace) Note(proposed bool, tokens int, took time.Duration) {
	seconds, after := took.Seconds(), p.after
	p.total, p.after = p.total+seconds, proposed
	lost := seconds - float64(tokens)*p.plain
	switch {
	case !proposed && p.plains < paceFirst:
		p.plain, p.plains = seconds, p.plains+1
		return
	case !proposed && !after:
		p.plain = paceKeep*p.plain + (1-paceKeep)*seconds
		return
	case !proposed: // what was recorded ahead for it was of no use: that counts for the step before
		p.extra += max(lost, 0)
	case tokens <= 1:
		p.extra = max(lost, 0)
	}
	p.lost = max(p.lost+lost, -paceCredit*p.plain)
}
