package compute

import (
	"fmt"

	"pooled/compute/gguf"
	"pooled/compute/op"
)

// Bounds on the numbers of a model file, well above any model that fits into a room.
const (
	maxLayers = 1 << 12
	maxWidth  = 1 << 20
	maxHeads  = 1 << 12
	maxCtx    = 1 << 24
)

// qwen3 is the dense architecture of spec engine.md 3.2: grouped attention with normalized, rotated queries and keys,
// and a gated feed-forward network.
type qwen3 struct {
	s                    shape
	heads, kvHeads, head int // query heads, key/value heads, values per head
	ff                   int // width of the feed-forward network
	rot                  int // rotated values of each head
	theta                float64
}

func newQwen3(f *gguf.File) (graph, error) {
	n := &numbers{f: f, prefix: "qwen3"}
	g := &qwen3{s: shape{
		layers: n.count("block_count", 1, maxLayers),
		width:  n.count("embedding_length", 1, maxWidth),
		ctxMax: n.count("context_length", 1, maxCtx),
		eps:    float32(n.positive("attention.layer_norm_rms_epsilon", 1)),
	}}
	g.ff = n.count("feed_forward_length", 1, maxWidth)
	g.heads = n.count("attention.head_count", 1, maxHeads)
	g.kvHeads = n.countOr("attention.head_count_kv", 1, maxHeads, g.heads)
	g.head = n.countOr("attention.key_length", 1, maxWidth, g.s.width/g.heads)
	g.rot = n.countOr("rope.dimension_count", 2, maxWidth, g.head)
	g.theta = n.positive("rope.freq_base", 1e12)
	switch value := n.countOr("attention.value_length", 1, maxWidth, g.head); {
	case n.err != nil:
	case value != g.head:
		n.fail("attention.value_length", "values of %d beside keys of %d", value, g.head)
	case g.heads%g.kvHeads != 0:
		n.fail("attention.head_count_kv", "%d query heads can't share %d key heads", g.heads, g.kvHeads)
	case g.heads*g.head > maxWidth:
		n.fail("attention.head_count", "%d heads of %d values, at most %d in all", g.heads, g.head, maxWidth)
	case g.head%2 != 0:
		n.fail("attention.key_length", "%d is odd", g.head)
	case g.rot%2 != 0 || g.rot > g.head:
		n.fail("rope.dimension_count", "%d of %d can't be rotated in pairs", g.rot, g.head)
	}
	if scaling := f.StrOr("qwen3.rope.scaling.type", "none"); scaling != "none" {
		n.fail("rope.scaling.type", "%.32q is not supported", scaling)
	}
	return g, n.err
}

func (g *qwen3) shape() shape { return g.s }

func (g *qwen3) kvPerPos(t op.KVType) int64 {
	values := int64(2 * g.kvHeads * g.head)
	if t == op.KVF32 {
		return 4 * values
	}
	return 2 * values
}

func (g *qwen3) tensors(layer int) []want {
	d, q, kv := g.s.width, g.heads*g.head, g.kvHeads*g.head
	list := []want{
		{"attn_norm", []int{d}},
		{"attn_q", []int{d, q}},
		{"attn_k", []int{d, kv}},
		{"attn_v", []int{d, kv}},
		{"attn_q_norm", []int{g.head}},
		{"attn_k_norm", []int{g.head}},
		{"attn_output", []int{q, d}},
		{"ffn_norm", []int{d}},
		{"ffn_gate", []int{d, g.ff}},
		{"ffn_up", []int{d, g.ff}},
		{"ffn_down", []int{g.ff, d}},
	}
	for i := range list {
		list[i].name = fmt.Sprintf("blk.%d.%s.weight", layer, list[i].name)
	}
	return list
}

// qwen3Stack is loaded layers. The buffers are shared: layers run one after the other.
type qwen3Stack struct {
	g                 *qwen3
	xn, q, k, v, att  op.Buffer
	gate, up, product op.Buffer
	rope              op.Rope
	layers            []qwen3Layer
}

type qwen3Layer struct {
	w  []op.Weight // in the order of qwen3.tensors
	kv op.KV
}

func (g *qwen3) begin(l *loader) stack {
	q, kv := g.heads*g.head, g.kvHeads*g.head
	return &qwen3Stack{
		g:       g,
		xn:      l.buffer("xn", g.s.width),
		q:       l.buffer("q", q),
		k:       l.buffer("k", kv),
		v:       l.buffer("v", kv),
		att:     l.buffer("att", q),
		gate:    l.buffer("gate", g.ff),
		up:      l.buffer("up", g.ff),
		product: l.buffer("product", g.ff),
		rope:    l.rope(g.rot, g.theta),
	}
}

func (s *qwen3Stack) load(l *loader, layer int) {
	x := qwen3Layer{}
	for _, w := range s.g.tensors(layer) {
		x.w = append(x.w, l.weight(w))
	}
	x.kv = l.kv(fmt.Sprintf("kv %d", layer), s.g.kvHeads*s.g.head)
	s.layers = append(s.layers, x)
}

func (s *qwen3Stack) record(b op.Builder, x op.Buffer) {
	for _, l := range s.layers {
		s.attention(b, x, l.w[:7], l.kv)
		s.feedForward(b, x, l.w[7:])
	}
}

// attention is steps 1 to 7a of spec engine.md 3.2: x += Wo attend(q, k, v).
func (s *qwen3Stack) attention(b op.Builder, x op.Buffer, w []op.Weight, cache op.KV) {
	g := s.g
	b.RMSNorm(s.xn, x, w[0], g.s.eps)
	b.MatVec(s.q, w[1], s.xn)
	b.MatVec(s.k, w[2], s.xn)
	b.MatVec(s.v, w[3], s.xn)
	b.NormRope(s.q, w[4], g.heads, s.rope, g.s.eps)
	b.NormRope(s.k, w[5], g.kvHeads, s.rope, g.s.eps)
	b.StoreKV(cache, s.k, s.v)
	b.Attend(s.att, s.q, cache, g.heads, g.kvHeads)
	b.MatVecAdd(x, w[6], s.att)
}

// feedForward is step 8: x += Wdown (silu(Wgate xn) * (Wup xn)).
func (s *qwen3Stack) feedForward(b op.Builder, x op.Buffer, w []op.Weight) {
	b.RMSNorm(s.xn, x, w[0], s.g.s.eps)
	b.MatVec(s.gate, w[1], s.xn)
	b.MatVec(s.up, w[2], s.xn)
	b.SiluMul(s.product, s.gate, s.up)
	b.MatVecAdd(x, w[3], s.product)
}
