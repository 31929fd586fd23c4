package gpu

import (
	"context"
	"fmt"
	"math"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// layers records what the fuser looks for, twice, so that norms are computed anew: attention's matrices, a gated
// feed-forward network, experts.
func layers(t *testing.T, d *Device, typ quant.Type) op.Program {
	const width, kv, ff, experts, used = 256, 64, 512, 4, 2
	load := func(typ quant.Type, rows, cols int) op.Weight {
		src := &finite{blocks{at: 34 * rows % 4096}}
		return must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: typ, Rows: rows, Cols: cols, Src: src}))
	}
	buffer := func(n int) op.Buffer { return must[op.Buffer](t)(d.Buffer("b", n, op.MaxCols)) }
	x, xn, q, k, v := buffer(width), buffer(width), buffer(width), buffer(kv), buffer(kv)
	gate, up, product, logits, sel := buffer(ff), buffer(ff), buffer(ff), buffer(experts), buffer(2*used)
	norm := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "n", Rows: 1, Cols: width, Src: ones{}}))
	wq, wk, wv := load(typ, width, width), load(typ, kv, width), load(typ, kv, width)
	wg, wu, wd := load(typ, ff, width), load(typ, ff, width), load(typ, width, ff)
	router, eg, eu, ed := load(quant.Q8_0, experts, width), load(typ, experts*ff, width), load(typ, experts*ff, width), load(typ, experts*width, ff)
	cache := must[op.KV](t)(d.KV("kv", 64, kv, op.KVF32))
	rope := must[op.Rope](t)(d.Rope(32, 1e4, 64))
	att := buffer(width)
	b := d.Program("layers", op.MaxCols)
	b.Input(x)
	for range 2 {
		b.RMSNorm(xn, x, norm, 1e-6)
		b.MatVec(q, wq, xn)
		b.MatVec(k, wk, xn)
		b.MatVec(v, wv, xn)
		b.NormRope(q, nil, 4, rope, 1e-6)
		b.NormRope(k, nil, 1, rope, 1e-6)
		b.StoreKV(cache, k, v)
		b.Attend(att, q, cache, 4, 1)
		b.MatVecAdd(x, wq, att)
		b.RMSNorm(xn, x, norm, 1e-6)
		b.MatVec(gate, wg, xn)
		b.MatVec(up, wu, xn)
		b.SiluMul(product, gate, up)
		b.MatVecAdd(x, wd, product)
		b.RMSNorm(xn, x, norm, 1e-6)
		b.MatVec(logits, router, xn)
		b.Route(sel, logits, used)
		b.Experts(x, xn, sel, eg, eu, ed, experts, used)
	}
	b.Output(x)
	return must[op.Program](t)(b.Build())
}

// Fused launches give what the single ones give, and are fewer; matrices merged by a first program serve a second one.
func TestFusedEqualsPlain(t *testing.T) {
	d := openTest(t, Options{})
	const width = 256
	in := make([]float32, op.MaxCols*width)
	for i := range in {
		in[i] = float32(math.Sin(float64(i*i))) * 0.02
	}
	for _, typ := range []quant.Type{quant.Q8_0, quant.Q4_0, quant.Q6_K} {
		t.Run(fmt.Sprint(typ), func(t *testing.T) {
			run := func(p op.Program, n int) ([]float32, int64) {
				out, before := op.Out{Hidden: make([]float32, n*width)}, d.Stats().Launches
				if err := p.Run(context.Background(), op.Frame{N: n}, in[:n*width], &out); err != nil {
					t.Fatal(err)
				}
				return out.Hidden, d.Stats().Launches - before
			}
			d.plain = true
			plain := layers(t, d, typ)
			d.plain = false
			fused := layers(t, d, typ)
			want, many := run(plain, op.MaxCols)
			got, few := run(fused, op.MaxCols)
			if few+8 > many {
				t.Errorf("%d launches, %d without fusing", few, many)
			}
			scale := 0.0
			for _, v := range want {
				scale = max(scale, math.Abs(float64(v)))
			}
			for i := range want {
				if diff := math.Abs(float64(got[i] - want[i])); !(diff <= 2e-5*scale) {
					t.Fatalf("value %d: got %v, want %v", i, got[i], want[i])
				}
			}
			single, _ := run(fused, 1)
			compareBits(t, op.MaxCols, single, got)
		})
	}
}

// Merging moves matrices and changes no count of bytes by more than an alignment; what was built before runs on.
func TestMergeKeepsPrograms(t *testing.T) {
	d := openTest(t, Options{})
	x, a, b := must[op.Buffer](t)(d.Buffer("x", 64, op.MaxCols)), must[op.Buffer](t)(d.Buffer("a", 32, op.MaxCols)), must[op.Buffer](t)(d.Buffer("b", 32, op.MaxCols))
	var w []op.Weight
	for range 2 {
		w = append(w, must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.Q8_0, Rows: 32, Cols: 64, Src: new(finite)})))
	}
	record := func() op.Program {
		r := d.Program("p", op.MaxCols)
		r.Input(x)
		r.MatVec(a, w[0], x)
		r.MatVec(b, w[1], x)
		r.Output(b)
		return must[op.Program](t)(r.Build())
	}
	d.plain = true
	before := record()
	d.plain = false
	used := d.Used()
	after := record()
	again := record()
	after.Close()
	again.Close()
	if got := d.Used(); got > used+2*alignment || got < used-2*alignment {
		t.Errorf("%d bytes held after merging, %d before", got, used)
	}
	out := op.Out{Hidden: make([]float32, 32)}
	if err := before.Run(context.Background(), op.Frame{N: 1}, make([]float32, 64), &out); err != nil {
		t.Error(err)
	}
	before.Close()
	held := d.Used()
	w[0].Close()
	w[1].Close()
	if got := held - d.Used(); got < 2*32*2*34 {
		t.Errorf("closing both freed %d bytes", got)
	}
}

// Matrices that would not fit in one binding together stay where they are, and give the same bits.
func TestMergeOverTheBindingLimit(t *testing.T) {
	d := openTest(t, Options{})
	const width, rows = 64, 96
	var w []op.Weight
	for i := range 2 {
		src := &finite{blocks{at: 34 * i}}
		w = append(w, must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.Q8_0, Rows: rows, Cols: width, Src: src})))
	}
	x, a, b := must[op.Buffer](t)(d.Buffer("x", width, op.MaxCols)), must[op.Buffer](t)(d.Buffer("a", rows, op.MaxCols)), must[op.Buffer](t)(d.Buffer("b", rows, op.MaxCols))
	in := make([]float32, width)
	for i := range in {
		in[i] = float32(math.Sin(float64(i)))
	}
	result := func(launches int64) []float32 {
		r := d.Program("p", op.MaxCols)
		r.Input(x)
		r.MatVec(a, w[0], x)
		r.MatVec(b, w[1], x)
		r.Output(b)
		p := must[op.Program](t)(r.Build())
		before, out := d.Stats().Launches, op.Out{Hidden: make([]float32, rows)}
		if err := p.Run(context.Background(), op.Frame{N: 1}, in, &out); err != nil {
			t.Fatal(err)
		}
		if got := d.Stats().Launches - before; got != launches {
			t.Errorf("%d launches, want %d", got, launches)
		}
		return out.Hidden
	}
	most := d.info.MaxBinding
	d.info.MaxBinding = 2*rows*width - 4096 // smaller than the merged array of bytes
	apart := result(2)
	d.info.MaxBinding = most
	compareBits(t, 1, apart, result(1))
}
