package gpu

import "pooled/shaders"

// tile is how a product with many columns is cut: rows and columns of a workgroup, and how many values of a row at a time.
type tile struct{ rows, cols, depth, unroll int }

// memory is the workgroup memory of a tile in bytes.
func (t tile) memory() int { return 4 * t.depth * (t.rows + t.cols) }

const (
	gemmWG   = 256
	foldRows = 32768 // tiles of rows in a line of the grid
	busy     = 500   // big tiles that fill a big GPU evenly
)

// gemmTile follows from the matrix, the columns of the program and the bytes of workgroup memory that the device grants. A big tile reads each value from
// workgroup memory less often; small ones fill all parts of a GPU more evenly (docs/kernels.md).
func gemmTile(rows, cols, memory int) tile {
	t := tile{64, 64, 32, 4}
	if (rows+127)/128*((cols+127)/128) >= busy {
		t.rows, t.cols = 128, 128
	}
	for t.memory() > memory {
		t.depth /= 2
	}
	return t
}

// gemmRecord multiplies one piece of a matrix with all columns of a wide program. Its twin is matVecRecord.
func (b *builder) gemmRecord(name string, out *buffer, w *weight, i int, x *buffer, acc uint32) record {
	d, p := b.p.dev, w.pieces[i]
	t := gemmTile(p.rows, b.p.cols, int(d.limits.max_workgroup_storage))
	if d.tile != (tile{}) {
		t = d.tile
	}
	n := groups(p.rows, t.rows)
	return record{op: name, kernel: w.format.kernel("gemm", ""), shape: byTile, tile: t.cols,
		x: min(n, foldRows), z: groups(int(n), foldRows), bytes: p.bytes(),
		consts: shaders.Consts{"COLS": uint32(w.spec.Cols), "BM": uint32(t.rows), "BN": uint32(t.cols), "BK": uint32(t.depth), "UNROLL": uint32(t.unroll),
			"ACC": acc, "FAST_HALF": d.fastHalf},
		views:  []view{x.view(), out.view()},
		params: []uint32{uint32(p.rows), uint32(p.row0), uint32(out.width), 0}, matrix: w, piece: i, at: 3}
}

// gemm says whether a product is one for gemmRecord.
func (b *builder) gemm(w *weight) bool { return b.wide() && !w.format.any() && !b.p.dev.plain }
