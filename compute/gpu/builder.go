package gpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"

	"pooled/compute/op"
	"pooled/compute/quant"
	"pooled/shaders"
)

// shape says how a step's grid follows from the run.
type shape uint8

const (
	byColumnY  shape = iota // (x, columns, z)
	byColumnX               // (columns, y, z)
	byAll                   // (x, y, z) whatever the columns
	byTile                  // (x, columns/tile, z), with another tile in the _cols form
	byPairs                 // (x, tiles of pairs of columns and experts, 1)
	byMatVec                // (1, y, z) with the plain kernel for one column, (columns/4, y, z) with the _cols kernel for more
	bySplit                 // (x, columns, splits) of attention
	byCombine               // (x, columns, 1) when a column has several splits
	byTopSlice              // only when candidates are asked for
	byTopMerge
)

const (
	elementWG  = 128 // threads of the elementwise kernels
	rmsNormWG  = 256
	headNormWG = 64
	attnWG     = 128
	foldY      = 32768 // workgroups of a matrix in a line of the grid
	topSlice   = 2048  // logits per workgroup of topk_slice
	maxSlices  = 1024
	// maxWorkgroups is the most of one dimension of a grid (spec engine.md 0.2).
	maxWorkgroups = 65535
)

// record is a step before its pipeline and bind group exist.
type record struct {
	op, kernel, cols string // cols: the _cols form, or ""
	consts           shaders.Consts
	colsConsts       shaders.Consts // of the _cols form
	views            []view         // without the trailing Params
	cached           []view         // arrays of a cache that the kernel reads
	matrix           *weight        // whose arrays the kernel reads, or nil; where they are is asked last, because merging moves them
	piece            int
	at               int // the parameter that says where they begin
	params           []uint32
	shape            shape
	x, y, z          uint32
	colsX            uint32         // x of the _cols form of byTile
	colsY, colsZ     uint32         // y and z of the _cols form
	rows             int            // of the matrix of byMatVec
	columns          int            // workgroups of a column of byColumnX; 0: one
	tile             int            // columns of a workgroup of byTile, pairs of one of byPairs
	colsTile         int            // columns of a workgroup of byTile in its _cols form
	few              int            // columns up to which byTile doesn't take that form
	pairs            op.ExpertsSize // of byPairs
	attend           attendShape
	bytes            int64   // of weights read for a column
	perPos           int64   // keys and values read for a column, times heads, per position
	args             any     // what fuse looks at
	out, out2        *buffer // what it writes; out2 is in reads too
	reads            []*buffer
	tail             bool
	wide             bool // of a wide program, and not behind its tail: sees all columns of its buffers
}

// builder implements op.Builder. The first error is kept and ends the recording.
type builder struct {
	p       *program
	recs    []record
	touched map[*buffer]bool
	scratch int64 // bytes of attention
	slots   expertSlots
	last    bool // Logits was recorded
	err     error
}

// Program starts a recording.
func (d *Device) Program(name string, cols int) op.Builder {
	return &builder{p: &program{dev: d, name: name, cols: cols, capacity: math.MaxInt32}, touched: make(map[*buffer]bool), err: op.CheckCols(cols)}
}

// wide says whether what is recorded now works on more columns than a narrow program has.
func (b *builder) wide() bool { return b.p.cols > op.MaxCols && !b.p.hasTail }

// cols is the most columns that what is recorded now works on.
func (b *builder) cols() int {
	if b.wide() {
		return b.p.cols
	}
	return op.MaxCols
}

func (b *builder) require(ok bool, name, format string, args ...any) bool {
	if b.err == nil && !ok {
		b.err = fmt.Errorf("%s: %w: %s", name, errArgument, fmt.Sprintf(format, args...))
	}
	return b.err == nil
}

// mine is what this package can make a program use.
type mine interface {
	*buffer | *weight | *kv | *rope | *recurrent
	owner() (*Device, *atomic.Bool)
}

func (b *buffer) owner() (*Device, *atomic.Bool) { return b.dev, &b.gone }
func (w *weight) owner() (*Device, *atomic.Bool) { return w.dev, &w.gone }
func (c *kv) owner() (*Device, *atomic.Bool)     { return c.dev, &c.gone }
func (r *rope) owner() (*Device, *atomic.Bool)   { return r.dev, &r.gone }

