package ref

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

var widths = []int{1, 31, 32, 33, 255}

func TestRMSNorm(t *testing.T) {
	for _, width := range widths {
		b := newBench(t, 2)
		in, w := random(1, 3*width), random(2, width)
		wt := b.f32("w", 1, width, w)
		got := b.apply(func(r op.Builder, out, x op.Buffer) { r.RMSNorm(out, x, wt, 1e-6) }, width, width, 0, 3, in)
		var want []float64
		for c := range 3 {
			sum := 0.0
			for _, v := range in[c*width : (c+1)*width] {
				sum += float64(v) * float64(v)
			}
			root := math.Sqrt(sum/float64(width) + float64(float32(1e-6)))
			for i := range width {
				want = append(want, float64(in[c*width+i])/root*float64(w[i]))
			}
		}
		near(t, fmt.Sprintf("width %d", width), got, want)
	}
}

func TestMatVec(t *testing.T) {
	for _, rows := range widths {
		for _, cols := range widths {
			b := newBench(t, 3)
			w, u, in := random(3, rows*cols), random(5, rows*cols), random(4, 5*cols)
			wt, first := b.f32("w", rows, cols, w), b.f32("first", rows, cols, u)
			var want, twice []float64
			for c := range 5 {
				for r := range rows {
					sum, start := 0.0, 0.0
					for i := range cols {
						sum += float64(w[r*cols+i]) * float64(in[c*cols+i])
						start += float64(u[r*cols+i]) * float64(in[c*cols+i])
					}
					want = append(want, sum)
					twice = append(twice, float64(float32(start))+sum)
				}
			}
			name := fmt.Sprintf("%d x %d", rows, cols)
			near(t, name, b.apply(func(r op.Builder, out, x op.Buffer) { r.MatVec(out, wt, x) }, rows, cols, 0, 5, in), want)
			near(t, name+" added", b.apply(func(r op.Builder, out, x op.Buffer) {
				r.MatVec(out, first, x)
				r.MatVecAdd(out, wt, x)
			}, rows, cols, 0, 5, in), twice)
		}
	}
}

// Quantized rows are what compute/quant says they are, in the layout of the file.
func TestMatVecFormats(t *testing.T) {
	for _, typ := range []quant.Type{quant.F16, quant.BF16, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.Q4_K, quant.Q5_K, quant.Q6_K} {
		t.Run(typ.String(), func(t *testing.T) {
			const rows, cols = 5, 512
			f, _ := typ.Format()
			size, err := quant.Bytes(typ, cols, rows)
			raw := make([]byte, must(t, size, err))
			for i := range raw {
				raw[i] = byte(i*7+i/11) & 0x3b // keeps halves finite
			}
			b := newBench(t, 2)
			w, in := b.load("w", typ, rows, cols, raw), random(6, cols)
			got := b.apply(func(r op.Builder, out, x op.Buffer) { r.MatVec(out, w, x) }, rows, cols, 0, 1, in)
			all := make([]float32, rows*cols)
			f.Decode(all, raw)
			want := make([]float64, rows)
			for r := range want {
				for i := range cols {
					want[r] += float64(all[r*cols+i]) * float64(in[i])
				}
			}
			near(t, "rows", got, want)
		})
	}
}

func TestNormRope(t *testing.T) {
	for _, c := range []struct {
		name              string
		heads, width, rot int
		normed            bool
	}{{"whole head", 3, 8, 8, true}, {"part of the head", 2, 10, 4, true}, {"not normed", 1, 64, 64, false}} {
		t.Run(c.name, func(t *testing.T) {
			const pos, n, theta = 37, 3, 1e4
			b := newBench(t, 2)
			in, w := random(7, n*c.heads*c.width), random(8, c.width)
			table, err := b.dev.Rope(c.rot, theta, pos+n)
			must(t, table, err)
			var wt op.Weight
			if c.normed {
				wt = b.f32("w", 1, c.width, w)
			}
			x := b.buf(c.heads * c.width)
			p := b.program(func(r op.Builder) {
				r.Input(x)
				r.NormRope(x, wt, c.heads, table, 1e-5)
				r.Output(x)
			})
			got := op.Out{Hidden: make([]float32, len(in))}
			if err := p.Run(context.Background(), op.Frame{Pos: pos, N: n, HeadFrom: n}, in, &got); err != nil {
				t.Fatal(err)
			}
			for col := range n {
				for h := range c.heads {
					at := (col*c.heads + h) * c.width
					want := rotated(in[at:at+c.width], w, c.normed, c.rot, pos+col, theta)
					for i, v := range want {
						if diff := math.Abs(float64(got.Hidden[at+i]) - v); !(diff <= 3e-7*math.Abs(v)+2e-6) {
							t.Fatalf("column %d head %d value %d is %g, want %g", col, h, i, got.Hidden[at+i], v)
						}
					}
				}
			}
		})
	}
}

