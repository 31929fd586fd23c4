package optest

import (
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

const cols = op.MaxCols

func TestRMSNorm(t *testing.T) {
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, width := range sizes {
			t.Run(caseName("width %d", width), func(t *testing.T) {
				x, w := values(rng(uint64(width)), cols*width), weights(rng(2), quant.F32, 1, width)
				result := func(r *rig) ([]float32, []float32) {
					in, out := r.buffer(width), r.buffer(width)
					v := load(r, quant.F32, 1, width, w)
					p := r.program(func(b op.Builder) { b.Input(in); b.RMSNorm(out, in, v, 1e-6); b.Output(out) })
					all := r.run(p, op.Frame{N: cols}, x, width)
					var single []float32
					for c := range cols {
						single = append(single, r.run(p, op.Frame{N: 1}, x[c*width:][:width], width)...)
					}
					return all, single
				}
				got, single := result(g.on(t))
				want, _ := result(openRef(t))
				near(t, "rmsnorm", TolRMSNorm, got, want, width)
				same(t, "together", got, single)
			})
		}
	})
}

func TestEmbed(t *testing.T) {
	cases := []struct {
		typ  quant.Type
		cols []int
	}{
		{quant.F32, sizes}, {quant.F16, []int{8, 30, 192, 2560}}, {quant.BF16, []int{8, 33, 192, 2560}},
		{quant.Q4_0, []int{32, 192, 2560}}, {quant.Q4_1, []int{32, 192, 2560}}, {quant.Q5_0, []int{32, 192, 2560}},
		{quant.Q5_1, []int{32, 192, 2560}}, {quant.Q8_0, []int{32, 192, 256, 2560}},
		{quant.Q4_K, []int{256, 2560}}, {quant.Q5_K, []int{256, 2560}}, {quant.Q6_K, []int{256, 2560}},
	}
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, c := range cases {
			for _, width := range c.cols {
				t.Run(caseName("%v of %d", c.typ, width), func(t *testing.T) {
					const rows = 333
					data := weights(rng(3), c.typ, rows, width)
					ids := []int32{0, rows - 1, 5, 5, 17, 300, 64, 63, 65, 1, 2, 3, 128, 127, 129, 200}
					result := func(r *rig) []float32 {
						out, w := r.buffer(width), load(r, c.typ, rows, width, data)
						p := r.program(func(b op.Builder) { b.Embed(out, w); b.Output(out) })
						return r.run(p, op.Frame{N: cols, Tokens: ids}, nil, width)
					}
					got, want := result(g.on(t)), result(openRef(t))
					near(t, "embed", TolEmbed, got, want, width)
					if c.typ != quant.F32 && c.typ != quant.BF16 { // those pass subnormals, which a GPU may flush
						same(t, "decoded", got, want)
					}
				})
			}
		}
	})
}

func TestMatVec(t *testing.T) {
	type size struct{ rows, cols int }
	cases := []struct {
		typ   quant.Type
		sizes []size
	}{
		{quant.F32, []size{{1, 1}, {31, 33}, {32, 32}, {33, 31}, {255, 255}, {192, 192}, {5, 1024}, {37, 8}}},
		{quant.F16, []size{{31, 30}, {33, 8}, {64, 1024}}},
		{quant.BF16, []size{{31, 33}, {33, 24}, {64, 1024}}},
		{quant.Q4_0, []size{{33, 96}, {255, 192}, {2, 2560}}},
		{quant.Q4_1, []size{{33, 96}, {2, 2560}}},
		{quant.Q5_0, []size{{33, 96}, {2, 2560}}},
		{quant.Q5_1, []size{{33, 96}, {2, 2560}}},
		{quant.Q4_K, []size{{33, 256}, {3, 2560}}},
		{quant.Q5_K, []size{{33, 256}, {3, 2560}}},
		{quant.Q6_K, []size{{33, 256}, {3, 2560}}},
		{quant.Q8_0, []size{{1, 32}, {31, 64}, {33, 96}, {255, 192}, {192, 512}, {2, 2560}, {1024, 1024}}},
	}
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, c := range cases {
			for _, s := range c.sizes {
				t.Run(caseName("%v %dx%d", c.typ, s.rows, s.cols), func(t *testing.T) {
					data, x := weights(rng(4), c.typ, s.rows, s.cols), values(rng(5), cols*s.cols)
					y := values(rng(6), cols*s.rows)
					for name, add := range map[string]bool{"set": false, "add": true} {
						want := matVec(openRef(t), c.typ, s.rows, s.cols, data, x, y, add, cols)
						got := matVec(g.on(t), c.typ, s.rows, s.cols, data, x, y, add, 1, 2, 3, 5, 16)
						near(t, name, TolMatVec, got[0], want[0], s.rows)
						for i, all := range got[1:] {
							same(t, caseName("%s, together, case %d", name, i), all, got[0])
						}
					}
				})
			}
		}
	})
}