// use is b's own form of a thing that the device made.
func use[T mine](b *builder, name string, thing any) (m T, ok bool) {
	if b.err != nil {
		return m, false
	}
	m, ok = thing.(T)
	if !ok {
		b.err = fmt.Errorf("%s: %T: %w", name, thing, errForeign)
		return m, false
	}
	dev, gone := m.owner()
	switch {
	case dev != b.p.dev:
		b.err = fmt.Errorf("%s: %w", name, errForeign)
	case gone.Load():
		b.err = fmt.Errorf("%s: %w", name, errReleased)
	default:
		b.p.uses = append(b.p.uses, gone)
	}
	if x, ok := any(m).(*buffer); ok {
		b.require(x.cols >= b.cols(), name, "buffer %s has %d columns, the program %d", x.name, x.cols, b.cols())
	}
	return m, b.err == nil
}

func (b *builder) buffers(name string, list ...op.Buffer) []*buffer {
	out := make([]*buffer, len(list))
	for i, x := range list {
		out[i], _ = use[*buffer](b, name, x)
	}
	return out
}

// add records a step that writes to the buffer out (nil: to a cache).
func (b *builder) add(r record, out *buffer, reads ...*buffer) {
	if !b.require(!b.last, r.op, "recorded after Logits") {
		return
	}
	if out != nil {
		if !b.require(out != b.p.hidden, r.op, "writes buffer %s after Output", out.name) {
			return
		}
		b.touched[out] = true
	}
	for _, x := range reads {
		b.touched[x] = true
	}
	r.tail, r.wide, r.out, r.reads = b.p.hasTail, b.wide(), out, reads
	b.recs = append(b.recs, r)
}

// lacks notes that an operation has no kernel for a weight's format or size; Build returns it.
func (b *builder) lacks(name string, w *weight) {
	if b.err == nil {
		b.err = fmt.Errorf("%s: weight %s of type %v, %d columns in %d pieces: %w",
			name, w.spec.Name, w.spec.Type, w.spec.Cols, len(w.pieces), op.ErrFormat)
	}
}

// view is all of a buffer for wide records, its first op.MaxCols columns for the others.
func (b *buffer) view() view {
	return view{buf: b.buf, size: int64(b.width) * 4 * int64(b.cols), near: int64(b.width) * 4 * op.MaxCols}
}

// groups is the number of workgroups of wg threads for n values.
func groups(n, wg int) uint32 { return uint32((n + wg - 1) / wg) }

// vector checks a weight of one row of f32.
func (b *builder) vector(name string, w op.Weight, width int) (view, bool) {
	m, ok := use[*weight](b, name, w)
	if !ok {
		return view{}, false
	}
	if m.spec.Type != quant.F32 {
		b.err = fmt.Errorf("%s: weight %s of type %v as a vector: %w", name, m.spec.Name, m.spec.Type, op.ErrFormat)
		return view{}, false
	}
	if !b.require(m.spec.Rows == 1 && m.spec.Cols == width, name, "weight %s is %d x %d, want 1 x %d",
		m.spec.Name, m.spec.Rows, m.spec.Cols, width) {
		return view{}, false
	}
	return m.pieces[0].arrays[0], true
}

// Embed gathers rows of the table; a table in pieces takes one dispatch each.
func (b *builder) Embed(out op.Buffer, table op.Weight) {
	o := b.buffers("Embed", out)[0]
	t, ok := use[*weight](b, "Embed", table)
	if !ok || !b.require(b.p.table == nil, "Embed", "recorded twice") ||
		!b.require(!b.p.hasTail, "Embed", "recorded after Tail") ||
		!b.require(t.spec.Cols == o.width, "Embed", "rows of %d values into columns of %d", t.spec.Cols, o.width) {
		return
	}
	b.p.table = t
	for i, p := range t.pieces {
		r := record{op: "Embed", kernel: t.format.kernel("embed", ""), shape: byColumnY, matrix: t, piece: i, at: 2}
		if t.format.any() {
			r.x = groups(t.spec.Cols, elementWG)
			r.consts = shaders.Consts{"COLS": uint32(t.spec.Cols), "WG": elementWG, "LIST": b.list()}
			r.views = []view{b.ids(), p.arrays[0], o.view()}
			r.params, r.matrix = []uint32{uint32(p.rows), uint32(p.row0)}, nil
		} else {
			r.x = groups(t.spec.Cols/8, elementWG)
			r.consts = shaders.Consts{"COLS": uint32(t.spec.Cols), "WG": elementWG, "FAST_HALF": b.p.dev.fastHalf, "LIST": b.list()}
			r.views = []view{b.ids(), o.view()}
			r.params = []uint32{uint32(p.rows), uint32(p.row0), 0}
		}
		b.add(r, o)
	}
}

// Input takes no dispatch: the values are written into the buffer before the pass starts.
func (b *builder) Input(out op.Buffer) {
	o, ok := use[*buffer](b, "Input", out)
	if ok && b.require(b.p.in == nil, "Input", "recorded twice") &&
		b.require(!b.p.hasTail, "Input", "recorded after Tail") &&
		b.require(!b.touched[o], "Input", "buffer %s is used before", o.name) {
		b.p.in = o
		b.touched[o] = true
	}
}

