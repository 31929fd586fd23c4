package ref

import (
	"pooled/compute/op"
)

// The operations of the hybrid and the mixture-of-experts architectures.

func (b *builder) Deinterleave(a, y, x op.Buffer, heads int) {
	m := b.buffers("Deinterleave", a, y, x)
	if b.err != nil {
		return
	}
	b.require(heads > 0 && m[0].width%max(1, heads) == 0 && m[1].width == m[0].width && m[2].width == 2*m[0].width, "Deinterleave",
		"%d heads, widths %d and %d of %d", heads, m[0].width, m[1].width, m[2].width)
	if b.require(m[0] != m[1] && m[0] != m[2] && m[1] != m[2], "Deinterleave", "reads and writes buffer %s", m[2].name) {
		b.add("Deinterleave", &deinterleave{m[0], m[1], m[2], heads})
	}
}

func (b *builder) SigmoidMul(x, g op.Buffer) {
	m := b.buffers("SigmoidMul", x, g)
	if b.err == nil && b.require(m[0].width == m[1].width, "SigmoidMul", "widths %d and %d", m[0].width, m[1].width) {
		b.add("SigmoidMul", &sigmoidMul{m[0], m[1]})
	}
}

// matrix decodes a small weight.
func (b *builder) matrix(name string, w op.Weight, rows, cols int) []float32 {
	mine := use[*weight](b, name, w)
	if b.err != nil || !b.require(mine.spec.Rows == rows && mine.spec.Cols == cols, name,
		"weight %s is %d x %d, want %d x %d", mine.spec.Name, mine.spec.Rows, mine.spec.Cols, rows, cols) {
		return nil
	}
	v := make([]float32, rows*cols)
	for r := range rows {
		mine.decode(v[r*cols:(r+1)*cols], r)
	}
	return v
}

func (b *builder) Conv(out, x op.Buffer, w op.Weight, st op.Recurrent) {
	m, s := b.buffers("Conv", out, x), use[*recurrent](b, "Conv", st)
	if b.err != nil || !b.require(m[0].width == s.spec.Channels && m[1].width == s.spec.Channels, "Conv",
		"widths %d and %d, want %d", m[0].width, m[1].width, s.spec.Channels) {
		return
	}
	taps := b.matrix("Conv", w, s.spec.Channels, s.spec.Taps)
	b.require(!b.p.hasTail, "Conv", "recorded after Tail")
	b.p.states = append(b.p.states, s)
	b.add("Conv", &conv{m[0], m[1], taps, s})
}

func (b *builder) Delta(out, y, alpha, beta op.Buffer, a, dt op.Weight, st op.Recurrent, keyHeads int) {
	m, s := b.buffers("Delta", out, y, alpha, beta), use[*recurrent](b, "Delta", st)
	if b.err != nil {
		return
	}
	heads, dim := s.spec.Heads, s.spec.Dim
	b.require(keyHeads > 0 && keyHeads <= heads && s.spec.Channels == (2*keyHeads+heads)*dim, "Delta",
		"%d key heads and %d value heads of %d in %d channels", keyHeads, heads, dim, s.spec.Channels)
	b.require(m[0].width == heads*dim && m[1].width == s.spec.Channels && m[2].width == heads && m[3].width == heads, "Delta",
		"widths %d, %d, %d and %d for %d heads of %d", m[0].width, m[1].width, m[2].width, m[3].width, heads, dim)
	b.require(m[0] != m[1], "Delta", "reads and writes buffer %s", m[0].name)
	b.require(!b.p.hasTail, "Delta", "recorded after Tail")
	b.p.states = append(b.p.states, s)
	va, vdt := b.vector("Delta", a, heads), b.vector("Delta", dt, heads)
	b.add("Delta", &delta{m[0], m[1], m[2], m[3], va, vdt, s, keyHeads})
}

func (b *builder) NormGate(out, x, z op.Buffer, w op.Weight, heads int, eps float32) {
	m := b.buffers("NormGate", out, x, z)
	if b.err != nil || !b.require(heads > 0 && m[0].width%max(1, heads) == 0 && m[1].width == m[0].width && m[2].width == m[0].width, "NormGate",
		"%d heads, widths %d, %d and %d", heads, m[0].width, m[1].width, m[2].width) {
		return
	}
	b.require(m[0] != m[2], "NormGate", "reads and writes buffer %s", m[0].name)
	v := b.vector("NormGate", w, m[0].width/heads)
	b.add("NormGate", &normGate{m[0], m[1], m[2], v, heads, float64(eps)})
}

func (b *builder) Route(sel, logits op.Buffer, used int) {
	m := b.buffers("Route", sel, logits)
	if b.err == nil && b.require(used > 0 && used <= min(op.MaxTopK, m[1].width) && m[0].width == 2*used, "Route",
		"%d of %d into columns of %d", used, m[1].width, m[0].width) {
		b.add("Route", &route{m[0], m[1], used})
	}
}

func (b *builder) Experts(out, x, sel op.Buffer, gate, up, down op.Weight, experts, used int) {
	m := b.buffers("Experts", out, x, sel)
	wg, wu, wd := use[*weight](b, "Experts", gate), use[*weight](b, "Experts", up), use[*weight](b, "Experts", down)
	if b.err != nil || !b.require(experts > 0 && used > 0 && used <= experts && m[2].width == 2*used, "Experts",
		"%d of %d experts chosen by columns of %d", used, experts, m[2].width) {
		return
	}
	rows := wg.spec.Rows / experts
	b.require(rows > 0 && wg.spec.Rows == rows*experts && wu.spec.Rows == rows*experts && wd.spec.Cols == rows, "Experts",
		"%d experts in %d gate rows and %d up rows, %d columns down", experts, wg.spec.Rows, wu.spec.Rows, wd.spec.Cols)
	b.require(wg.spec.Cols == m[1].width && wu.spec.Cols == m[1].width && wd.spec.Rows == m[0].width*experts, "Experts",
		"%d and %d columns of columns of %d, %d rows down into %d", wg.spec.Cols, wu.spec.Cols, m[1].width, wd.spec.Rows, m[0].width)
	if b.require(m[0] != m[1] && m[0] != m[2], "Experts", "reads and writes buffer %s", m[0].name) {
		in := &expertInputs{m[1], m[2], wg, wu, rows, used, make([]float32, b.p.cols*used*rows), grainOf(2 * wg.spec.Cols)}
		b.add("Experts", in)
		b.add("Experts", &expertOutputs{m[0], m[2], wd, in, grainOf(used * rows)})
	}
}

func (b *builder) GateAdd(x, y, s op.Buffer) {
	m := b.buffers("GateAdd", x, y, s)
	if b.err == nil && b.require(m[0].width == m[1].width && m[2].width == 1, "GateAdd",
		"widths %d and %d, %d gates", m[0].width, m[1].width, m[2].width) {
		b.add("GateAdd", &gateAdd{m[0], m[1], m[2]})
	}
}

func (b *builder) Concat(out, a, y op.Buffer) {
	m := b.buffers("Concat", out, a, y)
	if b.err != nil {
		return
	}
	b.require(m[0] != m[1] && m[0] != m[2], "Concat", "reads and writes buffer %s", m[0].name)
	if b.require(m[0].width == m[1].width+m[2].width, "Concat", "widths %d and %d into %d", m[1].width, m[2].width, m[0].width) {
		b.add("Concat", &concat{m[0], m[1], m[2]})
	}
}
