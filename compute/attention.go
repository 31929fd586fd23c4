package compute

import (
	"pooled/compute/gguf"
	"pooled/compute/op"
)

// attention is grouped attention with normalized, rotated queries and keys: steps 1 to 7 of spec engine.md 3.2, and with
// a gate those of 3.4.
type attention struct {
	width                int // of a hidden state
	heads, kvHeads, head int // query heads, key/value heads, values per head
	rot                  int // rotated values of each head
	theta                float64
	eps                  float32
	gated                bool
}

func newAttention(n *numbers, g *graph, gated bool) *attention {
	a := &attention{width: g.width, eps: g.eps, gated: gated}
	a.heads = n.count("attention.head_count", 1, maxHeads)
	a.kvHeads = n.countOr("attention.head_count_kv", 1, maxHeads, a.heads)
	a.head = n.countOr("attention.key_length", 1, maxWidth, g.width/a.heads)
	a.rot = n.countOr("rope.dimension_count", 2, maxWidth, a.head)
	a.theta = n.positive("rope.freq_base", 1e12)
	switch value := n.countOr("attention.value_length", 1, maxWidth, a.head); {
	case n.err != nil:
	case value != a.head:
		n.fail("attention.value_length", "values of %d beside keys of %d", value, a.head)
	case a.heads%a.kvHeads != 0:
		n.fail("attention.head_count_kv", "%d query heads can't share %d key heads", a.heads, a.kvHeads)
	case a.heads*a.head > maxWidth:
		n.fail("attention.head_count", "%d heads of %d values, at most %d in all", a.heads, a.head, maxWidth)
	case a.head < 2 || a.head%2 != 0:
		n.fail("attention.key_length", "%d is not even", a.head)
	case a.rot%2 != 0 || a.rot > a.head:
		n.fail("rope.dimension_count", "%d of %d can't be rotated in pairs", a.rot, a.head)
	}
	return a
}

func (a *attention) kvPerPos(t op.KVType) int64 {
	values := int64(2 * a.kvHeads * a.head)
	if t == op.KVF32 {
		return 4 * values
	}
	return 2 * values
}

func (a *attention) tensors(_ *gguf.File, p string) []want {
	d, q, kv := a.width, a.heads*a.head, a.kvHeads*a.head
	rows := q
	if a.gated {
		rows = 2 * q
	}
	return []want{
		matrix(p+"attn_q.weight", d, rows),
		matrix(p+"attn_k.weight", d, kv),
		matrix(p+"attn_v.weight", d, kv),
		vector(p+"attn_q_norm.weight", a.head),
		vector(p+"attn_k_norm.weight", a.head),
		matrix(p+"attn_output.weight", q, d),
	}
}

type heldAttention struct {
	a           *attention
	qg, gate    op.Buffer // with a gate only
	q, k, v, at op.Buffer
	rope        op.Rope
}

func (a *attention) begin(l *loader) held {
	q, kv := a.heads*a.head, a.kvHeads*a.head
	h := &heldAttention{a: a}
	if a.gated {
		h.qg, h.gate = l.buffer("q and gate", 2*q), l.buffer("attention gate", q)
	}
	h.q, h.k, h.v, h.at = l.buffer("q", q), l.buffer("k", kv), l.buffer("v", kv), l.buffer("att", q)
	h.rope = l.rope(a.rot, a.theta)
	return h
}

func (h *heldAttention) layer(l *loader, name string, w []op.Weight) func(b op.Builder, x, xn op.Buffer) {
	cache := h.cache(l, name)
	return func(b op.Builder, x, xn op.Buffer) { h.record(b, w, cache, x, xn) }
}

func (h *heldAttention) cache(l *loader, name string) op.KV {
	return l.kv("kv "+name, h.a.kvHeads*h.a.head)
}

func (h *heldAttention) record(b op.Builder, w []op.Weight, cache op.KV, x, xn op.Buffer) {
	a := h.a
	if a.gated {
		b.MatVec(h.qg, w[0], xn)
		b.Deinterleave(h.q, h.gate, h.qg, a.heads)
	} else {
		b.MatVec(h.q, w[0], xn)
	}
	b.MatVec(h.k, w[1], xn)
	b.MatVec(h.v, w[2], xn)
	b.NormRope(h.q, w[3], a.heads, h.rope, a.eps)
	b.NormRope(h.k, w[4], a.kvHeads, h.rope, a.eps)
	b.StoreKV(cache, h.k, h.v)
	b.Attend(h.at, h.q, cache, a.heads, a.kvHeads)
	if a.gated {
		b.SigmoidMul(h.at, h.gate)
	}
	b.MatVecAdd(x, w[5], h.at)
}

// keys is the part of record that later positions need.
func (h *heldAttention) keys(b op.Builder, w []op.Weight, cache op.KV, xn op.Buffer) {
	b.MatVec(h.k, w[1], xn)
	b.MatVec(h.v, w[2], xn)
	b.NormRope(h.k, w[4], h.a.kvHeads, h.rope, h.a.eps)
	b.StoreKV(cache, h.k, h.v)
}
