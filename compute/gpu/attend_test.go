package gpu

import (
	"context"
	"fmt"
	"math"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// attendRig is one layer's attention with a full cache.
type attendRig struct {
	attendCase
	t            testing.TB
	d            *Device
	q, k, v, out op.Buffer
	wq, wk       op.Weight
	rope         op.Rope
	cache        op.KV
	sets         map[op.Buffer]op.Program
}

const rigRows = 1200

// wave is n values of order size that repeat nowhere.
func wave(n int, seed, size float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(size * math.Sin(float64(i)*1.7+seed+math.Sin(float64(i*i%9973))))
	}
	return x
}

func newAttendRig(t testing.TB, d *Device, c attendCase, cols int, kind op.KVType) *attendRig {
	t.Helper()
	heads, kvHeads, hd := c.heads, c.kvHeads, c.hd
	buffer := func(width int) op.Buffer {
		b := must[op.Buffer](t)(d.Buffer("b", width, cols))
		t.Cleanup(b.Close)
		return b
	}
	vector := func(seed float64) op.Weight {
		x := wave(hd, seed, 0.5)
		for i := range x {
			x[i]++
		}
		w := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.F32, Rows: 1, Cols: hd, Src: f32Bytes(x...)}))
		t.Cleanup(w.Close)
		return w
	}
	r := &attendRig{attendCase: c, t: t, sets: make(map[op.Buffer]op.Program), d: d, q: buffer(heads * hd), k: buffer(kvHeads * hd),
		v: buffer(kvHeads * hd), out: buffer(heads * hd), wq: vector(1), wk: vector(2)}
	r.rope = must[op.Rope](t)(d.Rope(c.nRot, 1e4, rigRows))
	t.Cleanup(r.rope.Close)
	r.cache = must[op.KV](t)(d.KV("kv", rigRows, kvHeads*hd, kind))
	t.Cleanup(r.cache.Close)
	r.set(r.v, wave(cols*kvHeads*hd, 3, 1))
	r.set(r.k, wave(cols*kvHeads*hd, 4, 1))
	store := r.program(cols, func(b op.Builder) { b.StoreKV(r.cache, r.k, r.v) })
	for pos := 0; pos < rigRows; pos += cols {
		r.set(r.k, wave(cols*kvHeads*hd, float64(pos), 1))
		r.set(r.v, wave(cols*kvHeads*hd, float64(pos)+0.5, 1))
		r.run(store, op.Frame{N: min(cols, rigRows-pos), Pos: pos}, nil, nil)
	}
	return r
}

func (r *attendRig) program(cols int, record func(b op.Builder)) op.Program {
	r.t.Helper()
	b := r.d.Program("attention", cols)
	record(b)
	p := must[op.Program](r.t)(b.Build())
	r.t.Cleanup(p.Close)
	return p
}

func (r *attendRig) run(p op.Program, f op.Frame, in []float32, out *op.Out) {
	r.t.Helper()
	if err := p.Run(context.Background(), f, in, out); err != nil {
		r.t.Fatal(err)
	}
}

func (r *attendRig) set(b op.Buffer, data []float32) {
	r.t.Helper()
	if r.sets[b] == nil {
		r.sets[b] = r.program(b.Cols(), func(rec op.Builder) { rec.Input(b) })
	}
	r.run(r.sets[b], op.Frame{N: len(data) / b.Width()}, data, nil)
}

// layer records rotation, store and attention, by the plain kernels or those that the shape makes of them.
func (r *attendRig) layer(cols int, plain bool, shape func(*attendShape)) op.Program {
	r.t.Helper()
	r.d.plain, r.d.attend = plain, shape
	defer func() { r.d.plain, r.d.attend = false, nil }()
	return r.program(cols, func(b op.Builder) {
		b.Input(r.q)
		b.NormRope(r.q, r.wq, r.heads, r.rope, 1e-6)
		b.NormRope(r.k, r.wk, r.kvHeads, r.rope, 1e-6)
		b.StoreKV(r.cache, r.k, r.v)
		b.Attend(r.out, r.q, r.cache, r.heads, r.kvHeads)
		b.Output(r.out)
	})
}

// columns are the results of columns first to first+n-1 of some 16 or more at pos.
func (r *attendRig) columns(p op.Program, pos, first, n int) []float32 {
	r.t.Helper()
	width, kv := r.heads*r.hd, r.kvHeads*r.hd
	r.set(r.k, wave((first+n)*kv, 7, 1)[first*kv:])
	r.set(r.v, wave((first+n)*kv, 8, 1)[first*kv:])
	o := op.Out{Hidden: make([]float32, n*width)}
	r.run(p, op.Frame{N: n, Pos: pos + first}, wave((first+n)*width, 9, 1)[first*width:], &o)
	return o.Hidden
}

type attendCase struct{ heads, kvHeads, hd, nRot int }

func (c attendCase) String() string {
	return fmt.Sprintf("%d:%d of %d, %d rotated", c.heads, c.kvHeads, c.hd, c.nRot)
}

// attendShapes are ways to cut attention that lead to every kernel, with few and with many splits.
var attendShapes = map[string]func(*attendShape){
	"rope":  func(s *attendShape) { s.lanes, s.direct = false, 128 },
	"apart": func(s *attendShape) { s.lanes, s.apart, s.direct = false, true, 64 },
	"small": func(s *attendShape) { s.lanes, s.wg, s.splits, s.step, s.direct = false, 128, 4, 32, 0 },
	"lanes": func(s *attendShape) { s.lanes, s.direct, s.step = true, 100, 128 },
}

