package gpu

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pooled/compute/op"
)

// attended are the attention layers of the catalogue's models.
var attended = []struct {
	name                    string
	heads, kvHeads, hd, rot int
	small                   bool
}{
	{"mini", 3, 1, 64, 64, true},
	{"1.7B", 16, 8, 128, 128, false},
	{"27B", 24, 4, 256, 64, false},
	{"35B", 16, 2, 256, 64, false},
}

// attendVariants are ways to cut attention: "auto" is what a model gets, the others change it.
var attendVariants = []struct {
	name string
	set  func(*attendShape)
}{
	{"auto", nil},
	{"apart", func(s *attendShape) { s.apart = true }},
	{"direct=256", func(s *attendShape) { s.direct = 256 }},
	{"direct=512", func(s *attendShape) { s.direct = 512 }},
	{"direct=1024", func(s *attendShape) { s.direct = 1024 }},
	{"wg=128", func(s *attendShape) { s.wg = 128 }},
	{"wg=128,step=32", func(s *attendShape) { s.wg, s.step = 128, 32 }},
	{"splits=32", func(s *attendShape) { s.splits = 32 }},
	{"splits=64", func(s *attendShape) { s.splits = 64 }},
	{"wg=128,splits=64", func(s *attendShape) { s.wg, s.splits = 128, 64 }},
	{"wg=128,apart", func(s *attendShape) { s.wg, s.apart = 128, true }},
	{"held=4", func(s *attendShape) { s.held = 4 }},
	{"held=2", func(s *attendShape) { s.held = 2 }},
}

// warm keeps a GPU busy until its clock is up.
func warm(b *testing.B, d *Device) {
	if d.Info().Software {
		return
	}
	x := bench{b, d}
	w, in, out := x.weight(4096, 4096), x.buffer(4096), x.buffer(4096)
	p := x.program(func(r op.Builder) {
		for range 64 {
			r.MatVec(out, w, in)
		}
	})
	for began := time.Now(); time.Since(began) < 500*time.Millisecond; {
		x.run(p, op.Frame{N: op.MaxCols}, nil, nil)
	}
}

// BenchmarkAttend reports rotation, store and attention of a layer by position, over caches of several layers, so that they miss the
// GPU's cache as they do in a model. The small product that makes each layer's queries and keys is measured apart and taken off.
func BenchmarkAttend(b *testing.B) {
	d := openTest(b, Options{})
	soft := d.Info().Software
	warm(b, d)
	for _, m := range attended {
		for _, pos := range []int{100, 300, 500, 1000, 4000, 8000, 16000} {
			for _, n := range []int{1, 16} {
				for i, v := range attendVariants {
					long := pos == 500 || pos == 8000
					if soft != m.small || soft && pos > 1000 || !soft && pos < 500 || !soft && pos == 1000 ||
						n > 1 && !soft && !long ||
						i > 0 && (n > 1 || soft && !strings.Contains(v.name, "direct") || !soft && !long ||
							strings.Contains(v.name, "direct") && pos > 1000 || strings.Contains(v.name, "held") && m.heads/m.kvHeads < 4) {
						continue
					}
					b.Run(fmt.Sprintf("%s/pos=%d/cols=%d/%s", m.name, pos, n, v.name), func(b *testing.B) {
						d.attend = v.set
						defer func() { d.attend = nil }()
						const layers = 6
						x := bench{b, d}
						capacity := (pos + 16 + 1023) / 1024 * 1024
						var caches []op.KV
						for range layers {
							c := must[op.KV](b)(d.KV("kv", capacity, m.kvHeads*m.hd, op.KVF16))
							b.Cleanup(c.Close)
							caches = append(caches, c)
						}
						q, k, val := x.buffer(m.heads*m.hd), x.buffer(m.kvHeads*m.hd), x.buffer(m.kvHeads*m.hd)
						out, in := x.buffer(m.heads*m.hd), x.buffer(32)
						wq, wk, wv := x.weight(m.heads*m.hd, 32), x.weight(m.kvHeads*m.hd, 32), x.weight(m.kvHeads*m.hd, 32)
						rope := must[op.Rope](b)(d.Rope(m.rot, 1e6, capacity))
						b.Cleanup(rope.Close)
						norm := x.vector(m.hd)
						record := func(whole bool) op.Program {
							return x.program(func(r op.Builder) {
								for _, c := range caches {
									r.MatVec(q, wq, in)
									r.MatVec(k, wk, in)
									r.MatVec(val, wv, in)
									if whole {
										r.NormRope(q, norm, m.heads, rope, 1e-6)
										r.NormRope(k, norm, m.kvHeads, rope, 1e-6)
										r.StoreKV(c, k, val)
										r.Attend(out, q, c, m.heads, m.kvHeads)
									}
								}
								r.MatVec(q, wq, in)
								r.MatVec(k, wk, in)
								r.MatVec(val, wv, in)
							})
						}
						rest, all := record(false), record(true)
						f := op.Frame{N: n, Pos: pos}
						var took time.Duration
						x.run(all, f, nil, nil)
						x.run(rest, f, nil, nil)
						before, runs := d.Stats().Launches, 0
						for b.Loop() {
							t0 := time.Now()
							x.run(all, f, nil, nil)
							t1 := time.Now()
							x.run(rest, f, nil, nil)
							took += t1.Sub(t0) - time.Since(t1)
							runs++
						}
						b.ReportMetric(took.Seconds()*1e6/float64(runs)/layers, "us/layer")
						b.ReportMetric(float64(d.Stats().Launches-before-int64(2*runs*(layers+1)))/float64(runs)/layers, "launches/layer")
					})
				}
			}
		}
	}
}

