package ref

import (
	"sync"
	"sync/atomic"

	"pooled/compute/op"
)

// step is one recorded operation. Its parts are independent of each other and may be computed in any order.
type step interface {
	parts(cols int) int
	do(part int, r *run, s *scratch)
}

// scratch is one worker's own memory; it grows to what the largest operation needs and stays.
type scratch struct {
	row    []float32 // a decoded row of a weight, or a head of a cached row
	scores []float64 // one head's attention scores, by position
	sums   []float64 // one head's weighted values

	query, key []float64      // one head's, normalized
	top        []op.Candidate // a column's chosen experts
}

// grow returns s with length n, reallocated only when it is too short.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// crew computes steps with a bounded number of goroutines: the caller and its helpers. Helpers live from start to stop.
type crew struct {
	wake    chan bool // true: there is work; false: go home
	scratch []scratch // [0] is the caller's
	alive   sync.WaitGroup

	// The present step, written before helpers are woken.
	step  step
	run   *run
	total int64
	next  atomic.Int64
	busy  sync.WaitGroup // wake-ups not yet answered
}

func newCrew(workers int) *crew {
	return &crew{wake: make(chan bool, workers), scratch: make([]scratch, workers)}
}

// start starts the helpers; stop ends them and waits.
func (c *crew) start() {
	for i := 1; i < len(c.scratch); i++ {
		c.alive.Add(1)
		go c.help(&c.scratch[i])
	}
}

func (c *crew) stop() {
	for range len(c.scratch) - 1 {
		c.wake <- false
	}
	c.alive.Wait()
	c.step, c.run = nil, nil
}

func (c *crew) help(s *scratch) {
	defer c.alive.Done()
	for <-c.wake {
		c.work(s)
		c.busy.Done()
	}
}

// work takes parts of the present step until none is left.
func (c *crew) work(s *scratch) {
	for {
		i := c.next.Add(1) - 1
		if i >= c.total {
			return
		}
		c.step.do(int(i), c.run, s)
	}
}

// compute runs all parts of a step and returns when they are done.
func (c *crew) compute(st step, r *run) {
	n := st.parts(r.cols)
	helpers := min(len(c.scratch), n) - 1
	if helpers < 1 {
		for i := range n {
			st.do(i, r, &c.scratch[0])
		}
		return
	}
	c.step, c.run, c.total = st, r, int64(n)
	c.next.Store(0)
	c.busy.Add(helpers)
	for range helpers {
		c.wake <- true
	}
	c.work(&c.scratch[0])
	for { // take back the wake-ups that nobody answered yet: nothing is left to do
		select {
		case <-c.wake:
			c.busy.Done()
			continue
		default:
		}
		break
	}
	c.busy.Wait()
}
