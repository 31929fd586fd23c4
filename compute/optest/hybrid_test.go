package optest

import (
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// elementwise runs an operation over buffers of the given widths, the first of which is what it writes, all columns at once
// and one by one.
func elementwise(t *testing.T, g *rig, tol Tolerance, widths []int, record func(r *rig, b op.Builder, m []op.Buffer)) {
	t.Helper()
	var data [][]float32
	for i, w := range widths {
		v := values(rng(uint64(60+i)), cols*w)
		for j := range v {
			v[j] *= 0.1
		}
		data = append(data, v)
	}
	result := func(r *rig, step int) (all []float32) {
		var m []op.Buffer
		for _, w := range widths {
			m = append(m, r.buffer(w))
		}
		p := r.program(func(b op.Builder) { record(r, b, m); b.Output(m[0]) })
		for i := 0; i < cols; i += step {
			for j, w := range widths {
				r.set(m[j], data[j][i*w:][:step*w])
			}
			all = append(all, r.run(p, op.Frame{N: step}, nil, widths[0])...)
		}
		return all
	}
	got := result(g.on(t), cols)
	near(t, "result", tol, got, result(openRef(t), cols), widths[0])
	same(t, "together", got, result(g.on(t), 1))
}

func TestElementwise(t *testing.T) {
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, w := range []int{1, 31, 192, 1024} {
			t.Run(caseName("sigmoid mul %d", w), func(t *testing.T) {
				elementwise(t, g, TolSiluMul, []int{w, w}, func(_ *rig, b op.Builder, m []op.Buffer) { b.SigmoidMul(m[0], m[1]) })
			})
			t.Run(caseName("gate add %d", w), func(t *testing.T) {
				elementwise(t, g, TolSiluMul, []int{w, w, 1}, func(_ *rig, b op.Builder, m []op.Buffer) { b.GateAdd(m[0], m[1], m[2]) })
			})
			t.Run(caseName("concat %d", w), func(t *testing.T) {
				elementwise(t, g, TolEmbed, []int{w + 5, 5, w}, func(_ *rig, b op.Builder, m []op.Buffer) { b.Concat(m[0], m[1], m[2]) })
			})
			for i, name := range []string{"first", "second"} {
				t.Run(caseName("deinterleave %d, %s", 3*w, name), func(t *testing.T) {
					elementwise(t, g, TolEmbed, []int{3 * w, 3 * w, 6 * w}, func(_ *rig, b op.Builder, m []op.Buffer) {
						b.Deinterleave(m[i], m[1-i], m[2], 3)
					})
				})
			}
		}
		for _, hd := range []int{8, 64, 128} {
			t.Run(caseName("norm gate %d", hd), func(t *testing.T) {
				data := weights(rng(70), quant.F32, 1, hd)
				for _, inPlace := range []bool{false, true} {
					elementwise(t, g, TolNormRope, []int{3 * hd, 3 * hd, 3 * hd}, func(r *rig, b op.Builder, m []op.Buffer) {
						x := m[1]
						if inPlace {
							x = m[0]
						}
						b.NormGate(m[0], x, m[2], load(r, quant.F32, 1, hd, data), 3, 1e-6)
					})
				}
			})
		}
	})
}

func TestRoute(t *testing.T) {
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, c := range []struct{ experts, used int }{{8, 2}, {16, 4}, {256, 8}, {100, 64}, {3, 3}} {
			t.Run(caseName("%d of %d", c.used, c.experts), func(t *testing.T) {
				x := values(rng(80), cols*c.experts) // has ties: 0, 1e-40, -300 and 250
				result := func(r *rig, step int) (all []float32) {
					in, sel := r.buffer(c.experts), r.buffer(2*c.used)
					p := r.program(func(b op.Builder) { b.Input(in); b.Route(sel, in, c.used); b.Output(sel) })
					for i := 0; i < cols; i += step {
						all = append(all, r.run(p, op.Frame{N: step}, x[i*c.experts:][:step*c.experts], 2*c.used)...)
					}
					return all
				}
				got, want := result(g.on(t), cols), result(openRef(t), cols)
				same(t, "together", got, result(g.on(t), 1))
				for i := range want {
					if i%(2*c.used) < c.used {
						same(t, caseName("index %d", i), got[i:i+1], want[i:i+1])
					}
				}
				near(t, "weights", TolSiluMul, weightsOf(got, c.used), weightsOf(want, c.used), c.used)
			})
		}
	})
}

// weightsOf leaves out the indices of a selection.
func weightsOf(sel []float32, used int) (w []float32) {
	for i := 0; i < len(sel); i += 2 * used {
		w = append(w, sel[i+used:i+2*used]...)
	}
	return w
}

func TestExperts(t *testing.T) {
	cases := []struct {
		gate, down                 quant.Type
		width, ff, experts, choose int
	}{
		{quant.Q4_0, quant.Q4_1, 64, 96, 8, 2}, {quant.Q8_0, quant.Q5_0, 192, 64, 16, 4}, {quant.Q4_K, quant.Q6_K, 256, 256, 5, 3},
		{quant.F32, quant.BF16, 40, 24, 4, 1}, {quant.F32, quant.F16, 36, 20, 5, 2},
	}
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, c := range cases {
			t.Run(caseName("%d of %d, %d to %d, %v and %v", c.choose, c.experts, c.width, c.ff, c.gate, c.down), func(t *testing.T) {
				wg, wu := weights(rng(90), c.gate, c.experts*c.ff, c.width), weights(rng(91), c.gate, c.experts*c.ff, c.width)
				wd, x := weights(rng(92), c.down, c.experts*c.width, c.ff), values(rng(93), cols*c.width)
				for i := range x {
					x[i] *= 0.1
				}
				pick, was := values(rng(94), cols*c.experts), values(rng(95), cols*c.width)
				result := func(r *rig, step int) (all []float32) {
					in, logits, sel, out := r.buffer(c.width), r.buffer(c.experts), r.buffer(2*c.choose), r.buffer(c.width)
					a, u := load(r, c.gate, c.experts*c.ff, c.width, wg), load(r, c.gate, c.experts*c.ff, c.width, wu)
					d := load(r, c.down, c.experts*c.width, c.ff, wd)
					p := r.program(func(b op.Builder) {
						b.Input(in)
						b.Route(sel, logits, c.choose)
						b.Experts(out, in, sel, a, u, d, c.experts, c.choose)
						b.Output(out)
					})
					for i := 0; i < cols; i += step {
						n := min(step, cols-i)
						r.set(logits, pick[i*c.experts:][:n*c.experts])
						r.set(out, was[i*c.width:][:n*c.width])
						all = append(all, r.run(p, op.Frame{N: n}, x[i*c.width:][:n*c.width], c.width)...)
					}
					return all
				}
				single := result(g.on(t), 1)
				near(t, "experts", TolExperts, single, result(openRef(t), cols), c.width)
				for _, n := range []int{3, 5, 16} {
					same(t, caseName("%d together", n), result(g.on(t), n), single)
				}
			})
		}
	})
}
