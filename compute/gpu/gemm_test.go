package gpu

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"pooled/compute/op"
	"pooled/compute/quant"
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

// ripple is n small values of both signs.
func ripple(n int) []float32 {
	in := make([]float32, n)
	for i := range in {
		in[i] = float32(math.Sin(float64(i*i%1009))) * 0.1
	}
	return in
}

// The tiled product of every layout gives what the products column by column give, for every tile, with rows, columns and octets
// that fill no tile, and with WebGPU's default limits.
func TestGemmEqualsMatVec(t *testing.T) {
	plain := openTest(t, Options{})
	plain.plain = true
	tight := openTest(t, Options{DefaultLimits: true})
	for _, c := range []struct {
		layouts    []string
		rows, cols int
		n, most    int
		tiles      []tile
	}{
		{[]string{"bf16", "f32", "q4_0", "q4_1", "q4_k", "q5_k", "q6_k", "q8_0"}, 77, 256, 33, 48, []tile{{}, bigTile}},
		{[]string{"f16"}, 201, 264, 17, 32, []tile{{}, bigTile, {8, 16, 16}}},
		{[]string{"q5_1"}, 201, 256, 100, 112, []tile{{}, smallTile, bigTile, {8, 16, 16}}},
		{[]string{"q4_0"}, 4200, 32, 80, 80, []tile{{}}}, // the big tile by choice
		{[]string{"q8_0"}, 65, 32, 512, 512, []tile{{}, bigTile}},
	} {
		for _, layout := range c.layouts {
			load := func(d *Device) op.Weight {
				return must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: typeOf(t, layout), Rows: c.rows, Cols: c.cols, Src: &finite{}}))
			}
			in := ripple(c.n * c.cols)
			want := product(t, plain, load(plain), in, c.n, c.most)
			for _, shape := range c.tiles {
				w := load(tight)
				tight.tile = shape.within(int(tight.limits.max_workgroup_storage))
				got := product(t, tight, w, in, c.n, c.most)
				w.Close()
				near(t, fmt.Sprintf("%s, tile %v", layout, shape), got, want, 1e-5)
			}
		}
	}
}

// Matrices of the same activations are one launch, gate and up with their product too. Every buffer then holds what single launches
// leave there, whichever tile computes it.
func TestGemmFused(t *testing.T) {
	const width, a, b, ff, n, most = 256, 72, 40, 100, 50, 64
	d := openTest(t, Options{})
	in := ripple(n * width)
	buffer := func(width int) op.Buffer { return must[op.Buffer](t)(d.Buffer("b", width, most)) }
	x, outs := buffer(width), []op.Buffer{buffer(a), buffer(b), buffer(b), buffer(ff), buffer(ff), buffer(ff)}
	run := func(plain bool, shape tile) (got [][]float32, launches int64) {
		d.plain, d.tile = plain, shape
		defer func() { d.plain, d.tile = false, tile{} }()
		var ws []op.Weight
		for _, rows := range []int{a, b, b, ff, ff} {
			src := &finite{blocks{at: 34 * rows % 4096}}
			ws = append(ws, must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.Q6_K, Rows: rows, Cols: width, Src: src})))
		}
		for out := range outs {
			r := d.Program("fused", most)
			r.Input(x)
			for i, w := range ws {
				r.MatVec(outs[i], w, x)
			}
			r.SiluMul(outs[5], outs[3], outs[4])
			r.Output(outs[out])
			p := must[op.Program](t)(r.Build())
			o := op.Out{Hidden: make([]float32, n*outs[out].Width())}
			before := d.Stats().Launches
			if err := p.Run(context.Background(), op.Frame{N: n}, in, &o); err != nil {
				t.Fatal(err)
			}
			launches = d.Stats().Launches - before
			got = append(got, o.Hidden)
			p.Close()
		}
		for _, w := range ws {
			w.Close()
		}
		return got, launches
	}
	want, _ := run(true, tile{})
	for _, shape := range []tile{{}, bigTile} {
		got, launches := run(false, shape)
		if launches != 2 {
			t.Errorf("%d launches, want 2", launches)
		}
		for i := range want {
			near(t, fmt.Sprintf("buffer %d, tile %v", i, shape), got[i], want[i], 1e-5)
		}
	}
}

