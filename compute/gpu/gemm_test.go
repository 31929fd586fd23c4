package gpu

import (
	"context"
	"fmt"
	"math"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
	"pooled/shaders"
)

// product records out = w x and then out += w x for wide columns, and returns the first n columns of out.
func product(t testing.TB, d *Device, w op.Weight, in []float32, n, cols int) []float32 {
	t.Helper()
	s := w.Spec()
	x, out := must[op.Buffer](t)(d.Buffer("x", s.Cols, cols)), must[op.Buffer](t)(d.Buffer("out", s.Rows, cols))
	b := d.Program("product", cols)
	b.Input(x)
	b.MatVec(out, w, x)
	b.MatVecAdd(out, w, x)
	b.Output(out)
	p := must[op.Program](t)(b.Build())
	defer func() { p.Close(); x.Close(); out.Close() }()
	o := op.Out{Hidden: make([]float32, n*s.Rows)}
	if err := p.Run(context.Background(), op.Frame{N: n}, in[:n*s.Cols], &o); err != nil {
		t.Fatal(err)
	}
	return o.Hidden
}

// The tiled product of every layout gives what the products column by column give, for every tile, with rows and columns that
// fill no tile, with matrices in pieces and with WebGPU's default limits.
func TestGemmEqualsMatVec(t *testing.T) {
	for _, o := range []Options{{}, {DefaultLimits: true}} {
		d := openTest(t, o)
		for _, f := range shaders.Formats {
			typ := typeOf(t, f.Name)
			for i, shape := range []tile{{}, {64, 64, 8, 8}, {128, 64, 8, 2}, {64, 128, 16, 1}, {128, 128, 8, 4}} {
				if o.DefaultLimits && i != 0 || i > 0 && f.Name != "q5_1" {
					continue
				}
				const rows, cols, n, most = 200, 256, 77, 80
				w := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: typ, Rows: rows, Cols: cols, Src: &finite{}}))
				in := make([]float32, n*cols)
				for i := range in {
					in[i] = float32(math.Sin(float64(i*i%1009))) * 0.1
				}
				d.plain = true
				want := product(t, d, w, in, n, most)
				d.plain, d.tile = false, shape
				got := product(t, d, w, in, n, most)
				d.tile = tile{}
				w.Close()
				near(t, fmt.Sprintf("%s, tile %v", f.Name, shape), got, want, 1e-5)
			}
		}
	}
}

// typeOf is a weight format stored in that layout.
func typeOf(t testing.TB, layout string) quant.Type {
	t.Helper()
	for typ, f := range formats {
		if f.layout == layout && typ != quant.Q5_0 {
			return typ
		}
	}
	t.Fatalf("no format is stored as %s", layout)
	return 0
}

// near compares with a tolerance relative to the largest value.
func near(t testing.TB, what string, got, want []float32, tolerance float64) {
	t.Helper()
	scale := 0.0
	for _, v := range want {
		scale = max(scale, math.Abs(float64(v)))
	}
	if !(scale > 0) || math.IsInf(scale, 0) {
		t.Fatalf("%s: the values to compare with reach %v", what, scale)
	}
	for i := range want {
		if diff := math.Abs(float64(got[i] - want[i])); !(diff <= tolerance*scale) {
			t.Fatalf("%s: value %d: got %v, want %v", what, i, got[i], want[i])
		}
	}
}

// Big tiles need many rows and columns; workgroup memory bounds their depth.
func TestGemmTile(t *testing.T) {
	for _, c := range []struct {
		rows, cols int
		memory     int
		want       tile
	}{
		{17408, 512, 49152, tile{128, 128, 32, 4}},
		{17408, 512, 32768, tile{128, 128, 32, 4}},
		{17408, 512, 16384, tile{128, 128, 16, 4}},
		{17408, 128, 49152, tile{64, 64, 32, 4}},
		{6144, 512, 49152, tile{64, 64, 32, 4}},
		{1024, 512, 16384, tile{64, 64, 32, 4}},
		{48, 64, 16384, tile{64, 64, 32, 4}},
	} {
		if got := gemmTile(c.rows, c.cols, c.memory); got != c.want {
			t.Errorf("%d rows, %d columns, %d bytes: got %v, want %v", c.rows, c.cols, c.memory, got, c.want)
		}
	}
}

// BenchmarkGemm reports wide products of the catalogue's shapes, by the tile; "auto" is what a model gets.
func BenchmarkGemm(b *testing.B) {
	d := openTest(b, Options{})
	if d.Info().Software {
		b.Skip("left out on a software adapter")
	}
	for _, typ := range []quant.Type{quant.Q8_0, quant.Q4_0, quant.Q6_K} {
		for _, s := range [][2]int{{1024, 2048}, {2048, 2048}, {6144, 2048}, {2048, 6144}, {17408, 5120}, {5120, 17408}} {
			x := bench{b, d}
			w := x.typed(typ, s[0], s[1])
			for _, shape := range []tile{{}, {64, 64, 32, 4}, {128, 64, 32, 4}, {128, 128, 32, 4}} {
				for _, n := range []int{512, 128} {
					name := "auto"
					if shape != (tile{}) {
						name = fmt.Sprintf("%d,%d,%d,%d", shape.rows, shape.cols, shape.depth, shape.unroll)
					}
					if (n != 512 || typ != quant.Q8_0) && shape != (tile{}) {
						continue
					}
					b.Run(fmt.Sprintf("%v/%dx%d/%s/n=%d", typ, s[0], s[1], name, n), func(b *testing.B) {
						d.tile = shape
						defer func() { d.tile = tile{} }()
						in, out := must[op.Buffer](b)(d.Buffer("x", s[1], n)), must[op.Buffer](b)(d.Buffer("out", s[0], n))
						defer in.Close()
						defer out.Close()
						const launches = 8
						r := d.Program("gemm", n)
						for range launches {
							r.MatVec(out, w, in)
						}
						p := must[op.Program](b)(r.Build())
						defer p.Close()
						for b.Loop() {
							x.run(p, op.Frame{N: n}, nil, nil)
						}
						per := b.Elapsed().Seconds() / float64(b.N) / launches
						b.ReportMetric(per*1e6, "us/launch")
						b.ReportMetric(2*float64(s[0])*float64(s[1])*float64(n)/per/1e12, "TFLOPS")
					})
				}
			}
			w.Close()
		}
	}
}
