package optest

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pooled/compute/op"
)

// logits makes a program whose logits are its input.
func logits(r *rig, width int) op.Program {
	x, h := r.buffer(width), r.buffer(width)
	return r.program(func(b op.Builder) { b.Input(x); b.Tail(h, x); b.Logits(h) })
}

func top(r *rig, p op.Program, f op.Frame, in []float32, k int) ([][]op.Candidate, error) {
	out := op.Out{K: k, Top: make([][]op.Candidate, f.N-f.HeadFrom)}
	for i := range out.Top {
		out.Top[i] = make([]op.Candidate, 0, op.MaxTopK)
	}
	err := p.Run(r.t.Context(), f, in, &out)
	return out.Top, err
}

func TestTop(t *testing.T) {
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, width := range []int{1, 31, 64, 2047, 2048, 2049, 151_936} {
			t.Run(caseName("vocabulary %d", width), func(t *testing.T) {
				n := 5
				if width > 10_000 {
					n = 3
				}
				in := values(rng(30), n*width) // has many ties: 0, 1e-40, -300 and 250
				a, b := g.on(t), openRef(t)
				pa, pb := logits(a, width), logits(b, width)
				for _, k := range []int{1, 20, 64} {
					if k > width {
						continue
					}
					f := op.Frame{N: n, HeadFrom: n / 3}
					got, err := top(a, pa, f, in, k)
					a.check(err)
					want, err := top(b, pb, f, in, k)
					b.check(err)
					for c := range want {
						if !slices.EqualFunc(got[c], want[c], sameCandidate) {
							t.Fatalf("k %d, column %d:\ngot  %v\nwant %v", k, c, got[c], want[c])
						}
					}
				}
			})
		}
	})
}

// sameCandidate lets a GPU flush a subnormal logit on the way, but not for the order.
func sameCandidate(a, b op.Candidate) bool {
	return a.ID == b.ID && math.Abs(float64(a.Logit-b.Logit)) <= 1e-37
}

func TestTailReadsLogitsOfTheHeadColumns(t *testing.T) {
	const width = 255
	in := values(rng(31), 5*width)
	eachLimits(t, func(t *testing.T, g *rig) {
		p := logits(g, width)
		for from := 0; from <= 5; from++ {
			out := op.Out{Logits: make([]float32, (5-from)*width)}
			g.check(p.Run(t.Context(), op.Frame{N: 5, HeadFrom: from}, in, &out))
			same(t, caseName("from %d", from), out.Logits, in[from*width:])
		}
	})
}

func TestNotFinite(t *testing.T) {
	const width = 3000
	bad := map[string]float32{"NaN": float32(math.NaN()), "infinity": float32(math.Inf(1)), "minus infinity": float32(math.Inf(-1))}
	for _, where := range []string{"gpu", "ref"} {
		r := openRef(t)
		if where == "gpu" {
			r = openGPU(t, false)
		}
		p, x := logits(r, width), r.buffer(width)
		hidden := r.program(func(b op.Builder) { b.Input(x); b.Output(x) })
		for name, v := range bad {
			for _, at := range []int{0, 2047, 2048, width - 1} {
				in := values(rng(32), 2*width)
				in[width+at] = v
				if _, err := top(r, p, op.Frame{N: 2}, in, 1); !errors.Is(err, op.ErrNotFinite) {
					t.Errorf("%s: %s at %d, candidates: got %v, want ErrNotFinite", where, name, at, err)
				}
				out := op.Out{Logits: make([]float32, 2*width)}
				if err := p.Run(t.Context(), op.Frame{N: 2}, in, &out); !errors.Is(err, op.ErrNotFinite) {
					t.Errorf("%s: %s at %d, logits: got %v, want ErrNotFinite", where, name, at, err)
				}
				out = op.Out{Hidden: make([]float32, 2*width)}
				if err := hidden.Run(t.Context(), op.Frame{N: 2}, in, &out); !errors.Is(err, op.ErrNotFinite) {
					t.Errorf("%s: %s at %d, hidden: got %v, want ErrNotFinite", where, name, at, err)
				}
				if _, err := top(r, p, op.Frame{N: 2}, in[:width+width], 1); err == nil {
					t.Errorf("%s: %s: the error did not stay", where, name)
				}
			}
		}
		if _, err := top(r, p, op.Frame{N: 1}, values(rng(33), width), 1); err != nil {
			t.Errorf("%s: after a run with a bad value: %v", where, err)
		}
	}
}
