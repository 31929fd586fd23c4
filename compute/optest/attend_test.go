package optest

import (
	"math"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// attendCase is one layout of heads.
type attendCase struct{ heads, kvHeads, width int }

var attendCases = []attendCase{{1, 1, 8}, {3, 1, 64}, {4, 2, 64}, {6, 2, 40}, {4, 2, 128}, {2, 1, 256}, {3, 1, 22}, {1, 1, 500}}

// history is how many positions a column may see: around the borders of chunks (128), of the
// one-workgroup path (256) and of the splits.
var history = []int{0, 30, 120, 248, 256, 1100}

func TestAttend(t *testing.T) {
	for _, typ := range []op.KVType{op.KVF16, op.KVF32} {
		t.Run(typ.String(), func(t *testing.T) {
			eachLimits(t, func(t *testing.T, g *rig) {
				for _, c := range attendCases {
					if g.dev.Info().DefaultLimits && c.width != 64 && c.width != 256 {
						continue // the limits matter at the widest
					}
					t.Run(caseName("%d heads, %d cached, of %d", c.heads, c.kvHeads, c.width), func(t *testing.T) {
						testAttend(t, g.on(t), c, typ)
					})
				}
			})
		})
	}
}

// cached is a cache filled with the same rows on any device, and a program over it.
type cached struct {
	r      *rig
	q, out op.Buffer
	attend op.Program
}

const cacheRows = 1120

func newCached(r *rig, c attendCase, typ op.KVType) *cached {
	r.t.Helper()
	width := c.kvHeads * c.width
	cache, k, v := r.kv(cacheRows, width, typ), r.buffer(width), r.buffer(width)
	x := &cached{r: r, q: r.buffer(c.heads * c.width), out: r.buffer(c.heads * c.width)}
	fill := r.program(func(b op.Builder) { b.Input(v) })
	store := r.program(func(b op.Builder) { b.Input(k); b.StoreKV(cache, k, v) })
	random := rng(20)
	for pos := 0; pos < cacheRows; pos += cols {
		n := min(cols, cacheRows-pos)
		keys, vals := values(random, n*width), values(random, n*width)
		for i := range keys { // scores of order 1, so that many positions count
			keys[i] *= 0.02
		}
		r.check(fill.Run(r.t.Context(), op.Frame{N: n}, vals, nil))
		r.check(store.Run(r.t.Context(), op.Frame{N: n, Pos: pos}, keys, nil))
	}
	x.attend = r.program(func(b op.Builder) {
		b.Input(x.q)
		b.Attend(x.out, x.q, cache, c.heads, c.kvHeads)
		b.Output(x.out)
	})
	return x
}

func testAttend(t *testing.T, g *rig, c attendCase, typ op.KVType) {
	tol := TolAttend32
	if typ == op.KVF16 {
		tol = TolAttend16
	}
	on, want := newCached(g, c, typ), newCached(openRef(t), c, typ)
	width := c.heads * c.width
	for i, pos := range history {
		if typ == op.KVF32 && i%2 == 1 { // the other half of the borders is seen with halves
			continue
		}
		q := values(rng(uint64(pos)), cols*width)
		for i := range q {
			q[i] *= 0.1
		}
		all := on.r.run(on.attend, op.Frame{N: cols, Pos: pos}, q, width)
		near(t, caseName("position %d", pos), tol, all, want.r.run(want.attend, op.Frame{N: cols, Pos: pos}, q, width), width)
		for _, i := range []int{0, 7, 15} {
			single := on.r.run(on.attend, op.Frame{N: 1, Pos: pos + i}, q[i*width:][:width], width)
			same(t, caseName("position %d, column %d together", pos, i), all[i*width:][:width], single)
		}
	}
}

// TestStoreRoundsToNearestEven reads single rows back through attention: over one position the weight is 1 and the result
// is the stored value. (The value passes through an exact f32 path; subnormal halves may be flushed on reading.)
func TestStoreRoundsToNearestEven(t *testing.T) {
	in := []float32{
		0, 1, -1, 65504, -65519, // 65520 would be infinite
		1 + 1.0/2048, 1 + 3.0/2048, -1 - 1.0/2048, 1 + 1.0/2048 + 1e-7, 2049, 2051, // ties and just past one
		0x1p-14, 0x1.ffcp-15, 0x1p-24, 0x1p-25, 0x1.8p-24, 0x1.000002p-25, 3.3e-7, 1e-40, -0x1p-20, // subnormal halves
		0.1, -0.3, 1e-3, 12345.678,
	}
	eachLimits(t, func(t *testing.T, g *rig) {
		width := len(in)
		k, v, q, out, cache := g.buffer(width), g.buffer(width), g.buffer(width), g.buffer(width), g.kv(4, width, op.KVF16)
		g.set(v, in)
		g.set(k, make([]float32, width))
		p := g.program(func(b op.Builder) { b.Input(q); b.StoreKV(cache, k, v); b.Attend(out, q, cache, 1, 1); b.Output(out) })
		got := g.run(p, op.Frame{N: 1}, make([]float32, width), width)
		for i, x := range in {
			want := quant.FromF16(quant.ToF16(x))
			if got[i] != want && !(got[i] == 0 && math.Abs(float64(want)) < 0x1p-14) {
				t.Errorf("%v: got %v, want %v", x, got[i], want)
			}
		}
	})
}
