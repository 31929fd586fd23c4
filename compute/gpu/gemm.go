package gpu

import "pooled/shaders"

// tile is how a product with many columns is cut (tile.wgsl): 8 ty rows and 8 tx columns for 256 threads, depth values of a row at a
// time.
type tile struct{ ty, tx, depth int }

// The tiles that were fastest (docs/kernels.md). The big one decodes and reads each value less often; the small one keeps more of
// a GPU busy with few columns or rows.
var (
	bigTile   = tile{8, 16, 32}
	smallTile = tile{4, 8, 32}
)

const (
	foldRows = 32768 // tiles of rows in a line of the grid
	busyTile = 66    // big tiles that keep a big GPU as busy as four times as many small ones
)

func (t tile) rows() int { return 8 * t.ty }
func (t tile) cols() int { return 8 * t.tx }

// memory is the workgroup memory of a tile in bytes.
func (t tile) memory() int { return 16 * (t.depth / 4) * (t.rows() + 1 + t.cols() + 1) }

// within is the tile in that many bytes of workgroup memory.
func (t tile) within(memory int) tile {
	for t.memory() > memory && t.depth > 16 {
		t.depth /= 2
	}
	return t
}

func (t tile) consts(cols int, fastHalf uint32) shaders.Consts {
	return shaders.Consts{"COLS": uint32(cols), "TY": uint32(t.ty), "TX": uint32(t.tx), "BK": uint32(t.depth), "FAST_HALF": fastHalf}
}

// fewColumns is the number of columns up to which small tiles are better for a matrix of that many rows: those of one small tile, or
// those that big tiles would leave too few workgroups.
func fewColumns(rows int) int {
	each := int(groups(rows, bigTile.rows())) // tiles of as many columns as one has
	return max(smallTile.cols(), (busyTile-1)/each*bigTile.cols())
}

// tiled makes r a launch of that kernel for products with a matrix of rows rows and of w's layout, of which a tile has 1/parts of
// its own number.
func (d *Device) tiled(r record, kernel string, w *weight, rows, parts int) record {
	memory, cols := int(d.limits.max_workgroup_storage), w.spec.Cols
	small, big := smallTile.within(memory), bigTile.within(memory)
	if d.tile != (tile{}) {
		small, big = d.tile, d.tile
	}
	r.kernel, r.cols, r.shape, r.matrix = w.format.kernel(kernel, ""), w.format.kernel(kernel, ""), byTile, w
	r.tile, r.colsTile, r.few = small.cols(), big.cols(), fewColumns(rows*parts)
	r.consts, r.colsConsts = small.consts(cols, d.fastHalf), big.consts(cols, d.fastHalf)
	r.x, r.z = lines(groups(rows, small.rows()/parts))
	r.colsX, r.colsZ = lines(groups(rows, big.rows()/parts))
	return r
}

// lines spreads n tiles of rows over x and z; y is for the columns.
func lines(n uint32) (x, z uint32) { return min(n, foldRows), groups(int(n), foldRows) }

// gemm says whether a product is one for gemmRecord.
func (b *builder) gemm(w *weight) bool { return b.wide() && !w.format.any() && !b.p.dev.plain }

// gemmRecord multiplies one piece of a matrix with all columns of a wide program. Its twin is matVecRecord.
func (d *Device) gemmRecord(name string, out *buffer, w *weight, i int, x *buffer, acc uint32) record {
	p := w.pieces[i]
	r := d.tiled(record{op: name, views: []view{x.view(), out.view()}, bytes: p.bytes(), args: matVecArgs{out, w, x, acc},
		params: []uint32{uint32(p.rows), uint32(p.row0), uint32(out.width), 0}, piece: i, at: 3}, "gemm", w, p.rows, 1)
	r.set("ACC", acc)
	return r
}

// gemm3 multiplies up to three matrices that lie behind each other with the same columns.
func (d *Device) gemm3(ws []*weight, outs []*buffer, x *buffer) record {
	r := record{op: "MatVec", views: []view{x.view()}, at: 3}
	ends := []uint32{}
	rows := 0
	for i, w := range ws {
		rows += w.spec.Rows
		r.bytes += w.bytes
		ends = append(ends, uint32(rows))
		r.views = append(r.views, outs[i].view())
	}
	if len(ws) == 2 {
		r.views = append(r.views, whole(d.shared.sink))
	}
	r.params = []uint32{uint32(rows), ends[0], ends[1], 0}
	return d.tiled(r, "gemm3", ws[0], rows, 1)
}

// gemmGateUp multiplies gate and up, which lie behind each other, and forms their product.
func (d *Device) gemmGateUp(g, u matVecArgs, s siluArgs) record {
	return d.tiled(record{op: "MatVec, SiluMul", bytes: g.w.bytes + u.w.bytes, params: []uint32{uint32(g.w.spec.Rows), 0}, at: 1,
		views: []view{g.x.view(), g.out.view(), u.out.view(), s.out.view()}}, "gemm_gate_up", g.w, g.w.spec.Rows, 2)
}
