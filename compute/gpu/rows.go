package gpu

import "pooled/compute/op"

// MatVecRows multiplies the rows that out has room for and leaves the rest of the matrix alone. Nothing is fused with it, so that
// what is stays the whole matrix.
func (b *builder) MatVecRows(out op.Buffer, w op.Weight, x op.Buffer) {
	const name = "MatVecRows"
	m := b.buffers(name, out, x)
	t, ok := use[*weight](b, name, w)
	if !ok || !b.require(t.spec.Rows >= m[0].width && t.spec.Cols == m[1].width, name,
		"weight %s is %d x %d, want %d x %d at least", t.spec.Name, t.spec.Rows, t.spec.Cols, m[0].width, m[1].width) ||
		!b.require(m[0] != m[1], name, "reads and writes buffer %s", m[0].name) ||
		!b.require(!b.wide(), name, "of %d columns", b.p.cols) {
		return
	}
	for i, p := range t.pieces {
		rows := min(p.rows, m[0].width-p.row0)
		if rows < 1 {
			break
		}
		d, s := b.p.dev, b.p.dev.matVecShape(p.rows, t.spec.Cols, t.format)
		r := d.matVecRecord(name, m[0], t, i, m[1], 0, false)
		r.args, r.rows, r.params[0] = nil, rows, uint32(rows)
		r.bytes = r.bytes / int64(p.rows) * int64(rows)
		r.y, r.z = fold(groups(rows, s.rowsPerWG()))
		r.colsY, r.colsZ = fold(groups(rows, d.several(s).rowsPerWG()))
		b.add(r, m[0], m[1])
	}
}
