package gpu

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"testing"
	"time"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// The benchmarks need nothing but the test binary: `go test -c ./compute/gpu` and run it with -test.bench . on the
// machine in question. On a software adapter the big shapes are left out.

// blocks yields Q8_0 blocks of small values for ever.
type blocks struct{ at int }

// pattern is 4096 blocks with scales of a few thousandths and bytes of all values.
var pattern = func() []byte {
	var b []byte
	x := uint32(1)
	for range 4096 {
		b = binary.LittleEndian.AppendUint16(b, quant.ToF16(0.001))
		for range 32 {
			x = x*1664525 + 1013904223
			b = append(b, byte(x>>24))
		}
	}
	return b
}()

func (r *blocks) Read(p []byte) (int, error) {
	n := copy(p, pattern[r.at:])
	r.at = (r.at + n) % len(pattern)
	return n, nil
}

// ones yields float32 1 for ever.
type ones struct{}

func (ones) Read(p []byte) (int, error) {
	n := len(p) &^ 3
	for i := 0; i < n; i += 4 {
		binary.LittleEndian.PutUint32(p[i:], 0x3f800000)
	}
	return n, nil
}

// bench makes things and remembers to close them when a benchmark ends.
type bench struct {
	b *testing.B
	d *Device
}

// typed is a matrix of any block format; the bytes of Q8_0 blocks are as good as any.
func (x bench) typed(typ quant.Type, rows, cols int) op.Weight {
	w := must[op.Weight](x.b)(x.d.Load(context.Background(), op.WeightSpec{Name: "w", Type: typ, Rows: rows, Cols: cols, Src: new(blocks)}))
	x.b.Cleanup(w.Close)
	return w
}

func (x bench) weight(rows, cols int) op.Weight {
	w := must[op.Weight](x.b)(x.d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.Q8_0, Rows: rows, Cols: cols, Src: new(blocks)}))
	x.b.Cleanup(w.Close)
	return w
}

func (x bench) vector(n int) op.Weight {
	w := must[op.Weight](x.b)(x.d.Load(context.Background(), op.WeightSpec{Name: "v", Rows: 1, Cols: n, Src: io.Reader(ones{})}))
	x.b.Cleanup(w.Close)
	return w
}

func (x bench) buffer(width int) op.Buffer { return x.wide(width, op.MaxCols) }

func (x bench) wide(width, cols int) op.Buffer {
	b := must[op.Buffer](x.b)(x.d.Buffer("b", width, cols))
	x.b.Cleanup(b.Close)
	return b
}

func (x bench) program(record func(b op.Builder)) op.Program {
	return x.programOf(op.MaxCols, record)
}

func (x bench) programOf(cols int, record func(b op.Builder)) op.Program {
	r := x.d.Program("bench", cols)
	record(r)
	p := must[op.Program](x.b)(r.Build())
	x.b.Cleanup(p.Close)
	return p
}

func (x bench) run(p op.Program, f op.Frame, in []float32, out *op.Out) {
	if err := p.Run(context.Background(), f, in, out); err != nil {
		x.b.Fatal(err)
	}
}

// BenchmarkMatVec reports the bytes of weights per second for shapes of the catalogue's models, cycling through enough
// matrices that caches miss. "auto" is what a model gets; the others are ways to share rows among threads (lanes, rows
// per lane group, threads of a workgroup).
func BenchmarkMatVec(b *testing.B) {
	d := openTest(b, Options{})
	b.Logf("%+v", d.Info())
	type size struct {
		rows, cols int
		big        bool
	}
	shapes := []matVecShape{{}, {128, 1, 128}, {128, 2, 128}, {128, 4, 128}, {64, 1, 128}, {64, 2, 128}, {64, 4, 128}, {64, 4, 64},
		{32, 1, 128}, {32, 2, 64}, {32, 4, 64}, {32, 4, 128}, {16, 2, 64}, {8, 4, 64}, {256, 4, 256}, {1, 1, 32}, {1, 2, 32}, {1, 1, 64}}
	for _, typ := range []quant.Type{quant.Q8_0, quant.Q4_0, quant.Q4_K, quant.Q6_K} {
		for _, s := range []size{{192, 192, false}, {512, 192, false}, {2048, 192, false}, {192, 512, false},
			{2048, 2048, true}, {6144, 2048, true}, {2048, 6144, true}, {17408, 5120, true}, {151936, 2048, true}} {
			for _, n := range []int{1, 4, 16} {
				for _, sh := range shapes {
					if n > 1 && sh.wg > 128 || s.cols%256 != 0 && (typ == quant.Q4_K || typ == quant.Q6_K) ||
						s.big != (sh.lanes != 1) && sh.wg != 0 {
						continue
					}
					name := "auto"
					if sh.wg != 0 {
						name = fmt.Sprintf("%d,%d,%d", sh.lanes, sh.rows, sh.wg)
					}
					b.Run(fmt.Sprintf("%v_%dx%d/cols=%d/%s", typ, s.rows, s.cols, n, name), func(b *testing.B) {
						if s.big && d.Info().Software {
							b.Skip("left out on a software adapter")
						}
						d.shape = sh
						defer func() { d.shape = matVecShape{} }()
						benchMatVec(b, d, typ, s.rows, s.cols, n)
					})
				}
			}
		}
	}
}

