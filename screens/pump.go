package screens

import (
	"context"
	"errors"
	"time"

	"pooled/session"
	"pooled/widgets"
)

// collect is how long events are collected before they are shown together.
const collect = 50 * time.Millisecond

// pump carries events from the room to the event loop and ends the application. It is the only goroutine that queues
// updates, so after it has returned nothing waits for the event loop.
type pump struct {
	r        *runner
	batch    []session.Event
	flushed  time.Time
	due      *time.Timer // flush; running only when armed
	armed    bool
	show     *time.Timer // a frame that was held back
	deadline <-chan time.Time
	leaving  bool
	over     bool // the room has ended
}

// stopped returns a timer that is not running.
func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// pump runs until the run is to end, then stops the application.
func (r *runner) pump(ctx context.Context) {
	p := &pump{r: r, due: stopped(), show: stopped()}
	defer p.due.Stop()
	defer p.show.Stop()
	p.post(func() {}) // comes back once the event loop runs
	r.guard(func() { p.loop(ctx) })
	r.app.Stop()
}

func (p *pump) loop(ctx context.Context) {
	r := p.r
	tick := time.NewTicker(time.Second) // times on the screen
	defer tick.Stop()
	ready, gone := r.sub.Ready(), ctx.Done()
	for {
		select {
		case <-ready:
			p.drain()
			if p.over {
				ready = nil
			}
		case n := <-r.natives:
			p.batch = append(p.batch, n)
			p.arm()
		case <-p.due.C:
			p.flush()
		case <-tick.C:
			p.flush()
		case wait := <-r.term.later:
			p.show.Reset(wait)
		case <-p.show.C:
			p.post(func() {})
		case l := <-r.o.Probe.looks:
			p.drain()
			p.flush()
			p.post(func() { l.at(r.term) })
			close(l.done)
		case <-r.leaves:
			p.leave()
		case <-gone:
			gone = nil
			if !p.leaving {
				r.leave()
				p.leave()
			}
		case code := <-r.exits:
			r.exit = code
			return
		case err := <-r.term.failed:
			r.exit, r.err = session.ExitFailed, err
			return
		case <-p.deadline:
			return
		}
		if p.over {
			p.flush()
			p.finish()
			return
		}
	}
}

// leave starts the wait for the room's end.
func (p *pump) leave() {
	if !p.leaving {
		p.leaving = true
		p.deadline = time.After(leaveTime)
	}
}

// drain takes all events that wait.
func (p *pump) drain() {
	now, cancel := context.WithCancel(context.Background())
	cancel() // Next never waits
	for {
		e, err := p.r.sub.Next(now)
		switch {
		case errors.Is(err, context.Canceled):
			return
		case err != nil:
			p.over = true
			return
		}
		p.batch = append(p.batch, e.Event)
		p.arm()
		if ev, ok := e.Event.(session.RoomClosed); ok {
			p.over = true
			if !p.r.left.Load() {
				p.r.reason = string(widgets.Safe(ev.Reason, widgets.MaxReason))
			}
			return
		}
	}
}

// arm makes sure a flush comes: at once when the last one is long ago, else when its time is up.
func (p *pump) arm() {
	if !p.armed {
		p.armed = true
		p.due.Reset(max(0, collect-time.Since(p.flushed)))
	}
}

// flush shows the newest state together with the events collected.
func (p *pump) flush() {
	p.due.Stop()
	p.armed, p.flushed = false, time.Now()
	events := p.batch
	p.batch = nil
	st := p.r.o.View.Snapshot()
	p.post(func() { p.r.page.Apply(st, events) })
}

// post runs f in the event loop and draws. It returns when that is done.
func (p *pump) post(f func()) {
	p.r.app.QueueUpdateDraw(func() { p.r.guard(f) })
}

// finish sets what Run returns after the room has ended.
func (p *pump) finish() {
	r := p.r
	problem := r.o.View.Snapshot().Problem
	if r.left.Load() || problem == nil {
		return
	}
	r.exit, r.err = problem.Exit, problem
	if r.exit == session.ExitOK {
		r.exit = session.ExitFailed
	}
}