// RMSNorm takes one workgroup per column.
func (b *builder) RMSNorm(out, x op.Buffer, w op.Weight, eps float32) {
	m := b.buffers("RMSNorm", out, x)
	if b.err != nil || !b.require(m[0].width == m[1].width, "RMSNorm", "widths %d and %d", m[0].width, m[1].width) ||
		!b.require(m[0] != m[1], "RMSNorm", "reads and writes buffer %s", m[0].name) {
		return
	}
	v, ok := b.vector("RMSNorm", w, m[1].width)
	if ok {
		b.add(record{op: "RMSNorm", kernel: "rmsnorm", shape: byColumnX, args: normArgs{m[0], m[1], v, eps},
			consts: shaders.Consts{"WIDTH": uint32(m[0].width), "WG": rmsNormWG},
			views:  []view{m[1].view(), v, m[0].view()}, params: []uint32{math.Float32bits(eps)}}, m[0], m[1])
	}
}

// MatVec is out = w x.
func (b *builder) MatVec(out op.Buffer, w op.Weight, x op.Buffer) { b.matVec("MatVec", out, w, x, 0) }

// MatVecAdd is out += w x.
func (b *builder) MatVecAdd(out op.Buffer, w op.Weight, x op.Buffer) {
	b.matVec("MatVecAdd", out, w, x, 1)
}

func (b *builder) matVec(name string, out op.Buffer, w op.Weight, x op.Buffer, acc uint32) {
	m := b.buffers(name, out, x)
	t, ok := use[*weight](b, name, w)
	if !ok || !b.require(t.spec.Rows == m[0].width && t.spec.Cols == m[1].width, name,
		"weight %s is %d x %d, want %d x %d", t.spec.Name, t.spec.Rows, t.spec.Cols, m[0].width, m[1].width) ||
		!b.require(m[0] != m[1], name, "reads and writes buffer %s", m[0].name) {
		return
	}
	for i := range t.pieces {
		if b.gemm(t) {
			b.add(b.p.dev.gemmRecord(name, m[0], t, i, m[1], acc), m[0], m[1])
			continue
		}
		b.add(b.p.dev.matVecRecord(name, m[0], t, i, m[1], acc, b.wide()), m[0], m[1])
	}
}

// list says whether the tokens of a run are read from a list in memory; a frame holds op.MaxCols.
func (b *builder) list() uint32 {
	if b.wide() {
		return 1
	}
	return 0
}

// ids is the list of tokens, which Build makes for a wide program.
func (b *builder) ids() view {
	if b.wide() {
		return view{size: int64(b.p.cols) * 4, scratch: idScratch}
	}
	return view{buf: b.p.dev.shared.zero, size: alignment}
}

// matVecRecord multiplies one piece of a matrix.
func (d *Device) matVecRecord(name string, out *buffer, w *weight, i int, x *buffer, acc uint32, wide bool) record {
	p := w.pieces[i]
	s := d.matVecShape(p.rows, w.spec.Cols, w.format)
	r := record{op: name, kernel: w.format.kernel("matvec", ""), cols: w.format.kernel("matvec", "_cols"), shape: byMatVec,
		bytes: p.bytes(), args: matVecArgs{out, w, x, acc}, consts: s.consts(w.spec.Cols),
		params: []uint32{uint32(p.rows), uint32(p.row0), uint32(out.width), 0, 0}}
	r.several(d, s, w.spec.Cols, p.rows)
	r.set("ACC", acc)
	if w.format.any() {
		r.views = []view{x.view(), p.arrays[0], out.view()}
		return r
	}
	if !wide {
		r.kernel, r.cols = r.kernel+d.form(x), r.cols+d.form(x)
	}
	r.set("NORM", 0)
	r.set("FAST_HALF", d.fastHalf)
	r.views = []view{x.view(), x.view(), out.view()} // without a norm its weights are not read
	r.matrix, r.piece, r.at = w, i, 3
	return r
}

// set gives a constant of both forms.
func (r *record) set(name string, v uint32) {
	r.consts[name] = v
	if r.colsConsts != nil {
		r.colsConsts[name] = v
	}
}

// several sets the grids and the constants of the _cols form for rows rows.
func (r *record) several(d *Device, s matVecShape, cols, rows int) {
	r.rows = rows
	r.y, r.z = fold(groups(rows, s.rowsPerWG()))
	s = d.several(s)
	r.colsConsts = s.consts(cols)
	r.colsY, r.colsZ = fold(groups(rows, s.rowsPerWG()))
}