func benchMatVec(b *testing.B, d *Device, typ quant.Type, rows, cols, n int) {
	x := bench{b, d}
	bytes, err := quant.Bytes(typ, cols, rows)
	if err != nil {
		b.Fatal(err)
	}
	copies := int(min(max(200<<20/bytes, 1), 8))
	var ws []op.Weight
	for range copies {
		ws = append(ws, x.typed(typ, rows, cols))
	}
	in, out := x.buffer(cols), x.buffer(rows)
	const launches = 64
	p := x.program(func(r op.Builder) {
		r.Input(in)
		for i := range launches {
			r.MatVec(out, ws[i%copies], in)
		}
	})
	data := make([]float32, n*cols)
	x.run(p, op.Frame{N: n}, data, nil)
	for b.Loop() {
		x.run(p, op.Frame{N: n}, data, nil)
	}
	per := b.Elapsed().Seconds() / float64(b.N) / launches
	b.ReportMetric(float64(bytes)/per/1e9, "GB/s")
	b.ReportMetric(per*1e6, "us/launch")
}

// BenchmarkDispatch reports the cost of small dispatches: in a chain where each needs the one before, and where none needs another.
func BenchmarkDispatch(b *testing.B) {
	d := openTest(b, Options{})
	for _, c := range []struct {
		n     int
		chain bool
	}{{1, true}, {100, true}, {500, true}, {500, false}} {
		b.Run(fmt.Sprintf("%d/chain=%v", c.n, c.chain), func(b *testing.B) {
			x := bench{b, d}
			var outs []op.Buffer
			for range 51 {
				outs = append(outs, x.buffer(128))
			}
			p := x.program(func(r op.Builder) {
				r.Input(outs[0])
				for i := range c.n {
					from := 0
					if c.chain {
						from = i % 50
					}
					r.SiluMul(outs[i%50+1], outs[from], outs[from])
				}
			})
			in := make([]float32, 128)
			before := d.Stats()
			for b.Loop() {
				x.run(p, op.Frame{N: 1}, in, nil)
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N)/float64(c.n), "us/dispatch")
			b.ReportMetric(float64((d.Stats().Encoding-before.Encoding).Microseconds())/float64(b.N)/float64(c.n), "encode-us/dispatch")
		})
	}
}

// BenchmarkReadback reports an upload of a frame, an empty submit and a readback.
func BenchmarkReadback(b *testing.B) {
	d := openTest(b, Options{})
	for _, width := range []int{4, 2048, 151936} {
		b.Run(fmt.Sprintf("%d_bytes", width*4), func(b *testing.B) {
			x := bench{b, d}
			buf := x.buffer(width)
			p := x.program(func(r op.Builder) { r.Input(buf); r.Output(buf) })
			in, out := make([]float32, width), &op.Out{Hidden: make([]float32, width)}
			b.ReportAllocs()
			for b.Loop() {
				x.run(p, op.Frame{N: 1}, in, out)
			}
		})
	}
}

// BenchmarkLoad reports the speed of repacking and uploading.
func BenchmarkLoad(b *testing.B) {
	d := openTest(b, Options{})
	const rows, cols = 16384, 2048
	b.SetBytes(rows * cols / 32 * 34)
	for b.Loop() {
		w := must[op.Weight](b)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.Q8_0, Rows: rows, Cols: cols, Src: new(blocks)}))
		w.Close()
	}
}

// dense is the shape of a model of the qwen3 kind.
type dense struct {
	name                             string
	layers, width, heads, kvHeads, k int // k: values per head
	ff, vocab                        int
	big                              bool
}

var denseModels = []dense{
	{"mini", 12, 192, 3, 1, 64, 512, 2048, false},
	{"0.6B", 28, 1024, 16, 8, 128, 3072, 151936, true},
	{"1.7B", 28, 2048, 16, 8, 128, 6144, 151936, true},
}

