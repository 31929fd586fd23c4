package gpu

import (
	"context"
	"math"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// Experts whose matrices don't fit in one binding are cut inside an expert; the result is that of whole matrices.
func TestExpertsInPieces(t *testing.T) {
	const width, ff, experts, used, n = 256, 96, 8, 3, 5
	in, logits := make([]float32, n*width), make([]float32, n*experts)
	for i := range in {
		in[i] = float32(math.Sin(float64(i*i))) * 0.02
	}
	for i := range logits {
		logits[i] = float32(math.Sin(float64(7 * i)))
	}
	result := func(limit int64, pieces int) []float32 {
		d := openTest(t, Options{})
		d.info.MaxBinding = min(limit, d.info.MaxBinding)
		load := func(rows, cols, seed int) op.Weight {
			src := &finite{blocks{at: 34 * seed}}
			w := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.Q8_0, Rows: rows, Cols: cols, Src: src}))
			if got := len(w.(*weight).pieces); (got > 1) != (pieces > 1) {
				t.Fatalf("%d x %d: %d pieces", rows, cols, got)
			}
			return w
		}
		buffer := func(n int) op.Buffer { return must[op.Buffer](t)(d.Buffer("b", n, op.MaxCols)) }
		x, lg, sel, out := buffer(width), buffer(experts), buffer(2*used), buffer(width)
		gate, up, down := load(experts*ff, width, 1), load(experts*ff, width, 2), load(experts*width, ff, 3)
		set := d.Program("logits", op.MaxCols)
		set.Input(lg)
		b := d.Program("experts", op.MaxCols)
		b.Input(x)
		b.Route(sel, lg, used)
		b.Experts(out, x, sel, gate, up, down, experts, used)
		b.Output(out)
		first, p := must[op.Program](t)(set.Build()), must[op.Program](t)(b.Build())
		o := op.Out{Hidden: make([]float32, n*width)}
		for _, err := range []error{
			first.Run(context.Background(), op.Frame{N: n}, logits, nil), p.Run(context.Background(), op.Frame{N: n}, in, &o),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return o.Hidden
	}
	want, got := result(1<<30, 1), result(1<<16, 2)
	scale := 0.0
	for _, v := range want {
		scale = max(scale, math.Abs(float64(v)))
	}
	if scale == 0 {
		t.Fatal("all zero")
	}
	for i := range want {
		if diff := math.Abs(float64(got[i] - want[i])); !(diff <= 1e-5*scale) {
			t.Fatalf("value %d: got %v, want %v", i, got[i], want[i])
		}
	}
}
