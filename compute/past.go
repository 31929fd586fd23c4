package compute

import (
	"context"
	"errors"
	"fmt"

	"pooled/compute/op"
)

// past is what a shard remembers and where it stands.
//
// Keys and values can be written again at any position. A recurrent state can't: it stands at one position, the next to
// be read, and knows no way back but an undo, a slot, or the start.
type past struct {
	dev       op.Device
	caches    []op.KV
	states    []op.Recurrent
	memory    op.Memory // made when it is first needed
	at        int       // the next position; lost when nobody knows
	kept      int       // columns of the last run when it can be undone, else 0
	positions map[int]int
}

// lost is the position of a state after a failed run.
const lost = -1

func newPast(l *loader) past {
	return past{dev: l.dev, caches: l.caches, states: l.states, positions: make(map[int]int)}
}

func (p *past) recurrent() bool { return len(p.states) > 0 }

// enter notes that n columns at pos are about to run. A recurrent state that stands elsewhere is an error, except that
// position 0 is a new start.
func (p *past) enter(ctx context.Context, pos, n int, spec bool) error {
	if p.recurrent() && pos != p.at {
		if pos != 0 {
			return fmt.Errorf("compute: %w: position %d, the recurrent state is at %d", ErrCall, pos, p.at)
		}
		if err := p.apply(ctx, op.Control{Reset: true}); err != nil {
			return err
		}
	}
	p.at, p.kept = pos+n, 0
	if spec {
		p.kept = n
	}
	return nil
}

// lose notes that a run failed.
func (p *past) lose() { p.at, p.kept = lost, 0 }

func (p *past) apply(ctx context.Context, c op.Control) (err error) {
	if p.memory == nil {
		if p.memory, err = p.dev.Memory(p.caches, p.states); err != nil {
			p.memory = nil
			return fmt.Errorf("compute: %w", err)
		}
	}
	if err := p.memory.Apply(ctx, c); err != nil {
		return fmt.Errorf("compute: %w", err)
	}
	return nil
}

func (p *past) close() {
	if p.memory != nil {
		p.memory.Close()
		p.memory = nil
	}
}

// Control changes what the shard remembers, in the order rollback, save, drop, reset, load (spec room.md 1.8). A zero
// c.Pos saves where the shard stands. Slots take device memory of their own. The error wraps op.ErrUndo, op.ErrSlot,
// op.ErrMemory, ErrCall or the context's.
func (s *Shard) Control(ctx context.Context, c op.Control) error {
	p := &s.past
	if s.l.owned == nil {
		return fmt.Errorf("compute: %w: nothing is loaded", ErrCall)
	}
	at := p.at
	if c.Rollback > 0 {
		if c.Rollback > p.kept {
			return fmt.Errorf("compute: %w: column %d, %d were kept", op.ErrUndo, c.Rollback-1, p.kept)
		}
		at += c.Rollback - p.kept
	}
	if c.Save > 0 {
		if c.Pos == 0 {
			c.Pos = at
		}
		if c.Pos < 0 || c.Pos > s.spec.Ctx || p.recurrent() && c.Pos != at {
			return fmt.Errorf("compute: %w: save position %d, the state is at %d of %d", ErrCall, c.Pos, at, s.spec.Ctx)
		}
	}
	if err := p.apply(ctx, c); err != nil {
		if !errors.Is(err, op.ErrSlot) && !errors.Is(err, op.ErrUndo) {
			p.lose()
		}
		return err
	}
	p.moved(c, at)
	return nil
}

// moved notes what a control did; at is where the shard stood after its rollback.
func (p *past) moved(c op.Control, at int) {
	if c.Rollback > 0 || c.Reset || c.Load > 0 {
		p.kept = 0
	}
	p.at = at
	if c.Save > 0 {
		p.positions[c.Save] = c.Pos
	}
	for _, n := range c.Drop {
		delete(p.positions, n)
	}
	if c.DropAll {
		clear(p.positions)
	}
	if c.Reset {
		p.at = 0
	}
	if c.Load > 0 {
		p.at = p.positions[c.Load]
	}
}

// At is the next position that the shard expects: any earlier one may be written again when none of its layers is
// recurrent. It is -1 after a failed run, until a reset, a load or a run at position 0.
func (s *Shard) At() int { return s.past.at }

// SlotBytes is the device memory that slots take now.
func (s *Shard) SlotBytes() int64 {
	if s.past.memory == nil {
		return 0
	}
	return s.past.memory.Bytes()
}
