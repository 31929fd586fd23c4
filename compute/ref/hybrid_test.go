package ref

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// set fills the first columns of a buffer.
func (b *bench) set(x op.Buffer, data []float32) {
	b.t.Helper()
	p := b.program(func(r op.Builder) { r.Input(x) })
	if err := p.Run(context.Background(), op.Frame{N: len(data) / x.Width()}, data, nil); err != nil {
		b.t.Fatal(err)
	}
}

// read runs operations over n columns and returns a buffer.
func (b *bench) read(x op.Buffer, f op.Frame, record func(r op.Builder)) []float32 {
	b.t.Helper()
	p := b.program(func(r op.Builder) {
		record(r)
		r.Output(x)
	})
	got := op.Out{Hidden: make([]float32, f.N*x.Width())}
	if err := p.Run(context.Background(), f, nil, &got); err != nil {
		b.t.Fatal(err)
	}
	return got.Hidden
}

// normal are values without extremes: recurrences multiply them up.
func normal(seed uint64, n int, scale float64) []float32 {
	v := random(seed, n)
	for i := range v {
		v[i] = float32(math.Remainder(float64(v[i]), 4) * scale)
	}
	return v
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// deltaRig is one DeltaNet layer's middle: convolution, recurrence.
type deltaRig struct {
	*bench
	spec           op.RecurrentSpec
	keyHeads       int
	st             op.Recurrent
	x, y, a, bt, o op.Buffer
	taps, wa, wdt  []float32
	p              op.Program
}

func newDeltaRig(t *testing.T, keyHeads, heads, dim, taps int) *deltaRig {
	b := newBench(t, 3)
	spec := op.RecurrentSpec{Channels: (2*keyHeads + heads) * dim, Taps: taps, Heads: heads, Dim: dim}
	d := &deltaRig{bench: b, spec: spec, keyHeads: keyHeads}
	st, err := b.dev.Recurrent("state", spec)
	d.st = must(t, st, err)
	d.x, d.y, d.o = b.buf(spec.Channels), b.buf(spec.Channels), b.buf(heads*dim)
	d.a, d.bt = b.buf(heads), b.buf(heads)
	d.taps, d.wa, d.wdt = normal(1, spec.Channels*taps, 0.5), normal(2, heads, 0.3), normal(3, heads, 0.5)
	for i, v := range d.wa {
		d.wa[i] = -float32(math.Exp(float64(v)))
	}
	w, wa, wdt := b.f32("taps", spec.Channels, taps, d.taps), b.f32("a", 1, heads, d.wa), b.f32("dt", 1, heads, d.wdt)
	d.p = b.program(func(r op.Builder) {
		r.Input(d.x)
		r.Conv(d.y, d.x, w, d.st)
		r.Delta(d.o, d.y, d.a, d.bt, wa, wdt, d.st, keyHeads)
		r.Output(d.o)
	})
	return d
}

// run runs columns.
func (d *deltaRig) run(x, alpha, beta []float32, spec bool) []float32 {
	d.t.Helper()
	d.set(d.a, alpha)
	d.set(d.bt, beta)
	n := len(x) / d.spec.Channels
	out := op.Out{Hidden: make([]float32, n*d.o.Width())}
	if err := d.p.Run(context.Background(), op.Frame{N: n, HeadFrom: n, Spec: spec}, x, &out); err != nil {
		d.t.Fatal(err)
	}
	return out.Hidden
}

// want computes n columns from zero in another way: the convolution over the padded text, the recurrence in its chunked
// form (spec engine.md 3.5), where no state is kept between the columns.
func (d *deltaRig) want(x, alpha, beta []float32) []float64 {
	ch, taps, dim, heads := d.spec.Channels, d.spec.Taps, d.spec.Dim, d.spec.Heads
	n := len(x) / ch
	y := make([]float64, n*ch)
	for c := range n {
		for i := range ch {
			sum := 0.0
			for t := range taps {
				if from := c - (taps - 1) + t; from >= 0 {
					sum += float64(d.taps[i*taps+t]) * float64(x[from*ch+i])
				}
			}
			y[c*ch+i] = float64(float32(sum * sigmoid(sum)))
		}
	}
	out := make([]float64, n*heads*dim)
	for h := range heads {
		d.chunk(h, n, y, alpha, beta, out)
	}
	return out
}

// chunk is O = ((Q K^T) * M) U with U = (I + strictly lower ((b K) K^T * M))^-1 (b V), S being zero before.
func (d *deltaRig) chunk(h, n int, y []float64, alpha, beta []float32, out []float64) {
	ch, dim, heads := d.spec.Channels, d.spec.Dim, d.spec.Heads
	kh := h % d.keyHeads
	q, k, v, b, g := make([][]float64, n), make([][]float64, n), make([][]float64, n), make([]float64, n), make([]float64, n)
	sum := 0.0
	for c := range n {
		col := y[c*ch : (c+1)*ch]
		q[c], k[c] = unitOf(col[kh*dim:(kh+1)*dim]), unitOf(col[(d.keyHeads+kh)*dim:(d.keyHeads+kh+1)*dim])
		v[c] = col[2*d.keyHeads*dim+h*dim:][:dim]
		b[c] = sigmoid(float64(beta[c*heads+h]))
		sum += math.Log1p(math.Exp(float64(alpha[c*heads+h])+float64(d.wdt[h]))) * float64(d.wa[h])
		g[c] = sum
	}
	inner := func(a, b []float64) (s float64) {
		for i := range a {
			s += a[i] * b[i]
		}
		return s
	}
	u := make([][]float64, n)
	for t := range n {
		u[t] = make([]float64, dim)
		for j := range dim {
			u[t][j] = b[t] * v[t][j]
			for s := range t {
				u[t][j] -= b[t] * inner(k[t], k[s]) * math.Exp(g[t]-g[s]) * u[s][j]
			}
		}
		for j := range dim {
			o := 0.0
			for s := range t + 1 {
				o += inner(q[t], k[s]) * math.Exp(g[t]-g[s]) * u[s][j]
			}
			out[(t*heads+h)*dim+j] = o / math.Sqrt(float64(dim))
		}
	}
}

func unitOf(x []float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	u := make([]float64, len(x))
	for i, v := range x {
		u[i] = v / max(math.Sqrt(sum), op.L2Floor)
	}
	return u
}

var deltaCases = []struct {
	name                     string
	keyHeads, heads, dim, ta int
}{{"one head of one", 1, 1, 1, 2}, {"shared keys", 2, 6, 5, 4}, {"as many keys", 3, 3, 8, 3}, {"real size", 1, 2, 64, 4}}

func TestDelta(t *testing.T) {
	for _, c := range deltaCases {
		t.Run(c.name, func(t *testing.T) {
			d := newDeltaRig(t, c.keyHeads, c.heads, c.dim, c.ta)
			x, alpha, beta := normal(4, 16*d.spec.Channels, 1), normal(5, 16*c.heads, 1), normal(6, 16*c.heads, 1)
			got, want := d.run(x, alpha, beta, false), d.want(x, alpha, beta)
			scale, worst := 0.0, 0.0
			for i, w := range want {
				scale, worst = max(scale, math.Abs(w)), max(worst, math.Abs(float64(got[i])-w))
			}
			if !(worst <= 2e-6*scale) || scale == 0 {
				t.Errorf("off by %g of values up to %g", worst, scale)
			}
		})
	}
}

// Columns one by one, undone and run again, saved and loaded: always the bits of one run.
func TestRecurrentStateMoves(t *testing.T) {
	for _, c := range deltaCases {
		t.Run(c.name, func(t *testing.T) {
			d, ctx := newDeltaRig(t, c.keyHeads, c.heads, c.dim, c.ta), context.Background()
			m, err := d.dev.Memory(nil, []op.Recurrent{d.st})
			m = must(t, m, err)
			ch, h, w := d.spec.Channels, c.heads, c.heads*c.dim
			x, alpha, beta := normal(4, 16*ch, 1), normal(5, 16*h, 1), normal(6, 16*h, 1)
			want := d.run(x, alpha, beta, false)
			part := func(from, to int, spec bool) []float32 {
				return d.run(x[from*ch:to*ch], alpha[from*h:to*h], beta[from*h:to*h], spec)
			}
			apply := func(c op.Control) {
				t.Helper()
				if err := m.Apply(ctx, c); err != nil {
					t.Fatal(err)
				}
			}
			apply(op.Control{Reset: true})
			var got []float32
			for i := range 5 {
				got = append(got, part(i, i+1, i%2 == 0)...)
			}
			apply(op.Control{Save: 1})
			wrong := normal(9, 7*ch, 1)
			for keep := 1; keep <= 7; keep++ {
				columns := append(slices.Clone(x[5*ch:(5+keep)*ch]), wrong[keep*ch:]...)
				out := d.run(columns, alpha[5*h:12*h], beta[5*h:12*h], true)
				apply(op.Control{Rollback: keep})
				if all := append(append(slices.Clone(got), out[:keep*w]...), part(5+keep, 16, false)...); !slices.Equal(all, want) {
					t.Errorf("%d of 7 columns kept: another result", keep)
				}
				if err := m.Apply(ctx, op.Control{Rollback: 1}); !errors.Is(err, op.ErrUndo) {
					t.Errorf("an undo of nothing: got %v", err)
				}
				apply(op.Control{Load: 1})
			}
			if m.Bytes() != d.spec.Bytes() || !slices.Equal(m.Slots(), []int{1}) {
				t.Errorf("slots %v of %d bytes, want one of %d", m.Slots(), m.Bytes(), d.spec.Bytes())
			}
			m.Close()
			if err := m.Apply(ctx, op.Control{Load: 1}); !errors.Is(err, errClosed) {
				t.Errorf("after Close: got %v", err)
			}
		})
	}
}

func TestNormGate(t *testing.T) {
	const heads, width, n = 3, 7, 4
	b := newBench(t, 2)
	x, z, w := normal(1, n*heads*width, 1), normal(2, n*heads*width, 2), normal(3, width, 1)
	bx, bz, out, wt := b.buf(heads*width), b.buf(heads*width), b.buf(heads*width), b.f32("w", 1, width, w)
	b.set(bx, x)
	b.set(bz, z)
	got := b.read(out, op.Frame{N: n, HeadFrom: n}, func(r op.Builder) { r.NormGate(out, bx, bz, wt, heads, 1e-6) })
	for i := range got {
		sum, head := 0.0, i/width*width
		for _, v := range x[head : head+width] {
			sum += float64(v) * float64(v)
		}
		g := float64(z[i])
		want := float64(x[i]) / math.Sqrt(sum/width+1e-6) * float64(w[i%width]) * g * sigmoid(g)
		if math.Abs(float64(got[i])-want) > 3e-7*math.Abs(want)+1e-10 {
			t.Fatalf("value %d is %g, want %g", i, got[i], want)
		}
	}
}

// Ties go to the lower expert; weights are the softmax over the chosen ones alone.
func TestRoute(t *testing.T) {
	b := newBench(t, 2)
	x, sel := b.buf(6), b.buf(6)
	b.set(x, []float32{1, 5, 2, 5, 4, 5, -3, -3, -3, -3, -3, -3})
	got := b.read(sel, op.Frame{N: 2, HeadFrom: 2}, func(r op.Builder) { r.Route(sel, x, 3) })
	for c, want := range [][]uint32{{1, 3, 5}, {0, 1, 2}} {
		for k, id := range want {
			if g := math.Float32bits(got[6*c+k]); g != id || got[6*c+3+k] != float32(1.0/3) {
				t.Errorf("column %d, choice %d: expert %d with %g, want %d with a third", c, k, g, got[6*c+3+k], id)
			}
		}
	}
	b.set(x, []float32{0, float32(math.Log(3)), -9, -9, -9, -9})
	two := b.buf(4)
	got = b.read(two, op.Frame{N: 1, HeadFrom: 1}, func(r op.Builder) { r.Route(two, x, 2) })
	if math.Float32bits(got[0]) != 1 || math.Float32bits(got[1]) != 0 || math.Abs(float64(got[2])-0.75) > 1e-6 || math.Abs(float64(got[3])-0.25) > 1e-6 {
		t.Errorf("got %v, want experts 1 and 0 with 3/4 and 1/4", got)
	}
}

func TestExperts(t *testing.T) {
	const experts, used, in, inner, n = 5, 2, 9, 4, 3
	b := newBench(t, 3)
	x, logits, start := normal(1, n*in, 1), normal(2, n*experts, 1), normal(3, n*in, 1)
	wg, wu, wd := normal(4, experts*inner*in, 1), normal(5, experts*inner*in, 1), normal(6, experts*in*inner, 1)
	g, u, d := b.f32("gate", experts*inner, in, wg), b.f32("up", experts*inner, in, wu), b.f32("down", experts*in, inner, wd)
	bx, bl, sel, out := b.buf(in), b.buf(experts), b.buf(2*used), b.buf(in)
	b.set(bx, x)
	b.set(bl, logits)
	b.set(out, start)
	got := b.read(out, op.Frame{N: n, HeadFrom: n}, func(r op.Builder) {
		r.Route(sel, bl, used)
		r.Experts(out, bx, sel, g, u, d, experts, used)
	})
	for c := range n {
		want := make([]float64, in)
		for i := range want {
			want[i] = float64(start[c*in+i])
		}
		order := []int{0, 1, 2, 3, 4}
		slices.SortStableFunc(order, func(i, j int) int {
			return -int(math.Copysign(1, float64(logits[c*experts+i])-float64(logits[c*experts+j])))
		})
		total := 0.0
		for _, e := range order[:used] {
			total += math.Exp(float64(logits[c*experts+e]))
		}
		for _, e := range order[:used] {
			weight := math.Exp(float64(logits[c*experts+e])) / total
			for r := range inner {
				gate, up := 0.0, 0.0
				for i := range in {
					gate += float64(wg[(e*inner+r)*in+i]) * float64(x[c*in+i])
					up += float64(wu[(e*inner+r)*in+i]) * float64(x[c*in+i])
				}
				for i := range want {
					want[i] += weight * float64(wd[(e*in+i)*inner+r]) * gate * sigmoid(gate) * up
				}
			}
		}
		for i, w := range want {
			if math.Abs(float64(got[c*in+i])-w) > 1e-5 {
				t.Errorf("column %d, value %d is %g, want %g", c, i, got[c*in+i], w)
			}
		}
	}
}

func TestSmallHybridOperations(t *testing.T) {
	b := newBench(t, 2)
	x, first, second, both, one := b.buf(12), b.buf(6), b.buf(6), b.buf(12), b.buf(1)
	in := normal(1, 24, 1)
	f := op.Frame{N: 2, HeadFrom: 2}
	b.set(x, in)
	halves := b.read(both, f, func(r op.Builder) {
		r.Deinterleave(first, second, x, 3)
		r.Concat(both, first, second)
	})
	for c := range 2 {
		for h := range 3 {
			for i := range 2 {
				if halves[12*c+2*h+i] != in[12*c+4*h+i] || halves[12*c+6+2*h+i] != in[12*c+4*h+2+i] {
					t.Errorf("column %d, head %d, value %d: got %v of %v", c, h, i, halves, in)
				}
			}
		}
	}
	b.set(first, in[:12])
	b.set(second, in[12:])
	got := b.read(first, f, func(r op.Builder) { r.SigmoidMul(first, second) })
	for i, v := range got {
		if want := float64(in[i]) * sigmoid(float64(in[12+i])); math.Abs(float64(v)-want) > 1e-7 {
			t.Errorf("gated value %d is %g, want %g", i, v, want)
		}
	}
	b.set(first, in[:12])
	b.set(one, []float32{0.5, -2})
	got = b.read(first, f, func(r op.Builder) { r.GateAdd(first, second, one) })
	for i, v := range got {
		want := float64(in[i]) + float64(in[12+i])*sigmoid([]float64{0.5, -2}[i/6])
		if math.Abs(float64(v)-want) > 1e-6 {
			t.Errorf("added value %d is %g, want %g", i, v, want)
		}
	}
}

func TestHybridRefusals(t *testing.T) {
	b := newBench(t, 1)
	spec := op.RecurrentSpec{Channels: 8, Taps: 3, Heads: 2, Dim: 2}
	made, err := b.dev.Recurrent("state", spec)
	st := must(t, made, err)
	x8, x4, x2, x1, y8, y4 := b.buf(8), b.buf(4), b.buf(2), b.buf(1), b.buf(8), b.buf(4)
	taps, heads, one := b.f32("taps", 8, 3, random(1, 24)), b.f32("a", 1, 2, random(2, 2)), b.f32("w", 1, 4, random(3, 4))
	gate := b.f32("gate", 6, 4, random(4, 24))
	for name, record := range map[string]func(r op.Builder){
		"halves of another width":      func(r op.Builder) { r.Deinterleave(x4, y4, x2, 2) },
		"halves in place":              func(r op.Builder) { r.Deinterleave(x4, x4, x8, 2) },
		"gate of another width":        func(r op.Builder) { r.SigmoidMul(x4, x2) },
		"taps of another shape":        func(r op.Builder) { r.Conv(y8, x8, one, st) },
		"convolution of another width": func(r op.Builder) { r.Conv(y8, x4, taps, st) },
		"heads that don't fit":         func(r op.Builder) { r.Delta(x4, y8, x2, x2, heads, heads, st, 2) },
		"two gates":                    func(r op.Builder) { r.GateAdd(x4, y4, x2) },
		"norm over no heads":           func(r op.Builder) { r.NormGate(x4, y4, y4, one, 0, 1) },
		"more chosen than there are":   func(r op.Builder) { r.Route(x8, x2, 4) },
		"nothing chosen":               func(r op.Builder) { r.Route(x2, x4, 0) },
		"experts that don't divide":    func(r op.Builder) { r.Experts(x4, y4, x2, gate, gate, gate, 4, 1) },
		"down of another shape":        func(r op.Builder) { r.Experts(x4, y4, x2, gate, gate, gate, 3, 1) },
		"pair of another width":        func(r op.Builder) { r.Concat(x8, x4, x2) },
		"state after the tail":         func(r op.Builder) { r.Tail(x8, y8); r.Conv(y8, x8, taps, st) },
	} {
		r := b.dev.Program("bad", op.MaxCols)
		r.Input(x1)
		record(r)
		if _, err := r.Build(); !errors.Is(err, errArgument) {
			t.Errorf("%s: got %v, want a wrong argument", name, err)
		}
	}
	for _, s := range []op.RecurrentSpec{{}, {Channels: 1, Taps: 1, Heads: 1, Dim: 1}, {Channels: -1, Taps: 4, Heads: 1, Dim: 1}, {Channels: 1, Taps: 4, Heads: 1 << 20, Dim: 1}} {
		if _, err := b.dev.Recurrent("bad", s); !errors.Is(err, errArgument) {
			t.Errorf("%+v: got %v", s, err)
		}
	}
	if _, err := b.dev.Recurrent("huge", op.RecurrentSpec{Channels: 1, Taps: 4, Heads: 1 << 16, Dim: 1 << 16}); !errors.Is(err, op.ErrMemory) {
		t.Errorf("a huge state: got %v", err)
	}
	other := newBench(t, 1)
	if _, err := other.dev.Memory(nil, []op.Recurrent{st}); !errors.Is(err, errForeign) {
		t.Errorf("a state of another device: got %v", err)
	}
	if b.dev.WeightBytes(quant.Q8_0, 3, 64) != 3*68 || b.dev.WeightBytes(quant.Q8_0, 3, 65) != 0 {
		t.Error("a weight has another size than its file")
	}
}
