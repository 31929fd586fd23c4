package optest

import (
	"errors"
	"slices"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// drafting is a program that reads one hidden state, and one that goes on with tokens.
func drafting(r *rig, vocab, width, capacity int) (first, next op.Program) {
	random := rng(51)
	table := load(r, quant.F32, vocab, width, weights(random, quant.F32, vocab, width))
	head := load(r, quant.Q8_0, vocab, width, weights(random, quant.Q8_0, vocab, width))
	x, last, y, logits := r.buffer(width), r.buffer(width), r.buffer(width), r.buffer(vocab)
	cache := r.kv(capacity, width, op.KVF32)
	answer := func(b op.Builder, q op.Buffer) {
		b.Attend(y, q, cache, 2, 2)
		b.MatVec(logits, head, y)
		b.Logits(logits)
	}
	first = r.program(func(b op.Builder) { b.Input(x); b.StoreKV(cache, x, x); b.Tail(last, x); answer(b, last) })
	next = r.program(func(b op.Builder) { b.Embed(x, table); b.StoreKV(cache, x, x); answer(b, x) })
	return first, next
}

// Both backends draw the same chain of best tokens.
func TestChain(t *testing.T) {
	const vocab, width = 2500, 32
	eachLimits(t, func(t *testing.T, g *rig) {
		in := values(rng(52), 5*width)
		for i := range in {
			in[i] = float32(i%7) - 3
		}
		chain := func(r *rig) []int32 {
			first, next := drafting(r, vocab, width, 30)
			ids := make([]int32, 12)
			r.check(first.Chain(t.Context(), op.Frame{Pos: 4, N: 5, HeadFrom: 4}, in, next, ids))
			return ids
		}
		got, want := chain(g.on(t)), chain(openRef(t))
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestChainRefusals(t *testing.T) {
	const vocab, width = 50, 32
	for _, r := range []*rig{openRef(t), openGPU(t, false)} {
		first, next := drafting(r, vocab, width, 20)
		x := r.buffer(width)
		blind := r.program(func(b op.Builder) { b.Input(x); b.Output(x) })
		small := load(r, quant.F32, vocab-1, width, make([]byte, 4*(vocab-1)*width))
		lo := r.buffer(vocab)
		head := load(r, quant.F32, vocab, width, weights(rng(1), quant.F32, vocab, width))
		few := r.program(func(b op.Builder) { b.Embed(x, small); b.MatVec(lo, head, x); b.Logits(lo) })
		in, ok := make([]float32, 2*width), op.Frame{N: 2, HeadFrom: 1}
		for name, c := range map[string]struct {
			p, next op.Program
			f       op.Frame
			in      []float32
			n       int
		}{
			"no tokens":                   {first, next, ok, in, 0},
			"more than there are frames":  {first, next, ok, in, op.MaxCols + 1},
			"no head column":              {first, next, op.Frame{N: 2, HeadFrom: 2}, in, 2},
			"two head columns":            {first, next, op.Frame{N: 2}, in, 2},
			"columns to undo":             {first, next, op.Frame{N: 2, HeadFrom: 1, Spec: true}, in, 2},
			"masks":                       {first, next, op.Frame{N: 2, HeadFrom: 1, Allow: []op.Mask{make(op.Mask, 2)}}, in, 2},
			"too few values":              {first, next, ok, in[1:], 2},
			"past the cache":              {first, next, op.Frame{Pos: 17, N: 2, HeadFrom: 1}, in, 3},
			"values for the next":         {first, first, ok, in, 2},
			"nothing to pick first":       {blind, next, ok, in, 2},
			"nothing to pick next":        {first, blind, ok, in, 2},
			"tokens that the next lacks":  {first, few, ok, in, 2},
			"a chain of one must fit too": {first, few, ok, in, 1},
		} {
			if err := c.p.Chain(t.Context(), c.f, c.in, c.next, make([]int32, c.n)); !errors.Is(err, op.ErrArgument) {
				t.Errorf("%s: got %v, want a wrong argument", name, err)
			}
		}
		if err := first.Chain(t.Context(), op.Frame{Pos: 17, N: 2, HeadFrom: 1}, in, next, make([]int32, 2)); err != nil {
			t.Errorf("to the end of the cache: %v", err)
		}
	}
}

// MatVecRows gives the first values of MatVec.
func TestMatVecRows(t *testing.T) {
	const rows, cols = 3000, 64
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, typ := range []quant.Type{quant.F32, quant.Q8_0, quant.Q4_0} {
			data := weights(rng(53), typ, rows, cols)
			for _, r := range []*rig{g.on(t), openRef(t)} {
				m, x, all := load(r, typ, rows, cols, data), r.buffer(cols), r.buffer(rows)
				whole := r.program(func(b op.Builder) { b.Input(x); b.MatVec(all, m, x); b.Output(all) })
				for _, width := range []int{1, 7, 1030, rows} {
					some := r.buffer(width)
					part := r.program(func(b op.Builder) { b.Input(x); b.MatVecRows(some, m, x); b.Output(some) })
					for _, n := range []int{1, 6} {
						in := values(rng(54), n*cols)
						for i := range in {
							in[i] = float32(i%11) - 5
						}
						want, got := r.run(whole, op.Frame{N: n}, in, rows), r.run(part, op.Frame{N: n}, in, width)
						for c := range n {
							same(t, caseName("%v, %d rows, column %d of %d", typ, width, c, n), got[c*width:(c+1)*width], want[c*rows:c*rows+width])
						}
					}
				}
			}
		}
		r := g.on(t)
		w, x, big := load(r, quant.F32, 8, 8, weights(rng(1), quant.F32, 8, 8)), r.buffer(8), r.buffer(9)
		b := r.dev.Program("more rows than there are", op.MaxCols)
		b.Input(x)
		b.MatVecRows(big, w, x)
		if _, err := b.Build(); !errors.Is(err, op.ErrArgument) {
			t.Errorf("more rows than the matrix has: %v", err)
		}
	})
}
