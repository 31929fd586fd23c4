package gpu

import (
	"math"

	"pooled/compute/op"
	"pooled/compute/quant"
	"pooled/shaders"
)

// The operations of the hybrid and the mixture-of-experts architectures.

// Deinterleave is elementwise.
func (b *builder) Deinterleave(first, second, x op.Buffer, heads int) {
	m := b.buffers("Deinterleave", first, second, x)
	if b.err != nil || !b.require(heads > 0 && m[0].width%max(1, heads) == 0 && m[1].width == m[0].width && m[2].width == 2*m[0].width,
		"Deinterleave", "%d heads, widths %d and %d of %d", heads, m[0].width, m[1].width, m[2].width) ||
		!b.require(m[0] != m[1] && m[0] != m[2] && m[1] != m[2], "Deinterleave", "reads and writes buffer %s", m[2].name) {
		return
	}
	b.add(record{op: "Deinterleave", out2: m[1], kernel: "deinterleave", shape: byColumnY, x: groups(m[0].width, elementWG),
		consts: shaders.Consts{"WIDTH": uint32(m[0].width), "HD": uint32(m[0].width / heads), "WG": elementWG},
		views:  []view{m[2].view(), m[0].view(), m[1].view()}}, m[0], m[1], m[2])
}

// SigmoidMul is elementwise.
func (b *builder) SigmoidMul(x, g op.Buffer) {
	m := b.buffers("SigmoidMul", x, g)
	if b.err != nil || !b.require(m[0].width == m[1].width, "SigmoidMul", "widths %d and %d", m[0].width, m[1].width) ||
		!b.require(m[0] != m[1], "SigmoidMul", "reads and writes buffer %s", m[0].name) {
		return
	}
	b.add(record{op: "SigmoidMul", kernel: "sigmoid_mul", shape: byColumnY, x: groups(m[0].width, elementWG),
		consts: shaders.Consts{"WIDTH": uint32(m[0].width), "WG": elementWG},
		views:  []view{m[1].view(), m[0].view()}}, m[0], m[1])
}

// GateAdd is elementwise.
func (b *builder) GateAdd(x, y, s op.Buffer) {
	m := b.buffers("GateAdd", x, y, s)
	if b.err != nil || !b.require(m[0].width == m[1].width && m[2].width == 1, "GateAdd",
		"widths %d and %d, %d gates", m[0].width, m[1].width, m[2].width) ||
		!b.require(m[0] != m[1] && m[0] != m[2], "GateAdd", "reads and writes buffer %s", m[0].name) {
		return
	}
	b.add(record{op: "GateAdd", kernel: "gate_add", shape: byColumnY, x: groups(m[0].width, elementWG),
		consts: shaders.Consts{"WIDTH": uint32(m[0].width), "WG": elementWG},
		views:  []view{m[1].view(), m[2].view(), m[0].view()}}, m[0], m[1], m[2])
}

// Concat is elementwise.
func (b *builder) Concat(out, first, second op.Buffer) {
	m := b.buffers("Concat", out, first, second)
	if b.err != nil || !b.require(m[0] != m[1] && m[0] != m[2], "Concat", "reads and writes buffer %s", m[0].name) ||
		!b.require(m[0].width == m[1].width+m[2].width, "Concat", "widths %d and %d into %d", m[1].width, m[2].width, m[0].width) {
		return
	}
	b.add(record{op: "Concat", kernel: "concat", shape: byColumnY, x: groups(m[0].width, elementWG),
		consts: shaders.Consts{"FIRST": uint32(m[1].width), "WIDTH": uint32(m[0].width), "WG": elementWG},
		views:  []view{m[1].view(), m[2].view(), m[0].view()}}, m[0], m[1], m[2])
}

// NormGate takes one workgroup per head and column.
func (b *builder) NormGate(out, x, z op.Buffer, w op.Weight, heads int, eps float32) {
	m := b.buffers("NormGate", out, x, z)
	if b.err != nil || !b.require(heads > 0 && m[0].width%max(1, heads) == 0 && m[1].width == m[0].width && m[2].width == m[0].width,
		"NormGate", "%d heads, widths %d, %d and %d", heads, m[0].width, m[1].width, m[2].width) ||
		!b.require(m[0] != m[2] && m[1] != m[2], "NormGate", "reads and writes buffer %s", m[2].name) {
		return
	}
	v, ok := b.vector("NormGate", w, m[0].width/heads)
	if !ok {
		return
	}
	b.add(record{op: "NormGate", kernel: "norm_gate", shape: byColumnY, x: uint32(heads),
		consts: shaders.Consts{"HEADS": uint32(heads), "HD": uint32(m[0].width / heads), "WG": headNormWG},
		views:  []view{v, m[2].view(), m[1].view(), m[0].view()}, params: []uint32{math.Float32bits(eps)}}, m[0], m[1], m[2])
}

// state is b's own form of a recurrent state.
func (b *builder) state(name string, st op.Recurrent) (*recurrent, bool) {
	s, ok := use[*recurrent](b, name, st)
	if !ok || !b.require(!b.p.hasTail, name, "recorded after Tail") {
		return nil, false
	}
	b.p.states = append(b.p.states, s)
	return s, true
}

