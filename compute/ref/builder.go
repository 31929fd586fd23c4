package ref

import (
	"fmt"

	"pooled/compute/op"
)

// builder implements op.Builder. The first error is kept and ends the recording.
type builder struct {
	p    *program
	last bool // Logits was recorded
	err  error
}

// Program starts a recording.
func (d *device) Program(name string, cols int) op.Builder {
	return &builder{p: &program{dev: d, name: name, cols: cols, crew: newCrew(d.workers), capacity: unlimited}, err: op.CheckCols(cols)}
}

// require notes an error about operation name unless ok.
func (b *builder) require(ok bool, name, format string, args ...any) bool {
	if b.err == nil && !ok {
		b.err = fmt.Errorf("%s: %w: %s", name, errArgument, fmt.Sprintf(format, args...))
	}
	return b.err == nil
}

// use is b's own form of a thing that the device made; nil when it isn't one.
func use[T checker](b *builder, name string, thing any) (mine T) {
	if b.err != nil {
		return mine
	}
	mine, ok := thing.(T)
	if !ok {
		b.err = fmt.Errorf("%s: %T: %w", name, thing, errForeign)
		return mine
	}
	if err := mine.check(b.p.dev); err != nil {
		b.err = fmt.Errorf("%s: %w", name, err)
		return mine
	}
	if m, ok := any(mine).(*buffer); ok {
		cols := b.p.cols
		if b.p.hasTail {
			cols = op.MaxCols
		}
		b.require(m.cols >= cols, name, "buffer %s has %d columns, the program %d", m.name, m.cols, cols)
	}
	b.p.uses = append(b.p.uses, mine)
	return mine
}

func (b *builder) buffers(name string, list ...op.Buffer) []*buffer {
	mine := make([]*buffer, len(list))
	for i, x := range list {
		mine[i] = use[*buffer](b, name, x)
	}
	return mine
}

// add records a step.
func (b *builder) add(name string, s step) {
	if b.require(!b.last, name, "recorded after Logits") {
		b.p.steps = append(b.p.steps, entry{s, b.p.hasTail})
	}
}

// vector decodes a weight of one row.
func (b *builder) vector(name string, w op.Weight, width int) []float32 {
	mine := use[*weight](b, name, w)
	if b.err != nil || !b.require(mine.spec.Rows == 1 && mine.spec.Cols == width, name,
		"weight %s is %d x %d, want 1 x %d", mine.spec.Name, mine.spec.Rows, mine.spec.Cols, width) {
		return nil
	}
	v := make([]float32, width)
	mine.decode(v, 0)
	return v
}

func (b *builder) Embed(out op.Buffer, table op.Weight) {
	o, t := use[*buffer](b, "Embed", out), use[*weight](b, "Embed", table)
	if b.err != nil {
		return
	}
	b.require(b.p.table == nil, "Embed", "recorded twice")
	b.require(!b.p.hasTail, "Embed", "recorded after Tail")
	if b.require(t.spec.Cols == o.width, "Embed", "rows of %d values into columns of %d", t.spec.Cols, o.width) {
		b.p.table = t
		b.add("Embed", &embed{o, t})
	}
}

func (b *builder) Input(out op.Buffer) {
	o := use[*buffer](b, "Input", out)
	b.require(b.p.in == nil, "Input", "recorded twice")
	if b.require(!b.p.hasTail, "Input", "recorded after Tail") {
		b.p.in = o
		b.add("Input", &input{o})
	}
}

func (b *builder) RMSNorm(out, x op.Buffer, w op.Weight, eps float32) {
	m := b.buffers("RMSNorm", out, x)
	if b.err != nil || !b.require(m[0].width == m[1].width, "RMSNorm", "widths %d and %d", m[0].width, m[1].width) {
		return
	}
	v := b.vector("RMSNorm", w, m[1].width)
	b.add("RMSNorm", &rmsNorm{m[0], m[1], v, float64(eps)})
}

func (b *builder) MatVec(out op.Buffer, w op.Weight, x op.Buffer) {
	b.matVec("MatVec", out, w, x, false, false)
}

func (b *builder) MatVecAdd(out op.Buffer, w op.Weight, x op.Buffer) {
	b.matVec("MatVecAdd", out, w, x, true, false)
}

func (b *builder) MatVecRows(out op.Buffer, w op.Weight, x op.Buffer) {
	b.require(b.p.cols <= op.MaxCols, "MatVecRows", "of a wide program")
	b.matVec("MatVecRows", out, w, x, false, true)
}

