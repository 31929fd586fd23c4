package compute

import (
	"fmt"

	"pooled/compute/op"
)

func (s *Shard) checkWhole(pos, n int) error {
	if s.spec.Head && s.spec.Hi < s.model.Layers {
		return fmt.Errorf("compute: %w: layers %d-%d are elsewhere", ErrCall, s.spec.Hi, s.model.Layers)
	}
	return s.check(s.fromTokens, "tokens", pos, n)
}

// check fails unless program p is there and n columns at pos fit.
func (s *Shard) check(p passes, what string, pos, n int) error {
	switch {
	case p.narrow == nil:
		return fmt.Errorf("compute: %w: nothing loaded for %s", ErrCall, what)
	case n < 1:
		return fmt.Errorf("compute: %w: %d columns", ErrCall, n)
	case pos < 0:
		return fmt.Errorf("compute: %w: position %d", ErrCall, pos)
	case n > s.spec.Ctx || pos > s.spec.Ctx-n:
		return fmt.Errorf("compute: %w", &ContextError{pos + n, s.spec.Ctx})
	}
	return nil
}

func (s *Shard) checkHead(hidden []float32) error {
	n := len(hidden) / s.model.Width
	if s.fromTail.narrow == nil {
		return fmt.Errorf("compute: %w: nothing loaded for head", ErrCall)
	}
	if n < 1 || len(hidden) != n*s.model.Width {
		return fmt.Errorf("compute: %w: %d values for hidden states of %d", ErrCall, len(hidden), s.model.Width)
	}
	return nil
}

// checkSpec fails for columns that can't be undone.
func (s *Shard) checkSpec(n int) error {
	if n > op.MaxCols {
		return fmt.Errorf("compute: %w: %d columns to verify, at most %d", ErrCall, n, op.MaxCols)
	}
	return nil
}

func checkTop(k int) error {
	if k < 1 || k > op.MaxTopK {
		return fmt.Errorf("compute: %w: %d candidates, 1 to %d allowed", ErrCall, k, op.MaxTopK)
	}
	return nil
}