// fold spreads n workgroups over y and z; x is for the columns.
func fold(n uint32) (y, z uint32) { return min(n, foldY), groups(int(n), foldY) }

// NormRope takes one workgroup per head and column.
func (b *builder) NormRope(x op.Buffer, w op.Weight, heads int, r op.Rope, eps float32) {
	m := b.buffers("NormRope", x)[0]
	t, ok := use[*rope](b, "NormRope", r)
	if !ok || !b.require(heads > 0 && m.width%heads == 0, "NormRope", "%d heads of %d values", heads, m.width) ||
		!b.require(t.nRot <= m.width/heads, "NormRope", "rotates %d values of heads of %d", t.nRot, m.width/heads) {
		return
	}
	hd, norm := m.width/heads, uint32(0)
	v := view{buf: b.p.dev.shared.zero, size: alignment}
	if w != nil {
		norm = 1
		if v, ok = b.vector("NormRope", w, hd); !ok {
			return
		}
	}
	b.p.capacity = min(b.p.capacity, t.capacity)
	b.add(record{op: "NormRope", kernel: "norm_rope", shape: byColumnY, x: uint32(heads),
		consts: shaders.Consts{"HEADS": uint32(heads), "HD": uint32(hd), "NROT": uint32(t.nRot), "NORM": norm, "WG": headNormWG},
		views:  []view{v, t.view(), m.view()},
		params: []uint32{math.Float32bits(eps)}, args: normRopeArgs{m, v, norm, heads, t, eps}}, m)
}

// SiluMul is elementwise.
func (b *builder) SiluMul(out, gate, up op.Buffer) {
	m := b.buffers("SiluMul", out, gate, up)
	if b.err != nil || !b.require(m[0].width == m[1].width && m[0].width == m[2].width, "SiluMul",
		"widths %d, %d and %d", m[0].width, m[1].width, m[2].width) ||
		!b.require(m[0] != m[1] && m[0] != m[2], "SiluMul", "reads and writes buffer %s", m[0].name) {
		return
	}
	b.add(record{op: "SiluMul", kernel: "silu_mul", shape: byColumnY, x: groups(m[0].width, elementWG),
		consts: shaders.Consts{"WIDTH": uint32(m[0].width), "WG": elementWG},
		views:  []view{m[1].view(), m[2].view(), m[0].view()}, args: siluArgs{m[0], m[1], m[2]}}, m[0], m[1:]...)
}

// Output takes no dispatch: the buffer is read after the pass, so nothing may write it later.
func (b *builder) Output(x op.Buffer) {
	m, ok := use[*buffer](b, "Output", x)
	if ok && b.require(b.p.hidden == nil, "Output", "recorded twice") &&
		b.require(!b.p.hasTail, "Output", "recorded after Tail") {
		b.p.hidden = m
	}
}

// Tail copies the head columns to the front.
func (b *builder) Tail(out, x op.Buffer) {
	from, ok := use[*buffer](b, "Tail", x)
	if !ok || !b.require(!b.p.hasTail, "Tail", "recorded twice") {
		return
	}
	b.p.hasTail = true
	to, ok := use[*buffer](b, "Tail", out)
	if !ok || !b.require(to.width == from.width, "Tail", "widths %d and %d", to.width, from.width) ||
		!b.require(to != from, "Tail", "reads and writes buffer %s", from.name) {
		return
	}
	all := from.view()
	all.near = all.size // the head columns may lie anywhere
	b.add(record{op: "Tail", kernel: "copy_cols", shape: byColumnY, x: groups(to.width, elementWG),
		consts: shaders.Consts{"WIDTH": uint32(to.width), "WG": elementWG},
		views:  []view{all, to.view()}}, to, from)
}

// Logits ends the recording. The two dispatches that reduce to candidates are added by Build.
func (b *builder) Logits(x op.Buffer) {
	m, ok := use[*buffer](b, "Logits", x)
	if ok && b.require(!b.last, "Logits", "recorded twice") &&
		b.require(!b.wide(), "Logits", "of %d columns", b.p.cols) &&
		b.require(groups(m.width, topSlice) <= maxSlices, "Logits", "%d values, at most %d supported", m.width, topSlice*maxSlices) {
		b.p.logits, b.last = m, true
	}
}

func (c *kv) view(b *wgpuBuffer) view { return view{buf: b, size: c.bytes / 2} }

// paramBytes lays params out as a uniform of at least 16 bytes.
func paramBytes(params []uint32) []byte {
	b := make([]byte, align(max(int64(len(params))*4, 16), 16))
	for i, v := range params {
		binary.LittleEndian.PutUint32(b[4*i:], v)
	}
	return b
}
