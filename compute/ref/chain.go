package ref

import (
	"context"
	"fmt"

	"pooled/compute/op"
)

// Chain runs the program and then next, each time with the token that the run before found.
func (p *program) Chain(ctx context.Context, f op.Frame, in []float32, next op.Program, ids []int32) error {
	n, ok := next.(*program)
	if !ok || n.dev != p.dev {
		return fmt.Errorf("ref: chain %s: %T: %w", p.name, next, errForeign)
	}
	if err := p.ports().CheckChain(f, in, n.ports(), len(ids)); err != nil {
		return fmt.Errorf("ref: chain %s: %w", p.name, err)
	}
	out := op.Out{K: 1, Top: [][]op.Candidate{make([]op.Candidate, 0, 1)}}
	for i, run := 0, p; i < len(ids); i, run = i+1, n {
		if err := run.Run(ctx, f, in, &out); err != nil {
			return err
		}
		ids[i] = out.Top[0][0].ID
		f, in = op.Frame{Pos: f.Pos + f.N, N: 1, Tokens: ids[i : i+1]}, nil
	}
	return nil
}