// Conv takes one thread per channel.
func (b *builder) Conv(out, x op.Buffer, w op.Weight, st op.Recurrent) {
	m := b.buffers("Conv", out, x)
	s, ok := b.state("Conv", st)
	t, ok2 := use[*weight](b, "Conv", w)
	if !ok || !ok2 || !b.require(m[0].width == s.spec.Channels && m[1].width == s.spec.Channels, "Conv",
		"widths %d and %d, want %d", m[0].width, m[1].width, s.spec.Channels) ||
		!b.require(m[0] != m[1], "Conv", "reads and writes buffer %s", m[0].name) ||
		!b.require(t.spec.Rows == s.spec.Channels && t.spec.Cols == s.spec.Taps, "Conv", "weight %s is %d x %d, want %d x %d",
			t.spec.Name, t.spec.Rows, t.spec.Cols, s.spec.Channels, s.spec.Taps) {
		return
	}
	if t.spec.Type != quant.F32 || len(t.pieces) != 1 {
		b.lacks("Conv", t)
		return
	}
	b.add(record{op: "Conv", kernel: "conv_causal", shape: byAll, x: groups(s.spec.Channels, elementWG), consts: s.convConsts(),
		views: []view{m[1].view(), t.pieces[0].arrays[0], m[0].view(), whole(s.window), s.keepView(0), s.keepView(1)}}, m[0], m[1])
}

// Delta takes the workgroups that deltaShape says.
func (b *builder) Delta(out, y, alpha, beta op.Buffer, a, dt op.Weight, st op.Recurrent, keyHeads int) {
	m := b.buffers("Delta", out, y, alpha, beta)
	s, ok := b.state("Delta", st)
	if !ok {
		return
	}
	heads, dim := s.spec.Heads, s.spec.Dim
	if !b.require(keyHeads > 0 && keyHeads <= heads && s.spec.Channels == (2*keyHeads+heads)*dim, "Delta",
		"%d key heads and %d value heads of %d in %d channels", keyHeads, heads, dim, s.spec.Channels) ||
		!b.require(m[0].width == heads*dim && m[1].width == s.spec.Channels && m[2].width == heads && m[3].width == heads, "Delta",
			"widths %d, %d, %d and %d for %d heads of %d", m[0].width, m[1].width, m[2].width, m[3].width, heads, dim) ||
		!b.require(m[0] != m[1] && m[0] != m[2] && m[0] != m[3], "Delta", "reads and writes buffer %s", m[0].name) {
		return
	}
	va, ok1 := b.vector("Delta", a, heads)
	vdt, ok2 := b.vector("Delta", dt, heads)
	if !ok1 || !ok2 {
		return
	}
	columns, grps := b.p.dev.deltaShape(s.spec)
	r := record{op: "Delta", kernel: "deltanet_step", shape: byAll, x: uint32(dim / columns), y: uint32(heads),
		consts: shaders.Consts{"HEADS": uint32(heads), "KEYHEADS": uint32(keyHeads), "DIM": uint32(dim), "COLUMNS": uint32(columns),
			"GROUPS": uint32(grps), "WG": uint32(max(columns*grps, 16))},
		views: []view{m[1].view(), m[2].view(), m[3].view(), va, vdt, m[0].view(), whole(s.state), whole(s.kept)}}
	if !b.wide() { // an undo plays the narrow one
		s.delta, s.needs = &r, b.p.uses[len(b.p.uses)-2:len(b.p.uses):len(b.p.uses)]
	}
	b.add(r, m[0], m[1], m[2], m[3])
}

// deltaShape is how many values of a head a workgroup treats, and in how many groups its threads share the keys. It doesn't
// depend on the run: bits don't either.
func (d *Device) deltaShape(s op.RecurrentSpec) (columns, grps int) {
	columns, grps = s.Dim, 1
	if d.info.Software {
		return columns, grps
	}
	for columns > 32 && columns%2 == 0 {
		columns /= 2
	}
	for columns*grps < 256 && s.Dim%(2*grps) == 0 {
		grps *= 2
	}
	return columns, grps
}

// Route takes one workgroup per column.
func (b *builder) Route(sel, logits op.Buffer, used int) {
	m := b.buffers("Route", sel, logits)
	if b.err != nil || !b.require(used > 0 && used <= min(op.MaxTopK, m[1].width) && m[0].width == 2*used && m[0] != m[1], "Route",
		"%d of %d into columns of %d", used, m[1].width, m[0].width) ||
		!b.require(m[1].width <= mostExperts, "Route", "%d experts, at most %d supported", m[1].width, mostExperts) {
		return
	}
	wg := min(max((m[1].width+31)/32*32, 64), 256)
	b.add(record{op: "Route", kernel: "route", shape: byColumnX,
		consts: shaders.Consts{"EXPERTS": uint32(m[1].width), "USED": uint32(used), "WG": uint32(wg)},
		views:  []view{m[1].view(), m[0].view()}}, m[0], m[1])
}

