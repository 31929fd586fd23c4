package screens

import "github.com/gdamore/tcell/v2"

// Probe lets a test wait until a running screen is idle and look at it inside the event loop. Idle is counted, not
// guessed: ProbeKey, posted after other input, comes out when all of that was handled, and the look that is asked for
// then runs after every event the room had published by that time was applied and drawn.
type Probe struct {
	passed chan struct{}
	looks  chan look
	ended  chan struct{}
}

type look struct {
	at   func(tcell.Screen)
	done chan struct{}
}

// ProbeKey is the key that marks the end of the input so far. No terminal sends it.
const ProbeKey = tcell.KeyF64

// NewProbe returns a probe for one Run.
func NewProbe() *Probe {
	return &Probe{passed: make(chan struct{}), looks: make(chan look), ended: make(chan struct{})}
}

// Settle waits until the program has handled all input before the ProbeKey that post sends, then calls at inside the
// event loop, when all events published so far are on the screen. It returns false when the run has ended instead.
func (p *Probe) Settle(post func(), at func(tcell.Screen)) bool {
	post()
	select {
	case <-p.passed:
	case <-p.ended:
		return false
	}
	l := look{at, make(chan struct{})}
	select {
	case p.looks <- l:
	case <-p.ended:
		return false
	}
	select {
	case <-l.done:
		return true
	case <-p.ended:
		return false
	}
}

// pass is called in the event loop when the ProbeKey arrives.
func (p *Probe) pass() {
	select {
	case p.passed <- struct{}{}:
	case <-p.ended:
	}
}