func (b *builder) matVec(name string, out op.Buffer, w op.Weight, x op.Buffer, add, first bool) {
	m, mine := b.buffers(name, out, x), use[*weight](b, name, w)
	if b.err != nil {
		return
	}
	s := mine.spec
	b.require((s.Rows == m[0].width || first && s.Rows > m[0].width) && s.Cols == m[1].width, name,
		"weight %s is %d x %d, want %d x %d", s.Name, s.Rows, s.Cols, m[0].width, m[1].width)
	if b.require(m[0] != m[1], name, "reads and writes buffer %s", m[0].name) {
		b.add(name, newMatVec(m[0], mine, m[1], add))
	}
}

func (b *builder) NormRope(x op.Buffer, w op.Weight, heads int, r op.Rope, eps float32) {
	m, t := use[*buffer](b, "NormRope", x), use[*rope](b, "NormRope", r)
	if b.err != nil || !b.require(heads > 0 && m.width%heads == 0, "NormRope", "%d heads of %d values", heads, m.width) {
		return
	}
	width := m.width / heads
	b.require(t.nRot <= width, "NormRope", "rotates %d values of heads of %d", t.nRot, width)
	var v []float32
	if w != nil {
		v = b.vector("NormRope", w, width)
	}
	b.p.capacity = min(b.p.capacity, t.capacity)
	b.add("NormRope", &normRope{m, v, heads, t, float64(eps)})
}

func (b *builder) StoreKV(cache op.KV, k, v op.Buffer) {
	c, m := use[*kv](b, "StoreKV", cache), b.buffers("StoreKV", k, v)
	if b.err != nil {
		return
	}
	if b.require(m[0].width == c.width && m[1].width == c.width, "StoreKV",
		"keys of %d and values of %d into rows of %d", m[0].width, m[1].width, c.width) {
		b.p.capacity = min(b.p.capacity, c.capacity)
		b.add("StoreKV", &storeKV{c, m[0], m[1]})
	}
}

func (b *builder) Attend(out, q op.Buffer, cache op.KV, heads, kvHeads int) {
	c, m := use[*kv](b, "Attend", cache), b.buffers("Attend", out, q)
	if b.err != nil {
		return
	}
	if !b.require(heads > 0 && kvHeads > 0 && heads%kvHeads == 0 && c.width%kvHeads == 0, "Attend",
		"%d heads, %d of the cache, rows of %d values", heads, kvHeads, c.width) {
		return
	}
	want := c.width / kvHeads * heads
	b.require(m[0].width == want && m[1].width == want, "Attend", "widths %d and %d, want %d", m[0].width, m[1].width, want)
	if b.require(m[0] != m[1], "Attend", "reads and writes buffer %s", m[0].name) {
		b.p.capacity = min(b.p.capacity, c.capacity)
		b.add("Attend", &attend{m[0], m[1], c, heads, kvHeads})
	}
}

func (b *builder) SiluMul(out, gate, up op.Buffer) {
	m := b.buffers("SiluMul", out, gate, up)
	if b.err != nil {
		return
	}
	if b.require(m[0].width == m[1].width && m[0].width == m[2].width, "SiluMul",
		"widths %d, %d and %d", m[0].width, m[1].width, m[2].width) {
		b.add("SiluMul", &siluMul{m[0], m[1], m[2]})
	}
}

func (b *builder) Output(x op.Buffer) {
	m := use[*buffer](b, "Output", x)
	b.require(b.p.hidden == nil, "Output", "recorded twice")
	if b.require(!b.p.hasTail, "Output", "recorded after Tail") {
		b.p.hidden = m
		b.add("Output", &output{m})
	}
}

func (b *builder) Tail(out, x op.Buffer) {
	from := use[*buffer](b, "Tail", x)
	b.require(!b.p.hasTail, "Tail", "recorded twice")
	b.p.hasTail = true
	to := use[*buffer](b, "Tail", out)
	if b.err != nil {
		return
	}
	b.require(to.width == from.width, "Tail", "widths %d and %d", to.width, from.width)
	if b.require(to != from, "Tail", "reads and writes buffer %s", to.name) {
		b.add("Tail", &tail{to, from})
	}
}

func (b *builder) Logits(x op.Buffer) {
	m := use[*buffer](b, "Logits", x)
	if b.err != nil {
		return
	}
	b.require(b.p.cols <= op.MaxCols || b.p.hasTail, "Logits", "%d columns", b.p.cols)
	b.add("Logits", &logits{m})
	b.p.logits, b.last = m, true
}

// Build returns the program, or the first error of the recording.
func (b *builder) Build() (op.Program, error) {
	b.require(len(b.p.steps) > 0, "Build", "nothing was recorded")
	if b.err != nil {
		return nil, fmt.Errorf("ref: program %s: %w", b.p.name, b.err)
	}
	return b.p, nil
}
