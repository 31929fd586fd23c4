package optest

import (
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// TestFeedForward is a sequence that the GPU backend fuses. The buffers between must hold what the single operations would
// have left.
func TestFeedForward(t *testing.T) {
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, s := range []struct{ rows, cols int }{{1, 32}, {31, 64}, {33, 96}, {576, 192}, {255, 1024}, {64, 2560}} {
			t.Run(caseName("%dx%d", s.rows, s.cols), func(t *testing.T) {
				wg, wu := weights(rng(40), quant.Q8_0, s.rows, s.cols), weights(rng(41), quant.Q8_0, s.rows, s.cols)
				x := values(rng(42), cols*s.cols)
				for i := range x {
					x[i] *= 0.1 // gates of order 1 to 10
				}
				result := func(r *rig, read, step int) (all []float32) {
					in, gate, up, out := r.buffer(s.cols), r.buffer(s.rows), r.buffer(s.rows), r.buffer(s.rows)
					a, b := load(r, quant.Q8_0, s.rows, s.cols, wg), load(r, quant.Q8_0, s.rows, s.cols, wu)
					p := r.program(func(rec op.Builder) {
						rec.Input(in)
						rec.MatVec(gate, a, in)
						rec.MatVec(up, b, in)
						rec.SiluMul(out, gate, up)
						rec.Output([]op.Buffer{out, gate, up}[read])
					})
					for i := 0; i < cols; i += step {
						n := min(step, cols-i)
						all = append(all, r.run(p, op.Frame{N: n}, x[i*s.cols:][:n*s.cols], s.rows)...)
					}
					return all
				}
				for read, name := range []string{"product", "gate", "up"} {
					single := result(g.on(t), read, 1)
					near(t, name, TolMatVec, single, result(openRef(t), read, cols), s.rows)
					for _, n := range []int{2, 3, 4, 5, 16} {
						same(t, caseName("%s, %d together", name, n), result(g.on(t), read, n), single)
					}
				}
			})
		}
	})
}

// TestRotateAndStore is the other fused sequence: rotated queries and keys, and what the cache then holds, seen through
// attention.
func TestRotateAndStore(t *testing.T) {
	cases := []struct {
		heads, kvHeads, width, rot int
		norm                       bool
		typ                        op.KVType
	}{{3, 1, 64, 64, true, op.KVF16}, {4, 2, 128, 64, true, op.KVF32}, {2, 2, 8, 8, false, op.KVF16}, {2, 1, 40, 6, false, op.KVF32}, {2, 1, 256, 256, true, op.KVF16}}
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, c := range cases {
			t.Run(caseName("%d and %d heads of %d, %v", c.heads, c.kvHeads, c.width, c.typ), func(t *testing.T) {
				q, kv := c.heads*c.width, c.kvHeads*c.width
				xq, xk, xv := values(rng(50), cols*q), values(rng(51), cols*kv), values(rng(52), cols*kv)
				if !c.norm {
					for i := range xk {
						xk[i] *= 0.02
					}
				}
				wq, wk := weights(rng(53), quant.F32, 1, c.width), weights(rng(54), quant.F32, 1, c.width)
				result := func(r *rig, read, step int) (all []float32) {
					bq, bk, bv, out := r.buffer(q), r.buffer(kv), r.buffer(kv), r.buffer(q)
					table, cache := r.rope(c.rot, 1e6, 64), r.kv(64, kv, c.typ)
					var a, b op.Weight
					if c.norm {
						a, b = load(r, quant.F32, 1, c.width, wq), load(r, quant.F32, 1, c.width, wk)
					}
					p := r.program(func(rec op.Builder) {
						rec.Input(bq)
						rec.NormRope(bq, a, c.heads, table, 1e-6)
						rec.NormRope(bk, b, c.kvHeads, table, 1e-6)
						rec.StoreKV(cache, bk, bv)
						rec.Attend(out, bq, cache, c.heads, c.kvHeads)
						rec.Output([]op.Buffer{bq, bk, out}[read])
					})
					width := []int{q, kv, q}[read]
					for i := 0; i < cols; i += step {
						r.set(bk, xk[i*kv:][:step*kv])
						r.set(bv, xv[i*kv:][:step*kv])
						all = append(all, r.run(p, op.Frame{N: step, Pos: 20 + i}, xq[i*q:][:step*q], width)...)
					}
					return all
				}
				tols := []Tolerance{TolNormRope, TolNormRope, TolAttend16}
				for read, name := range []string{"q", "k", "attention"} {
					got := result(g.on(t), read, cols)
					width := []int{q, kv, q}[read]
					near(t, name, tols[read], got, result(openRef(t), read, cols), width)
					same(t, name+", together", got, result(g.on(t), read, 1))
				}
			})
		}
	})
}