// Every kernel of attention gives what the plain ones give, with rotation and store before it or in it, and a column has the
// same bits alone and among others.
func TestAttendEqualsPlain(t *testing.T) {
	for _, c := range []struct {
		attendCase
		kind   op.KVType
		limits bool // WebGPU's default ones
		shapes []string
	}{
		{attendCase{2, 1, 128, 128}, op.KVF32, false, []string{"rope", "lanes"}},
		{attendCase{1, 1, 128, 128}, op.KVF16, false, []string{"rope"}},
		{attendCase{3, 1, 64, 64}, op.KVF16, false, []string{"lanes"}},
		{attendCase{4, 1, 256, 64}, op.KVF32, true, []string{"rope", "lanes"}},
		{attendCase{2, 2, 72, 8}, op.KVF32, false, []string{"rope"}}, // can't be rotated in octets
		{attendCase{6, 1, 16, 16}, op.KVF32, false, []string{"small", "lanes"}},
		{attendCase{1, 1, 512, 128}, op.KVF16, false, []string{"apart"}},
	} {
		r := newAttendRig(t, openTest(t, Options{DefaultLimits: c.limits}), c.attendCase, op.MaxCols, c.kind)
		tolerance := 1e-5
		if c.kind == op.KVF16 {
			tolerance = 1e-4 // a sum of squares in another order turns a rounding to halves over now and then
		}
		plain := r.layer(op.MaxCols, true, nil)
		for _, pos := range []int{0, 57, 120, 1100} {
			want := r.columns(plain, pos, 0, op.MaxCols)
			for _, name := range c.shapes {
				what := fmt.Sprintf("%v, %v, %s, position %d", c.attendCase, c.kind, name, pos)
				p := r.layer(op.MaxCols, false, attendShapes[name])
				got := r.columns(p, pos, 0, op.MaxCols)
				near(t, what, got, want, tolerance)
				for _, i := range []int{0, 6, 15} {
					if j := i * r.heads * r.hd; !sameBits(got[j:j+r.heads*r.hd], r.columns(p, pos, i, 1)) {
						t.Fatalf("%s: column %d has other bits alone", what, i)
					}
				}
				p.Close()
			}
		}
	}
}

func sameBits(a, b []float32) bool {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// Attention in tiles gives what the plain kernel gives, for columns and positions that fill no tile.
func TestTiledAttendEqualsPlain(t *testing.T) {
	for _, c := range []struct {
		attendCase
		kind   op.KVType
		limits bool // WebGPU's default ones
		tile   attendTile
	}{
		{attendCase{4, 2, 128, 128}, op.KVF32, false, attendTile{}},
		{attendCase{8, 1, 64, 64}, op.KVF16, false, attendTile{32, 32, 8}},
		{attendCase{3, 1, 256, 64}, op.KVF32, true, attendTile{}},
		{attendCase{6, 1, 72, 16}, op.KVF16, false, attendTile{64, 16, 4}},
	} {
		d := openTest(t, Options{DefaultLimits: c.limits})
		const most = 112
		r := newAttendRig(t, d, c.attendCase, most, c.kind)
		plain := r.layer(most, true, nil)
		d.tiles = c.tile
		p := r.layer(most, false, nil)
		for _, f := range []op.Frame{{N: 17}, {N: 33, Pos: 5}, {N: 100, Pos: 63}, {N: most, Pos: 500}} {
			near(t, fmt.Sprintf("%v, %v, tile %v, %d columns at %d", c.attendCase, c.kind, c.tile, f.N, f.Pos),
				r.columns(p, f.Pos, 0, f.N), r.columns(plain, f.Pos, 0, f.N), 1e-5)
		}
	}
}

// A launch that holds rotation, store and attention leaves the queries as they were; who reads them later gets them rotated, and
// nothing is launched for that when they are computed anew.
func TestRotatedQueriesAreThereForOthers(t *testing.T) {
	d := openTest(t, Options{})
	c := attendCase{2, 1, 16, 16}
	r := newAttendRig(t, d, c, op.MaxCols, op.KVF32)
	width := c.heads * c.hd
	w := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.F32, Rows: width, Cols: width,
		Src: f32Bytes(make([]float32, width*width)...)}))
	wk := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.F32, Rows: c.hd, Cols: width,
		Src: f32Bytes(make([]float32, c.hd*width)...)}))
	result := func(plain, anew bool) ([]float32, int64) {
		d.plain, d.attend = plain, attendShapes["rope"]
		defer func() { d.plain, d.attend = false, nil }()
		out := r.q
		if anew {
			out = r.out
		}
		p := r.program(op.MaxCols, func(b op.Builder) {
			b.Input(r.q)
			b.NormRope(r.q, r.wq, c.heads, r.rope, 1e-6)
			b.NormRope(r.k, r.wk, c.kvHeads, r.rope, 1e-6)
			b.StoreKV(r.cache, r.k, r.v)
			b.Attend(r.out, r.q, r.cache, c.heads, c.kvHeads)
			if anew {
				b.MatVec(r.q, w, r.out)
				b.MatVec(r.k, wk, r.out)
			}
			b.Output(out)
		})
		r.set(r.k, wave(3*c.hd, 7, 1))
		o, before := op.Out{Hidden: make([]float32, 3*width)}, d.Stats().Launches
		r.run(p, op.Frame{N: 3, Pos: 40}, wave(3*width, 9, 1), &o)
		return o.Hidden, d.Stats().Launches - before
	}
	want, _ := result(true, false)
	got, launches := result(false, false)
	near(t, "queries", got, want, 1e-5)
	if launches != 3 { // attention, queries, keys
		t.Errorf("%d launches, want 3", launches)
	}
	want, _ = result(true, true)
	got, launches = result(false, true)
	near(t, "attention", got, want, 1e-5)
	if launches != 2 && launches != 3 { // the two products may be one
		t.Errorf("%d launches with queries computed anew, want attention and the products", launches)
	}
}