// rotated is spec engine.md 3.2 steps 3 and 4 in float64 throughout.
func rotated(x, w []float32, normed bool, rot, pos int, theta float64) []float64 {
	v, sum := make([]float64, len(x)), 0.0
	for i := range x {
		v[i] = float64(x[i])
		sum += v[i] * v[i]
	}
	if normed {
		for i := range v {
			v[i] *= float64(w[i]) / math.Sqrt(sum/float64(len(x))+1e-5)
		}
	}
	for i := range rot / 2 {
		angle := float64(pos) * math.Pow(theta, -2*float64(i)/float64(rot))
		a, b := v[i], v[i+rot/2]
		v[i], v[i+rot/2] = a*math.Cos(angle)-b*math.Sin(angle), b*math.Cos(angle)+a*math.Sin(angle)
	}
	return v
}

func TestAttend(t *testing.T) {
	const heads, kvHeads, width, first, n = 6, 2, 10, 7, 4
	for _, typ := range []op.KVType{op.KVF16, op.KVF32} {
		t.Run(typ.String(), func(t *testing.T) {
			b := newBench(t, 2)
			cache, err := b.dev.KV("kv", first+n, kvHeads*width, typ)
			must(t, cache, err)
			keys, values := random(9, (first+n)*kvHeads*width), random(10, (first+n)*kvHeads*width)
			q := random(11, n*heads*width)
			fill(b, cache, keys, values, first+n)
			got := b.apply(func(r op.Builder, out, x op.Buffer) { r.Attend(out, x, cache, heads, kvHeads) },
				heads*width, heads*width, first, n, q)
			if typ == op.KVF16 {
				for _, v := range [][]float32{keys, values} {
					for i := range v {
						v[i] = quant.FromF16(quant.ToF16(v[i]))
					}
				}
			}
			var want []float64
			for c := range n {
				for h := range heads {
					at, group := (c*heads+h)*width, h/(heads/kvHeads)*width
					want = append(want, attention(q[at:at+width], keys, values, group, kvHeads*width, first+c+1)...)
				}
			}
			near(t, "attention", got, want)
		})
	}
}

// fill stores cache rows 0..n-1, 4 at a time.
func fill(b *bench, cache op.KV, keys, values []float32, n int) {
	b.t.Helper()
	width := cache.Width()
	x, k, v := b.buf(2*width), b.buf(width), b.buf(width)
	pick := func(at int) op.Weight {
		m := make([]float32, 2*width*width)
		for r := range width {
			m[r*2*width+at+r] = 1
		}
		return b.f32("pick", width, 2*width, m)
	}
	p := b.program(func(r op.Builder) {
		r.Input(x)
		r.MatVec(k, pick(0), x)
		r.MatVec(v, pick(width), x)
		r.StoreKV(cache, k, v)
	})
	for pos := 0; pos < n; pos += 4 {
		cols := min(4, n-pos)
		var in []float32
		for c := range cols {
			at := (pos + c) * width
			in = append(append(in, keys[at:at+width]...), values[at:at+width]...)
		}
		if err := p.Run(context.Background(), op.Frame{Pos: pos, N: cols, HeadFrom: cols}, in, nil); err != nil {
			b.t.Fatal(err)
		}
	}
}

func attention(q, keys, values []float32, at, row, rows int) []float64 {
	p, total := make([]float64, rows), 0.0
	for t := range p {
		s := 0.0
		for i := range q {
			s += float64(q[i]) * float64(keys[t*row+at+i])
		}
		p[t] = s / math.Sqrt(float64(len(q)))
	}
	top := slices.Max(p)
	for t := range p {
		p[t] = math.Exp(p[t] - top)
		total += p[t]
	}
	out := make([]float64, len(q))
	for t := range p {
		for i := range out {
			out[i] += p[t] / total * float64(values[t*row+at+i])
		}
	}
	return out
}

func TestSiluMul(t *testing.T) {
	in := append(random(12, 70), 100, -100, 1000, -1000)
	b := newBench(t, 2)
	got := b.apply(func(r op.Builder, out, x op.Buffer) { r.SiluMul(out, x, x) }, len(in), len(in), 0, 1, in)
	want := make([]float64, len(in))
	for i, v := range in {
		want[i] = float64(v) / (1 + math.Exp(-float64(v))) * float64(v)
	}
	near(t, "silu", got, want)
}

func TestTopK(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		name   string
		logits []float32
		k      int
		want   []int32
	}{
		{"greedy", []float32{0, 1, 3, 2}, 1, []int32{2}},
		{"lowest id on ties", []float32{5, 7, 7, 5, 7}, 4, []int32{1, 2, 4, 0}},
		{"all", []float32{1, 2, 3}, 3, []int32{2, 1, 0}},
		{"negative infinity", []float32{inf, inf, 1}, 3, []int32{2, 0, 1}},
		{"not a number is last", []float32{nan, -5, nan, -4}, 3, []int32{3, 1, 0}},
		{"none", []float32{1}, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make([]op.Candidate, c.k)
			TopK(got, c.logits)
			for i, id := range c.want {
				if got[i].ID != id {
					t.Fatalf("got %v, want ids %v", got, c.want)
				}
			}
		})
	}
}