// A matrix in pieces is a launch for each.
func TestGemmPieces(t *testing.T) {
	const rows, cols = 4300, 32
	d := openTest(t, Options{})
	load := func() op.Weight {
		return must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.Q8_0, Rows: rows, Cols: cols, Src: &finite{}}))
	}
	in := ripple(40 * cols)
	d.plain = true
	want := product(t, d, load(), in, 40, 48)
	most := d.info.MaxBinding
	d.plain, d.info.MaxBinding = false, 64*1024
	w := load()
	d.info.MaxBinding = most
	if pieces := w.(*weight).pieces; len(pieces) != 3 || pieces[1].rows != 2048 {
		t.Fatalf("%d pieces, the second of %d rows; want 3, 2048 rows", len(pieces), pieces[1].rows)
	}
	near(t, "pieces", product(t, d, w, in, 40, 48), want, 1e-5)
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

// Small matrices and few columns have small tiles, which fit everywhere; big ones are less deep with little workgroup memory.
func TestGemmTile(t *testing.T) {
	for rows, want := range map[int]int{17408: 64, 6144: 64, 4224: 64, 4160: 128, 2048: 256, 1024: 512, 64: 65 * 128} {
		if got := fewColumns(rows); got != want {
			t.Errorf("%d rows: small tiles up to %d columns, want %d", rows, got, want)
		}
	}
	for memory, want := range map[int]tile{49152: {8, 16, 32}, 32768: {8, 16, 32}, 16384: {8, 16, 16}} {
		if got := bigTile.within(memory); got != want || got.memory() > memory {
			t.Errorf("in %d bytes: got %v, want %v", memory, got, want)
		}
	}
	if got := smallTile.within(16384); got != smallTile || got.memory() > 16384 {
		t.Errorf("small tile: got %v of %d bytes, want %v", got, got.memory(), smallTile)
	}
}

// BenchmarkGemm reports wide products of the catalogue's shapes; "auto" is what a model gets.
func BenchmarkGemm(b *testing.B) {
	d := openTest(b, Options{})
	if d.Info().Software {
		b.Skip("left out on a software adapter")
	}
	for _, typ := range []quant.Type{quant.Q8_0, quant.Q4_0, quant.Q6_K} {
		for _, s := range [][2]int{{17408, 5120}, {5120, 17408}, {6144, 2048}, {2048, 6144}, {2048, 2048}, {1024, 2048}} {
			x := bench{b, d}
			w := x.typed(typ, s[0], s[1])
			for _, shape := range []tile{{}, smallTile, {8, 8, 32}, bigTile} {
				for _, n := range []int{512, 256, 128, 64, 32} {
					name := "auto"
					if shape != (tile{}) {
						name = fmt.Sprintf("%dx%d", shape.rows(), shape.cols())
					}
					if (n != 512 || typ != quant.Q8_0) && shape == (tile{}) == (typ == quant.Q8_0) {
						continue
					}
					b.Run(fmt.Sprintf("%v/%dx%d/n=%d/%s", typ, s[0], s[1], n, name), func(b *testing.B) { x.gemm(b, w, shape, n) })
				}
			}
			w.Close()
		}
	}
}

// gemm times wide products with one matrix and one tile.
func (x bench) gemm(b *testing.B, w op.Weight, shape tile, n int) {
	d, s := x.d, w.Spec()
	d.tile = shape
	defer func() { d.tile = tile{} }()
	in, out := must[op.Buffer](b)(d.Buffer("x", s.Cols, n)), must[op.Buffer](b)(d.Buffer("out", s.Rows, n))
	defer in.Close()
	defer out.Close()
	const launches = 8
	r := d.Program("gemm", n)
	for range launches {
		r.MatVecAdd(out, w, in)
	}
	began := time.Now()
	p := must[op.Program](b)(r.Build())
	built := time.Since(began)
	defer p.Close()
	for range 3 { // the clock rises
		x.run(p, op.Frame{N: n}, nil, nil)
	}
	for b.Loop() {
		x.run(p, op.Frame{N: n}, nil, nil)
	}
	per := b.Elapsed().Seconds() / float64(b.N) / launches
	b.ReportMetric(per*1e6, "us/launch")
	b.ReportMetric(built.Seconds()*1e3, "build-ms")
	b.ReportMetric(2*float64(s.Rows)*float64(s.Cols)*float64(n)/per/1e12, "TFLOPS")
}
