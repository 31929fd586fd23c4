package compute

import (
	"pooled/compute/gguf"
	"pooled/compute/op"
)

// deltanet is the linear attention of spec engine.md 3.5: a short convolution and a matrix per value head.
type deltanet struct {
	width             int // of a hidden state
	taps              int
	dim               int // values of a head, of keys and of values
	keyHeads, vHeads  int
	eps               float32
	keys, values, all int // values of all key heads, of all value heads, and channels of the convolution
}

func newDeltanet(n *numbers, g *graph) *deltanet {
	d := &deltanet{width: g.width, eps: g.eps}
	d.taps = n.count("ssm.conv_kernel", 2, 64)
	d.dim = n.count("ssm.state_size", 1, maxHeads)
	d.keyHeads = n.count("ssm.group_count", 1, maxHeads)
	d.vHeads = n.count("ssm.time_step_rank", 1, maxHeads)
	d.keys, d.values = d.keyHeads*d.dim, d.vHeads*d.dim
	d.all = 2*d.keys + d.values
	switch inner := n.count("ssm.inner_size", 1, maxWidth); {
	case n.err != nil:
	case inner != d.values:
		n.fail("ssm.inner_size", "%d is not %d heads of %d", inner, d.vHeads, d.dim)
	case d.vHeads%d.keyHeads != 0:
		n.fail("ssm.group_count", "%d value heads can't share %d key heads", d.vHeads, d.keyHeads)
	case d.all > maxWidth:
		n.fail("ssm.inner_size", "%d channels, at most %d", d.all, maxWidth)
	}
	return d
}

func (d *deltanet) spec() op.RecurrentSpec {
	return op.RecurrentSpec{Channels: d.all, Taps: d.taps, Heads: d.vHeads, Dim: d.dim}
}

func (d *deltanet) tensors(_ *gguf.File, p string) []want {
	conv := matrix(p+"ssm_conv1d.weight", d.taps, d.all)
	conv.f32 = true
	return []want{
		matrix(p+"attn_qkv.weight", d.width, d.all),
		matrix(p+"attn_gate.weight", d.width, d.values),
		conv,
		matrix(p+"ssm_alpha.weight", d.width, d.vHeads),
		matrix(p+"ssm_beta.weight", d.width, d.vHeads),
		vector(p+"ssm_dt.bias", d.vHeads),
		vector(p+"ssm_a", d.vHeads),
		vector(p+"ssm_norm.weight", d.dim),
		matrix(p+"ssm_out.weight", d.values, d.width),
	}
}

type heldDeltanet struct {
	d              *deltanet
	u, y           op.Buffer // before and after the convolution
	z, alpha, beta op.Buffer
	o, gated       op.Buffer
}

func (d *deltanet) begin(l *loader) held {
	return &heldDeltanet{
		d: d,
		u: l.buffer("qkv", d.all), y: l.buffer("convolved", d.all),
		z: l.buffer("z", d.values), alpha: l.buffer("alpha", d.vHeads), beta: l.buffer("beta", d.vHeads),
		o: l.buffer("delta", d.values), gated: l.buffer("gated delta", d.values),
	}
}

func (h *heldDeltanet) layer(l *loader, name string, w []op.Weight) func(b op.Builder, x, xn op.Buffer) {
	d, state := h.d, l.recurrent("state "+name, h.d.spec())
	return func(b op.Builder, x, xn op.Buffer) {
		b.MatVec(h.u, w[0], xn)
		b.MatVec(h.z, w[1], xn)
		b.MatVec(h.alpha, w[3], xn)
		b.MatVec(h.beta, w[4], xn)
		b.Conv(h.y, h.u, w[2], state)
		b.Delta(h.o, h.y, h.alpha, h.beta, w[6], w[5], state, d.keyHeads)
		b.NormGate(h.gated, h.o, h.z, w[7], d.vHeads, d.eps)
		b.MatVecAdd(x, w[8], h.gated)
	}
}
