package gpu

import (
	"fmt"
	"testing"

	"pooled/compute/op"
)

// BenchmarkParts reports the launches of a 1.7B's token by kind, each kind by itself over the weights of all 28 layers, so that
// caches miss as they do in the model; the rest is a chain of that kind only.
func BenchmarkParts(b *testing.B) {
	d := openTest(b, Options{})
	if d.Info().Software {
		b.Skip("left out on a software adapter")
	}
	m := denseModels[len(denseModels)-1]
	q, kv := m.heads*m.k, m.kvHeads*m.k
	for _, kind := range layerKinds(m) {
		for _, n := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/cols=%d", kind.name, n), func(b *testing.B) {
				x := bench{b, d}
				p := layerParts{x.buffer(m.width), x.buffer(m.width), x.buffer(q), x.buffer(kv), x.buffer(kv), x.buffer(q),
					x.buffer(m.ff), x.buffer(m.ff), x.buffer(m.ff), must[op.Rope](b)(d.Rope(m.k, 1e6, 2048))}
				b.Cleanup(p.rope.Close)
				run := x.program(func(r op.Builder) {
					for range m.layers {
						kind.record(x, r, p)
					}
				})
				before := d.Stats()
				for range 3 {
					x.run(run, op.Frame{N: n, Pos: 500}, nil, nil)
				}
				launches := d.Stats().Launches - before.Launches
				for b.Loop() {
					x.run(run, op.Frame{N: n, Pos: 500}, nil, nil)
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N)/float64(m.layers), "us/layer")
				b.ReportMetric(float64(launches)/3/float64(m.layers), "launches/layer")
			})
		}
	}
}

// layerParts are the buffers of a layer.
type layerParts struct {
	h, xn, q, k, v, att, gate, up, prod op.Buffer
	rope                                op.Rope
}

// kind is a part of a layer.
type kind struct {
	name   string
	record func(x bench, r op.Builder, p layerParts)
}

func layerKinds(m dense) []kind {
	q, kv := m.heads*m.k, m.kvHeads*m.k
	return []kind{
		{"rmsnorm", func(x bench, r op.Builder, p layerParts) {
			r.RMSNorm(p.xn, p.h, x.vector(m.width), 1e-6)
			r.SigmoidMul(p.h, p.xn)
		}},
		{"sigmoid", func(x bench, r op.Builder, p layerParts) { r.SigmoidMul(p.h, p.xn); r.SigmoidMul(p.xn, p.h) }},
		{"norm+qkv", func(x bench, r op.Builder, p layerParts) {
			r.RMSNorm(p.xn, p.h, x.vector(m.width), 1e-6)
			r.MatVec(p.q, x.weight(q, m.width), p.xn)
			r.MatVec(p.k, x.weight(kv, m.width), p.xn)
			r.MatVec(p.v, x.weight(kv, m.width), p.xn)
		}},
		{"qkv", func(x bench, r op.Builder, p layerParts) {
			r.MatVec(p.q, x.weight(q, m.width), p.xn)
			r.MatVec(p.k, x.weight(kv, m.width), p.xn)
			r.MatVec(p.v, x.weight(kv, m.width), p.xn)
		}},
		{"rope,store,attend", func(x bench, r op.Builder, p layerParts) {
			cache := must[op.KV](x.b)(x.d.KV("kv", 2048, kv, op.KVF16))
			x.b.Cleanup(cache.Close)
			r.NormRope(p.q, x.vector(m.k), m.heads, p.rope, 1e-6)
			r.NormRope(p.k, x.vector(m.k), m.kvHeads, p.rope, 1e-6)
			r.StoreKV(cache, p.k, p.v)
			r.Attend(p.att, p.q, cache, m.heads, m.kvHeads)
		}},
		{"rope,store", func(x bench, r op.Builder, p layerParts) {
			cache := must[op.KV](x.b)(x.d.KV("kv", 2048, kv, op.KVF16))
			x.b.Cleanup(cache.Close)
			r.NormRope(p.q, x.vector(m.k), m.heads, p.rope, 1e-6)
			r.NormRope(p.k, x.vector(m.k), m.kvHeads, p.rope, 1e-6)
			r.StoreKV(cache, p.k, p.v)
		}},
		{"output", func(x bench, r op.Builder, p layerParts) { r.MatVecAdd(p.h, x.weight(m.width, q), p.att) }},
		{"norm+gate+up", func(x bench, r op.Builder, p layerParts) {
			r.RMSNorm(p.xn, p.h, x.vector(m.width), 1e-6)
			r.MatVec(p.gate, x.weight(m.ff, m.width), p.xn)
			r.MatVec(p.up, x.weight(m.ff, m.width), p.xn)
			r.SiluMul(p.prod, p.gate, p.up)
		}},
		{"down", func(x bench, r op.Builder, p layerParts) { r.MatVecAdd(p.h, x.weight(m.width, m.ff), p.prod) }},
	}
}
