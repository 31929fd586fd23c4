package optest

import (
	"testing"

	"pooled/compute/op"
)

// attendCase is one layout of heads.
type attendCase struct{ heads, kvHeads, width int }

var attendCases = []attendCase{{1, 1, 8}, {3, 1, 64}, {4, 2, 64}, {6, 2, 40}, {4, 2, 128}, {2, 1, 256}}

// history is how many positions a column may see: around the borders of chunks (128), of the one-workgroup path (256) and of the splits.
var history = []int{0, 30, 120, 248, 256, 1100}

func TestAttend(t *testing.T) {
	for _, typ := range []op.KVType{op.KVF16, op.KVF32} {
		t.Run(typ.String(), func(t *testing.T) {
			eachLimits(t, func(t *testing.T, g *rig) {
				for _, c := range attendCases {
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
	for _, pos := range history {
		q := values(rng(uint64(pos)), cols*width)
		for i := range q {
			q[i] *= 0.1
		}
		all := on.r.run(on.attend, op.Frame{N: cols, Pos: pos}, q, width)
		near(t, caseName("position %d", pos), tol, all, want.r.run(want.attend, op.Frame{N: cols, Pos: pos}, q, width), width)
		var single []float32
		for i := range cols {
			single = append(single, on.r.run(on.attend, op.Frame{N: 1, Pos: pos + i}, q[i*width:][:width], width)...)
		}
		same(t, caseName("position %d, together", pos), all, single)
	}
}
