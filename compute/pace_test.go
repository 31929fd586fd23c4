package compute_test

import (
	"testing"
	"time"

	"pooled/compute"
)

// steps plays n tokens with made-up costs: a step without proposals takes plain, a fifth more behind one with proposals, which
// takes plain times cost and yields what yield says. It returns the time over that of n plain steps, and how many steps had proposals.
func steps(p *compute.Pace, n int, cost float64, yield func(token int) int) (ratio float64, proposed int) {
	const plain = 10 * time.Millisecond
	var all time.Duration
	tokens, before := 0, false
	for tokens < n {
		took, got, try := plain, 1, p.Propose()
		if before && !try {
			took += plain / 5
		}
		before = try
		if try {
			took, got = time.Duration(cost*float64(plain)), yield(tokens)
			proposed++
		}
		p.Note(try, got, took)
		all, tokens = all+took, tokens+got
	}
	return all.Seconds() / (plain.Seconds() * float64(tokens)), proposed
}

func none(int) int { return 1 }

// Where nothing is ever accepted, an answer of 128 tokens takes at most 3% longer, whatever a step with proposals costs.
func TestPaceLosesLittle(t *testing.T) {
	for _, cost := range []float64{1.05, 1.3, 1.6, 2, 2.9} {
		for _, n := range []int{128, 400, 2000} {
			ratio, proposed := steps(&compute.Pace{}, n, cost, none)
			if ratio > 1.03 {
				t.Errorf("steps of %g times the time, %d tokens: %.3f times the time", cost, n, ratio)
			}
			if proposed == 0 && cost < 2 {
				t.Errorf("steps of %g times the time, %d tokens: nothing was tried", cost, n)
			}
		}
	}
}

// Where proposals are accepted, every step but the first has them.
func TestPaceUsesWhatPays(t *testing.T) {
	ratio, proposed := steps(&compute.Pace{}, 300, 1.6, func(int) int { return 3 })
	if proposed < 98 || ratio > 0.55 {
		t.Errorf("%d of about 100 steps had proposals, %.2f times the time", proposed, ratio)
	}
}

// A text that begins to repeat itself is noticed, and so is one that stops.
func TestPaceFollowsTheText(t *testing.T) {
	p := &compute.Pace{}
	steps(p, 200, 1.5, none)
	if ratio, _ := steps(p, 400, 1.5, func(int) int { return 4 }); ratio > 0.55 {
		t.Errorf("after a text without a pattern, one with: %.2f times the time", ratio)
	}
	if ratio, _ := steps(p, 400, 1.5, none); ratio > 1.06 { // what was won, and a share of all
		t.Errorf("after a text with a pattern, one without: %.3f times the time", ratio)
	}
}