// mostExperts is what fits in 16 KiB of workgroup memory beside the chosen ones.
const mostExperts = 3840

// expertArgs are the checked arguments of Experts.
type expertArgs struct {
	out, x, sel    *buffer
	gate, up, down *weight
	experts, used  int
	ff             int   // rows of an expert's gate
	bytes          int64 // of what the chosen experts of all columns give
}

// Experts records gate and up of every chosen expert, their product, and the weighted sum of what comes down.
func (b *builder) Experts(out, x, sel op.Buffer, gate, up, down op.Weight, experts, used int) {
	m := b.buffers("Experts", out, x, sel)
	wg, ok1 := use[*weight](b, "Experts", gate)
	wu, ok2 := use[*weight](b, "Experts", up)
	wd, ok3 := use[*weight](b, "Experts", down)
	if !ok1 || !ok2 || !ok3 || !b.require(experts > 0 && used > 0 && used <= experts && m[2].width == 2*used, "Experts",
		"%d of %d experts chosen by columns of %d", used, experts, m[2].width) {
		return
	}
	ff := wg.spec.Rows / experts
	if !b.require(ff > 0 && wg.spec.Rows == ff*experts && wu.spec.Rows == ff*experts && wd.spec.Cols == ff, "Experts",
		"%d experts in %d gate rows and %d up rows, %d columns down", experts, wg.spec.Rows, wu.spec.Rows, wd.spec.Cols) ||
		!b.require(wg.spec.Cols == m[1].width && wu.spec.Cols == m[1].width && wd.spec.Rows == m[0].width*experts, "Experts",
			"%d and %d columns of columns of %d, %d rows down into %d", wg.spec.Cols, wu.spec.Cols, m[1].width, wd.spec.Rows, m[0].width) ||
		!b.require(m[0] != m[1] && m[0] != m[2], "Experts", "reads and writes buffer %s", m[0].name) {
		return
	}
	a := expertArgs{out: m[0], x: m[1], sel: m[2], gate: wg, up: wu, down: wd, experts: experts, used: used, ff: ff}
	if b.p.dev.grouped(a.size(), b.cols()) && !b.p.dev.plain {
		b.groupedExperts(a)
		return
	}
	b.experts(a)
}

// experts records the slow way: launches for gate, for up and for their product. See fuser.expertGateUp and groupedExperts.
func (b *builder) experts(a expertArgs) {
	size := int64(b.cols()) * int64(a.used) * int64(a.ff) * 4
	slot := func(which scratch) view { return view{size: size, scratch: which} }
	b.slots.grow(expertSlots{size, size, size})
	a.bytes = size
	for i, w := range []*weight{a.gate, a.up} {
		for j := range w.pieces {
			r := b.p.dev.expertRecord("experts_rows", w, j, a.used, a.ff, []view{a.x.view(), whole(b.p.dev.shared.zero), a.sel.view(), slot(gateScratch + scratch(i))})
			if i == 0 && j == 0 {
				r.args = a
			}
			b.add(r, nil, a.x, a.sel)
		}
	}
	n := a.used * a.ff
	b.add(record{op: "Experts", kernel: "silu_mul", shape: byColumnY, x: groups(n, elementWG),
		consts: shaders.Consts{"WIDTH": uint32(n), "WG": elementWG}, views: []view{slot(gateScratch), slot(upScratch), slot(productScratch)}}, nil)
	for i := range a.down.pieces {
		b.add(b.p.dev.expertRecord("experts_down", a.down, i, a.used, a.out.width, []view{slot(productScratch), whole(b.p.dev.shared.zero), a.sel.view(), a.out.view()}), a.out, a.sel)
	}
}

// expertRecord is a launch over one piece of a matrix with f rows for every expert.
func (d *Device) expertRecord(kernel string, w *weight, i, used, f int, views []view) record {
	p := w.pieces[i]
	columns := used
	if kernel == "experts_down" {
		columns = 1
	}
	if w.format.any() {
		views[1] = p.arrays[0]
		return record{op: "Experts", kernel: w.format.kernel(kernel, ""), shape: byColumnX, columns: columns, y: groups(f, elementWG), z: 1,
			consts: shaders.Consts{"COLS": uint32(w.spec.Cols), "F": uint32(f), "USED": uint32(used), "WG": elementWG}, views: views,
			params: []uint32{uint32(p.rows), uint32(p.row0)}}
	}
	s := d.matVecShape(f*used, w.spec.Cols, w.format)
	consts := s.consts(w.spec.Cols)
	consts["F"], consts["USED"], consts["NORM"], consts["FAST_HALF"] = uint32(f), uint32(used), 0, d.fastHalf
	r := record{op: "Experts", kernel: w.format.kernel(kernel, ""), shape: byColumnX, columns: columns, consts: consts, views: views,
		bytes:  p.bytes() / int64(max(1, w.spec.Rows/f)) * int64(used),
		matrix: w, piece: i, at: 2, params: []uint32{uint32(p.rows), uint32(p.row0), 0, 0}}
	r.y, r.z = fold(groups(f, s.rowsPerWG()))
	return r
}
