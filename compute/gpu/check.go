package gpu

import (
	"fmt"

	"pooled/compute/op"
)

// check refuses a run whose arguments don't fit the program. Nothing on the GPU is touched before.
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
