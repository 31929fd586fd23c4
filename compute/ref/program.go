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

func (p *program) check(f op.Frame, in []float32, out *op.Out) error {
	switch {
	case f.N < 1 || f.N > op.MaxCols:
		return fmt.Errorf("%w: %d columns, 1 to %d allowed", errArgument, f.N, op.MaxCols)
	case f.Pos < 0 || f.Pos > p.capacity-f.N:
		return fmt.Errorf("%w: positions %d to %d, room for %d", errArgument, f.Pos, f.Pos+f.N-1, p.capacity)
	case f.HeadFrom < 0 || f.HeadFrom > f.N:
		return fmt.Errorf("%w: head from column %d of %d", errArgument, f.HeadFrom, f.N)
	case p.logits != nil && !p.hasTail && f.HeadFrom != 0:
		return fmt.Errorf("%w: head from column %d in a program without a tail", errArgument, f.HeadFrom)
	case p.in != nil && len(in) != f.N*p.in.width:
		return fmt.Errorf("%w: %d input values, want %d x %d", errArgument, len(in), f.N, p.in.width)
	case p.in == nil && in != nil:
		return fmt.Errorf("%w: input values for a program without input", errArgument)
	case p.table != nil && len(f.Tokens) != f.N:
		return fmt.Errorf("%w: %d tokens for %d columns", errArgument, len(f.Tokens), f.N)
	}
	if p.table != nil {
		for _, id := range f.Tokens {
			if id < 0 || int(id) >= p.table.spec.Rows {
				return fmt.Errorf("%w: token %d, the table has %d", errArgument, id, p.table.spec.Rows)
			}
		}
	}
	if out == nil {
		return nil
	}
	return p.checkOut(f, out)
}

func (p *program) checkOut(f op.Frame, out *op.Out) error {
	if out.Hidden != nil && (p.hidden == nil || len(out.Hidden) != f.N*p.hidden.width) {
		return fmt.Errorf("%w: room for %d hidden values", errArgument, len(out.Hidden))
	}
	if out.Logits == nil && out.K == 0 {
		return nil
	}
	if p.logits == nil {
		return fmt.Errorf("%w: the program has no logits", errArgument)
	}
	heads := f.N - f.HeadFrom
	if out.Logits != nil && len(out.Logits) != heads*p.logits.width {
		return fmt.Errorf("%w: room for %d logits, want %d x %d", errArgument, len(out.Logits), heads, p.logits.width)
	}
	if out.K == 0 {
		return nil
	}
	if most := min(op.MaxTopK, p.logits.width); out.K < 0 || out.K > most {
		return fmt.Errorf("%w: %d candidates, 1 to %d allowed", errArgument, out.K, most)
	}
	if len(out.Top) != heads {
		return fmt.Errorf("%w: candidates for %d columns, want %d", errArgument, len(out.Top), heads)
	}
	for _, t := range out.Top {
		if cap(t) < out.K {
			return fmt.Errorf("%w: room for %d candidates of %d", errArgument, cap(t), out.K)
		}
	}
	return nil
}

// Close ends the use of the program; memory belongs to who made it.
func (p *program) Close() { p.closed.Store(true) }

// unlimited is the capacity of a program without caches and tables.
const unlimited = math.MaxInt32
