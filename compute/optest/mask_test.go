package optest

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pooled/compute/op"
)

// masked are the candidates of a frame whose columns have masks.
func masked(allow []op.Mask, f op.Frame) op.Frame {
	f.Allow = allow
	return f
}

// A mask leaves only what it allows, in the order and with the values that all have; fewer than asked for come back when fewer
// are allowed. Every column has its own. NaN is found behind a mask too.
func TestMask(t *testing.T) {
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, width := range []int{1, 33, 2048, 5000} {
			t.Run(caseName("vocabulary %d", width), func(t *testing.T) {
				const n, k = 4, 20
				in, random := values(rng(31), n*width), rng(32)
				allow := make([]op.Mask, n)
				for c := range allow {
					if c == 1 {
						continue // any token
					}
					allow[c] = make(op.Mask, op.MaskWords(width))
					for i := range width {
						if c == 2 && i%7 == 3 || c != 2 && random.IntN(3) == 0 {
							allow[c][i/32] |= 1 << (i % 32)
						}
					}
				}
				clear(allow[3]) // nothing, but for the last one
				allow[3][(width-1)/32] |= 1 << ((width - 1) % 32)
				f := masked(allow, op.Frame{N: n})
				a, b := g.on(t), openRef(t)
				pa, pb := logits(a, width), logits(b, width)
				most := min(k, width)
				got, err := top(a, pa, f, in, most)
				a.check(err)
				want, err := top(b, pb, f, in, most)
				b.check(err)
				for c := range want {
					if !slices.EqualFunc(got[c], want[c], sameCandidate) {
						t.Fatalf("column %d:\ngot  %v\nwant %v", c, got[c], want[c])
					}
					for _, x := range got[c] {
						if !allow[c].Allows(int(x.ID)) {
							t.Errorf("column %d: %d is not allowed", c, x.ID)
						}
					}
				}
				if len(got[3]) != 1 || got[3][0].ID != int32(width-1) || len(got[1]) != most {
					t.Errorf("%d and %d candidates, want 1 and %d", len(got[3]), len(got[1]), most)
				}
				// The masks of one run are not those of the next.
				free, err := top(a, pa, op.Frame{N: n}, in, most)
				a.check(err)
				if len(free[3]) != most {
					t.Errorf("%d candidates without a mask, want %d", len(free[3]), most)
				}
				in[0] = float32(math.NaN())
				for _, r := range []struct {
					r *rig
					p op.Program
				}{{a, pa}, {b, pb}} {
					if _, err := top(r.r, r.p, masked([]op.Mask{allow[3], nil, nil, nil}, op.Frame{N: n}), in, 1); !errors.Is(err, op.ErrNotFinite) {
						t.Errorf("NaN where nothing is allowed: %v", err)
					}
				}
			})
		}
		for name, allow := range map[string][]op.Mask{"too few": {nil}, "too short": {make(op.Mask, 1), nil}, "too long": {make(op.Mask, 3), nil}} {
			r := g.on(t)
			if _, err := top(r, logits(r, 64), masked(allow, op.Frame{N: 2}), make([]float32, 128), 1); !errors.Is(err, op.ErrArgument) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
