package ref

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"pooled/compute/op"
)

// entry is a recorded step; tail says that it works on the head columns.
type entry struct {
	step step
	tail bool
}

// program implements op.Program.
type program struct {
	dev      *device
	name     string
	cols     int // that a run may have
	steps    []entry
	uses     []checker // memory that must be open
	crew     *crew
	table    *weight      // of Embed, or nil
	in       *buffer      // of Input, or nil
	hidden   *buffer      // of Output, or nil
	logits   *buffer      // of Logits, or nil
	states   []*recurrent // that the program moves on
	hasTail  bool
	capacity int // positions that all caches and tables have
	closed   atomic.Bool
	r        run
}

type checker interface{ check(*device) error }

// run is what the steps of one Run share. pos and cols belong to the present step.
type run struct {
	frame     op.Frame
	in        []float32
	out       *op.Out
	pos, cols int
	notFinite atomic.Bool
}

// look notes a value that is NaN or infinite.
func (r *run) look(v []float32) {
	for _, x := range v {
		if x-x != 0 {
			r.notFinite.Store(true)
			return
		}
	}
}

// ProgramBytes is 0: scratch memory belongs to the process, not to the device.
func (d *device) ProgramBytes(op.Sketch) int64 { return 0 }

// Run checks the frame, then computes the steps in order. On op.ErrNotFinite out is filled all the same.
func (p *program) Run(ctx context.Context, f op.Frame, in []float32, out *op.Out) error {
	if err := p.check(f, in, out); err != nil {
		return fmt.Errorf("ref: run %s: %w", p.name, err)
	}
	select {
	case p.dev.turn <- struct{}{}:
		defer p.done()
	case <-ctx.Done():
		return fmt.Errorf("ref: run %s: %w", p.name, ctx.Err())
	}
	if err := p.open(); err != nil {
		return fmt.Errorf("ref: run %s: %w", p.name, err)
	}
	p.r.frame, p.r.in, p.r.out = f, in, out
	p.r.notFinite.Store(false)
	for _, st := range p.states {
		st.kept = 0
		if f.Spec {
			st.kept = f.N
		}
	}
	p.crew.start()
	defer p.crew.stop()
	for _, e := range p.steps {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("ref: run %s: %w", p.name, err)
		}
		p.r.pos, p.r.cols = f.Pos, f.N
		if e.tail {
			p.r.pos, p.r.cols = f.Pos+f.HeadFrom, f.N-f.HeadFrom
		}
		p.crew.compute(e.step, &p.r)
	}
	if p.r.notFinite.Load() {
		return fmt.Errorf("ref: run %s: position %d: %w", p.name, f.Pos, op.ErrNotFinite)
	}
	return nil
}

// done gives the turn back and forgets the caller's memory.
func (p *program) done() {
	p.r.in, p.r.out, p.r.frame.Tokens = nil, nil, nil
	p.r.frame.Allow = nil
	<-p.dev.turn
}

// open fails when the program, the device or memory that the program uses was closed.
func (p *program) open() error {
	if p.closed.Load() || p.dev.closed.Load() {
		return errClosed
	}
	for _, m := range p.uses {
		if err := m.check(p.dev); err != nil {
			return err
		}
	}
	return nil
}

// ports says what the program takes and gives.
func (p *program) ports() op.Ports {
	o := op.Ports{Cols: p.cols, Tail: p.hasTail, Capacity: p.capacity}
	if p.table != nil {
		o.Table = p.table.spec.Rows
	}
	if p.in != nil {
		o.In = p.in.width
	}
	if p.hidden != nil {
		o.Hidden = p.hidden.width
	}
	if p.logits != nil {
		o.Logits = p.logits.width
	}
	return o
}

// check refuses a run whose arguments don't fit the program. Nothing is touched before.
func (p *program) check(f op.Frame, in []float32, out *op.Out) error {
	return p.ports().Check(f, in, out)
}

// Close ends the use of the program; memory belongs to who made it.
func (p *program) Close() { p.closed.Store(true) }

// unlimited is the capacity of a program without caches and tables.
const unlimited = math.MaxInt32