// matVec multiplies all columns of x, n in a run for each of together; y is what the result is added to.
func matVec(r *rig, typ quant.Type, rows, width int, data []byte, x, y []float32, add bool, together ...int) (results [][]float32) {
	r.t.Helper()
	w, in, out := load(r, typ, rows, width, data), r.buffer(width), r.buffer(rows)
	p := r.program(func(b op.Builder) {
		b.Input(in)
		if add {
			b.MatVecAdd(out, w, in)
		} else {
			b.MatVec(out, w, in)
		}
		b.Output(out)
	})
	set := r.program(func(b op.Builder) { b.Input(out) })
	for _, n := range together {
		var all []float32
		for c := 0; c < cols; c += n {
			k := min(n, cols-c)
			if add {
				r.check(set.Run(r.t.Context(), op.Frame{N: k}, y[c*rows:][:k*rows], nil))
			}
			all = append(all, r.run(p, op.Frame{N: k}, x[c*width:][:k*width], rows)...)
		}
		results = append(results, all)
	}
	return results
}

func TestNormRope(t *testing.T) {
	cases := []struct {
		heads, width, rot int
		norm              bool
	}{{1, 2, 2, true}, {3, 64, 64, true}, {1, 64, 64, false}, {16, 128, 128, true}, {4, 256, 64, true}, {5, 34, 6, false}, {2, 33, 32, true}}
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, c := range cases {
			t.Run(caseName("%d heads of %d, %d rotated, norm %v", c.heads, c.width, c.rot, c.norm), func(t *testing.T) {
				n := c.heads * c.width
				x, data := values(rng(8), cols*n), weights(rng(9), quant.F32, 1, c.width)
				result := func(r *rig, pos, step int) (all []float32) {
					in, table := r.buffer(n), r.rope(c.rot, 1e6, 5000)
					var w op.Weight
					if c.norm {
						w = load(r, quant.F32, 1, c.width, data)
					}
					p := r.program(func(b op.Builder) { b.Input(in); b.NormRope(in, w, c.heads, table, 1e-6); b.Output(in) })
					for i := 0; i < cols; i += step {
						all = append(all, r.run(p, op.Frame{N: step, Pos: pos + i}, x[i*n:][:step*n], n)...)
					}
					return all
				}
				for _, pos := range []int{0, 4984} {
					got := result(g.on(t), pos, cols)
					near(t, caseName("position %d", pos), TolNormRope, got, result(openRef(t), pos, cols), n)
					same(t, "together", got, result(g.on(t), pos, 1))
				}
			})
		}
	})
}

func TestSiluMul(t *testing.T) {
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, width := range sizes {
			t.Run(caseName("width %d", width), func(t *testing.T) {
				a, c := values(rng(10), cols*width), values(rng(11), cols*width)
				result := func(r *rig, step int) (all []float32) {
					gate, up, out := r.buffer(width), r.buffer(width), r.buffer(width)
					p := r.program(func(b op.Builder) { b.SiluMul(out, gate, up); b.Output(out) })
					for i := 0; i < cols; i += step {
						r.set(gate, a[i*width:][:step*width])
						r.set(up, c[i*width:][:step*width])
						all = append(all, r.run(p, op.Frame{N: step}, nil, width)...)
					}
					return all
				}
				got := result(g.on(t), cols)
				near(t, "silu", TolSiluMul, got, result(openRef(t), cols), width)
				same(t, "together", got, result(g.on(t), 1))
			})
		}
	})
}

// TestMatrixOverTheBindingLimit loads 144 MB, more than the 128 MiB of a default binding.
func TestMatrixOverTheBindingLimit(t *testing.T) {
	const rows, width = 33000, 4096
	g, r := openGPU(t, true), openRef(t)
	if limit := g.dev.Info().MaxBinding; limit >= rows*width {
		t.Fatalf("bindings of %d bytes: the matrix isn't cut", limit)
	}
	data := make([]byte, rows*width/32*34)
	line := weights(rng(12), quant.Q8_0, 97, width)
	for i := range rows { // 97 different rows, in turn
		copy(data[i*width/32*34:], line[i%97*width/32*34:][:width/32*34])
	}
	x := values(rng(13), 2*width)
	result := func(r *rig) []float32 {
		w, in, out := load(r, quant.Q8_0, rows, width, data), r.buffer(width), r.buffer(rows)
		p := r.program(func(b op.Builder) { b.Input(in); b.MatVec(out, w, in); b.Output(out) })
		return r.run(p, op.Frame{N: 2}, x, rows)
	}
	near(t, "matvec", TolMatVec, result(g), result(r), rows)
	embed := func(r *rig) []float32 {
		w, out := load(r, quant.Q8_0, rows, width, data), r.buffer(width)
		p := r.program(func(b op.Builder) { b.Embed(out, w); b.Output(out) })
		return r.run(p, op.Frame{N: 3, Tokens: []int32{0, rows - 1, rows / 2}}, nil, width)
	}
	near(t, "embed", TolEmbed, embed(g), embed(r), width)
}

// TestManyRows needs more than 65,535 workgroups in one dimension.
func TestManyRows(t *testing.T) {
	const rows, width = 300_001, 32
	data, x := weights(rng(14), quant.Q8_0, rows, width), values(rng(15), 3*width)
	result := func(r *rig) []float32 {
		w, in, out := load(r, quant.Q8_0, rows, width, data), r.buffer(width), r.buffer(rows)
		p := r.program(func(b op.Builder) { b.Input(in); b.MatVec(out, w, in); b.Output(out) })
		return r.run(p, op.Frame{N: 3}, x, rows)
	}
	near(t, "matvec", TolMatVec, result(openGPU(t, false)), result(openRef(t)), rows)
}
