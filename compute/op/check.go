package op

import "fmt"

// Ports are what a program takes and gives. A width of 0 stands for a port that it doesn't have.
type Ports struct {
	Cols     int  // columns that a run may have
	Table    int  // rows of Embed's table
	In       int  // width of Input's buffer
	Hidden   int  // width of Output's buffer
	Logits   int  // width of Logits' buffer
	Tail     bool // has a Tail
	Capacity int  // positions that every cache and table of the program has
}

// Check refuses a run whose arguments don't fit, before anything is computed. The error wraps ErrArgument.
func (p Ports) Check(f Frame, in []float32, out *Out) error {
	switch {
	case f.N < 1 || f.N > p.Cols:
		return fmt.Errorf("%w: %d columns, 1 to %d allowed", ErrArgument, f.N, p.Cols)
	case f.Spec && p.Cols > MaxCols:
		return fmt.Errorf("%w: columns of a wide program can't be undone", ErrArgument)
	case f.Pos < 0 || f.Pos > p.Capacity-f.N:
		return fmt.Errorf("%w: positions %d to %d, room for %d", ErrArgument, f.Pos, f.Pos+f.N-1, p.Capacity)
	case f.HeadFrom < 0 || f.HeadFrom > f.N:
		return fmt.Errorf("%w: head from column %d of %d", ErrArgument, f.HeadFrom, f.N)
	case p.Logits > 0 && f.N-f.HeadFrom > MaxCols:
		return fmt.Errorf("%w: head columns %d to %d, at most %d", ErrArgument, f.HeadFrom, f.N-1, MaxCols)
	case p.Logits > 0 && !p.Tail && f.HeadFrom != 0:
		return fmt.Errorf("%w: head from column %d in a program without a tail", ErrArgument, f.HeadFrom)
	case p.In > 0 && len(in) != f.N*p.In:
		return fmt.Errorf("%w: %d input values, want %d x %d", ErrArgument, len(in), f.N, p.In)
	case p.In == 0 && in != nil:
		return fmt.Errorf("%w: input values for a program without input", ErrArgument)
	case p.Table > 0 && len(f.Tokens) != f.N:
		return fmt.Errorf("%w: %d tokens for %d columns", ErrArgument, len(f.Tokens), f.N)
	}
	if p.Table > 0 {
		for _, id := range f.Tokens {
			if id < 0 || int(id) >= p.Table {
				return fmt.Errorf("%w: token %d, the table has %d", ErrArgument, id, p.Table)
			}
		}
	}
	if err := p.checkMasks(f); err != nil || out == nil {
		return err
	}
	return p.checkOut(f, out)
}

// CheckChain refuses a chain of n runs, of this program and then of next. The error wraps ErrArgument.
func (p Ports) CheckChain(f Frame, in []float32, next Ports, n int) error {
	if err := p.Check(f, in, nil); err != nil {
		return err
	}
	switch {
	case n < 1 || n > MaxCols:
		return fmt.Errorf("%w: a chain of %d, 1 to %d allowed", ErrArgument, n, MaxCols)
	case p.Logits == 0 || next.Logits == 0 || f.N-f.HeadFrom != 1:
		return fmt.Errorf("%w: a chain needs the logits of one column", ErrArgument)
	case f.Spec || len(f.Allow) > 0:
		return fmt.Errorf("%w: a chain can't be undone and has no masks", ErrArgument)
	case next.In > 0 || next.Table < max(p.Logits, next.Logits):
		return fmt.Errorf("%w: a chain goes on with tokens: %d candidates, the table has %d", ErrArgument, max(p.Logits, next.Logits), next.Table)
	case f.Pos+f.N > next.Capacity-(n-1):
		return fmt.Errorf("%w: positions up to %d, room for %d", ErrArgument, f.Pos+f.N+n-2, next.Capacity)
	}
	return nil
}

func (p Ports) checkMasks(f Frame) error {
	if len(f.Allow) == 0 {
		return nil
	}
	if heads := f.N - f.HeadFrom; p.Logits == 0 || len(f.Allow) != heads {
		return fmt.Errorf("%w: %d masks for %d columns of %d logits", ErrArgument, len(f.Allow), heads, p.Logits)
	}
	for _, m := range f.Allow {
		if m != nil && len(m) != MaskWords(p.Logits) {
			return fmt.Errorf("%w: a mask of %d words, %d tokens have %d", ErrArgument, len(m), p.Logits, MaskWords(p.Logits))
		}
	}
	return nil
}

func (p Ports) checkOut(f Frame, out *Out) error {
	if out.Hidden != nil && (p.Hidden == 0 || len(out.Hidden) != f.N*p.Hidden) {
		return fmt.Errorf("%w: room for %d hidden values", ErrArgument, len(out.Hidden))
	}
	if out.Logits == nil && out.K == 0 {
		return nil
	}
	if p.Logits == 0 {
		return fmt.Errorf("%w: the program has no logits", ErrArgument)
	}
	heads := f.N - f.HeadFrom
	if out.Logits != nil && len(out.Logits) != heads*p.Logits {
		return fmt.Errorf("%w: room for %d logits, want %d x %d", ErrArgument, len(out.Logits), heads, p.Logits)
	}
	if out.K == 0 {
		return nil
	}
	if most := min(MaxTopK, p.Logits); out.K < 0 || out.K > most {
		return fmt.Errorf("%w: %d candidates, 1 to %d allowed", ErrArgument, out.K, most)
	}
	if len(out.Top) != heads {
		return fmt.Errorf("%w: candidates for %d columns, want %d", ErrArgument, len(out.Top), heads)
	}
	for _, t := range out.Top {
		if cap(t) < out.K {
			return fmt.Errorf("%w: room for %d candidates of %d", ErrArgument, cap(t), out.K)
		}
	}
	return nil
}

// CheckCols says whether a buffer or program can have that many columns.
func CheckCols(cols int) error {
	if cols < MaxCols || cols > MaxWide || cols%ColStep != 0 {
		return fmt.Errorf("%w: %d columns, a multiple of %d from %d to %d is needed", ErrArgument, cols, ColStep, MaxCols, MaxWide)
	}
	return nil
}
