package compute

import (
	"pooled/compute/gguf"
	"pooled/compute/op"
)

// dense is the gated feed-forward network of spec engine.md 3.2 step 8: x += Wdown (silu(Wgate xn) * (Wup xn)).
type dense struct{ width, ff int }

func (d *dense) tensors(_ *gguf.File, p string) []want { return d.named(p, "") }

// named lists the three matrices under names that end with suffix.
func (d *dense) named(p, suffix string) []want {
	return []want{
		matrix(p+"ffn_gate"+suffix+".weight", d.width, d.ff),
		matrix(p+"ffn_up"+suffix+".weight", d.width, d.ff),
		matrix(p+"ffn_down"+suffix+".weight", d.ff, d.width),
	}
}

type heldDense struct{ gate, up, product op.Buffer }

func (d *dense) begin(l *loader) held { return d.buffers(l) }

func (d *dense) buffers(l *loader) *heldDense {
	return &heldDense{gate: l.buffer("gate", d.ff), up: l.buffer("up", d.ff), product: l.buffer("product", d.ff)}
}

func (h *heldDense) layer(_ *loader, _ string, w []op.Weight) func(b op.Builder, x, xn op.Buffer) {
	return func(b op.Builder, x, xn op.Buffer) {
		h.inner(b, w, xn)
		b.MatVecAdd(x, w[2], h.product)
	}
}

func (h *heldDense) inner(b op.Builder, w []op.Weight, xn op.Buffer) {
	b.MatVec(h.gate, w[0], xn)
	b.MatVec(h.up, w[1], xn)
	b.SiluMul(h.product, h.gate, h.up)
}

// experts is the mixture of experts of spec engine.md 3.6 with its shared expert.
type experts struct {
	width, ff     int // of one expert
	experts, used int
	shared        dense
}

func newExperts(n *numbers, g *graph) *experts {
	e := &experts{width: g.width}
	e.experts = n.count("expert_count", 1, maxExperts)
	e.used = n.count("expert_used_count", 1, min(e.experts, op.MaxTopK))
	if e.ff = n.countOr("expert_feed_forward_length", 1, maxWidth, 0); e.ff == 0 {
		all := n.count("feed_forward_length", 1, maxWidth)
		if e.ff = all / e.used; e.ff == 0 || all%e.used != 0 {
			n.fail("feed_forward_length", "%d for %d experts", all, e.used)
		}
	}
	shared := n.countOr("expert_shared_feed_forward_length", 1, maxWidth, 0)
	if shared == 0 {
		shared = n.count("feed_forward_length", 1, maxWidth)
	}
	e.shared = dense{g.width, shared}
	return e
}

// tensors knows both ways to store gates and ups: in two tensors, or in one with each expert's gate rows before its up
// rows.
func (e *experts) tensors(f *gguf.File, p string) []want {
	gate := want{name: p + "ffn_gate_exps.weight", dims: []int{e.width, e.ff, e.experts}}
	up := want{name: p + "ffn_up_exps.weight", dims: gate.dims}
	if both := p + "ffn_gate_up_exps.weight"; has(f, both) {
		gate.name, gate.half, up.name, up.half = both, 1, both, 2
	}
	return append([]want{
		matrix(p+"ffn_gate_inp.weight", e.width, e.experts),
		gate,
		up,
		{name: p + "ffn_down_exps.weight", dims: []int{e.ff, e.width, e.experts}},
		// A vector that is multiplied as a matrix of one row; draft blocks have it in BF16.
		{name: p + "ffn_gate_inp_shexp.weight", dims: []int{e.width}},
	}, e.shared.named(p, "_shexp")...)
}

func has(f *gguf.File, name string) bool {
	_, ok := f.Tensor(name)
	return ok
}

type heldExperts struct {
	e            *experts
	logits, sel  op.Buffer
	shared       *heldDense
	out, weights op.Buffer // of the shared expert: its output and its gate
}

func (e *experts) begin(l *loader) held {
	return &heldExperts{
		e:      e,
		logits: l.buffer("router", e.experts), sel: l.buffer("chosen experts", 2*e.used),
		shared: e.shared.buffers(l), out: l.buffer("shared expert", e.width), weights: l.buffer("shared gate", 1),
	}
}

func (h *heldExperts) layer(_ *loader, _ string, w []op.Weight) func(b op.Builder, x, xn op.Buffer) {
	e := h.e
	return func(b op.Builder, x, xn op.Buffer) {
		b.MatVec(h.logits, w[0], xn)
		b.Route(h.sel, h.logits, e.used)
		b.Experts(x, xn, h.sel, w[1], w[2], w[3], e.experts, e.used)
		h.shared.inner(b, w[5:], xn)
		b.MatVec(h.out, w[7], h.shared.product)
		b.MatVec(h.weights, w[4], xn)
		b.GateAdd(x, h.out, h.weights)
	}
}