// build loads random weights and records a whole model for runs of up to cols columns.
func (m dense) build(x bench, ctx, cols int) op.Program {
	cols = max(cols, op.MaxCols)
	q, kv := m.heads*m.k, m.kvHeads*m.k
	buffer := func(width int) op.Buffer { return x.wide(width, cols) }
	h, xn, qb, kb, vb, att := buffer(m.width), buffer(m.width), buffer(q), buffer(kv), buffer(kv), buffer(q)
	gate, up, prod := buffer(m.ff), buffer(m.ff), buffer(m.ff)
	last, logits := x.buffer(m.width), x.buffer(m.vocab)
	rope := must[op.Rope](x.b)(x.d.Rope(m.k, 1e6, ctx))
	x.b.Cleanup(rope.Close)
	table := x.weight(m.vocab, m.width)
	return x.programOf(cols, func(r op.Builder) {
		r.Embed(h, table)
		for range m.layers {
			cache := must[op.KV](x.b)(x.d.KV("kv", ctx, kv, op.KVF16))
			x.b.Cleanup(cache.Close)
			r.RMSNorm(xn, h, x.vector(m.width), 1e-6)
			r.MatVec(qb, x.weight(q, m.width), xn)
			r.MatVec(kb, x.weight(kv, m.width), xn)
			r.MatVec(vb, x.weight(kv, m.width), xn)
			r.NormRope(qb, x.vector(m.k), m.heads, rope, 1e-6)
			r.NormRope(kb, x.vector(m.k), m.kvHeads, rope, 1e-6)
			r.StoreKV(cache, kb, vb)
			r.Attend(att, qb, cache, m.heads, m.kvHeads)
			r.MatVecAdd(h, x.weight(m.width, q), att)
			r.RMSNorm(xn, h, x.vector(m.width), 1e-6)
			r.MatVec(gate, x.weight(m.ff, m.width), xn)
			r.MatVec(up, x.weight(m.ff, m.width), xn)
			r.SiluMul(prod, gate, up)
			r.MatVecAdd(h, x.weight(m.width, m.ff), prod)
		}
		r.Tail(last, h)
		r.RMSNorm(xn, last, x.vector(m.width), 1e-6)
		r.MatVec(logits, table, xn)
		r.Logits(logits)
	})
}

// BenchmarkToken reports a greedy token of a whole model of random weights, and a prefill of 16 and of 512 columns, with where the
// processor's time goes: all but ahead-us and wait-us is time in which the GPU has nothing to do.
func BenchmarkToken(b *testing.B) {
	d := openTest(b, Options{})
	for _, m := range denseModels {
		for _, n := range []int{1, 16, 512} {
			b.Run(fmt.Sprintf("%s/cols=%d", m.name, n), func(b *testing.B) {
				if m.big && d.Info().Software {
					b.Skip("left out on a software adapter")
				}
				began := time.Now()
				p := m.build(bench{b, d}, 2048, n)
				built := time.Since(began)
				out := &op.Out{K: 1, Top: [][]op.Candidate{make([]op.Candidate, 0, 1)}}
				f := op.Frame{N: n, HeadFrom: n - 1, Tokens: make([]int32, n)}
				for range 4 { // the first run clears memory
					bench{b, d}.run(p, f, nil, out)
				}
				before, submitting, recording := d.Stats(), d.submitting.Load(), d.recording.Load()
				b.ReportAllocs()
				runs := 0
				for b.Loop() {
					f.Pos = runs * n % 1024
					bench{b, d}.run(p, f, nil, out)
					runs++
				}
				after := d.Stats()
				b.ReportMetric(float64(after.Launches-before.Launches)/float64(runs), "launches/run")
				b.ReportMetric(float64(after.Readbacks-before.Readbacks)/float64(runs), "readbacks/run")
				b.ReportMetric(float64(n*runs)/b.Elapsed().Seconds(), "tok/s")
				us := func(t time.Duration) float64 { return t.Seconds() * 1e6 / float64(runs) }
				encode, wait := after.Encoding-before.Encoding, after.Waiting-before.Waiting
				submit, record := time.Duration(d.submitting.Load()-submitting), time.Duration(d.recording.Load()-recording)
				b.ReportMetric(us(encode-submit), "encode-us") // what encoding ahead left over
				b.ReportMetric(us(submit), "submit-us")
				b.ReportMetric(us(record), "ahead-us") // encoding of the next run while the GPU works
				b.ReportMetric(us(wait), "wait-us")
				b.ReportMetric(us(b.Elapsed()-encode-record-wait), "rest-us") // uploads, steps, reading results
				b.ReportMetric(built.Seconds(), "build-s")
			})
		}
	}
}