// BenchmarkAttendWide reports attention of a wide program's 512 columns by position and by tile; "auto" is what a model gets,
// "plain" the kernel for single columns.
func BenchmarkAttendWide(b *testing.B) {
	d := openTest(b, Options{})
	if d.Info().Software {
		b.Skip("left out on a software adapter")
	}
	tiles := []struct {
		name string
		tile attendTile
	}{{"auto", attendTile{}}, {"64,16,16", attendTile{64, 16, 16}}, {"64,32,32", attendTile{64, 32, 32}}, {"32,16,16", attendTile{32, 16, 16}},
		{"32,32,32", attendTile{32, 32, 32}}, {"plain", attendTile{}}}
	for _, m := range attended[1:] {
		for _, pos := range []int{0, 2048, 8192} {
			for _, v := range tiles {
				if v.name == "plain" && pos != 0 {
					continue
				}
				b.Run(fmt.Sprintf("%s/pos=%d/%s", m.name, pos, v.name), func(b *testing.B) {
					d.tiles, d.plain = v.tile, v.name == "plain"
					defer func() { d.tiles, d.plain = attendTile{}, false }()
					x := bench{b, d}
					const n, launches = op.MaxWide, 4
					c := must[op.KV](b)(d.KV("kv", pos+n, m.kvHeads*m.hd, op.KVF16))
					b.Cleanup(c.Close)
					q, out := x.wide(m.heads*m.hd, n), x.wide(m.heads*m.hd, n)
					p := x.programOf(n, func(r op.Builder) {
						for range launches {
							r.Attend(out, q, c, m.heads, m.kvHeads)
						}
					})
					f := op.Frame{N: n, Pos: pos}
					x.run(p, f, nil, nil)
					for b.Loop() {
						x.run(p, f, nil, nil)
					}
					per := b.Elapsed().Seconds() / float64(b.N) / launches
					pairs := float64(n)*float64(pos) + n*(n+1)/2
					b.ReportMetric(per*1e6, "us/layer")
					b.ReportMetric(4*pairs*float64(m.heads*m.hd)/per/1e12, "TFLOPS")
				})
			}
		}
	}
}
