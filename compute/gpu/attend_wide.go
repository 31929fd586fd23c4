package gpu

// attendTile says how attention of many columns is cut: queries of a workgroup of four times as many threads, dimensions of queries and
// keys and positions of values that are in workgroup memory at a time (attn_tile.wgsl).
type attendTile struct{ rows, dims, values int }

const (
	maxTileHead = 256 // values of a head that a tile may have
	tilePos     = 64  // positions of a tile
	tileQuads   = 16  // quads of positions
)

// memory is the workgroup memory of a tile in bytes.
func (t attendTile) memory(hd int) int {
	scores := max(tilePos*t.rows, (t.rows+tilePos)*t.dims)
	return 4 * (scores + t.values*hd + 4*tileQuads*t.rows/4)
}

// attendTile follows from the values of a head and the bytes of workgroup memory that the device grants.
func (d *Device) attendTile(hd int) attendTile {
	t := attendTile{64, 32, 16}
	if d.tiles != (attendTile{}) {
		t = d.tiles
	}
	for memory := int(d.limits.max_workgroup_storage); t.memory(hd) > memory; {
		switch {
		case t.values > 8:
			t.values /= 2
		case t.rows > 32:
			t.rows, t.dims = 32, min(t.dims, 16)
		default:
			t.values /= 2
		}
	}
	return t
}

// tileRecord treats all columns of a wide program. Its twin is plain.
func (d *Device) tileRecord(a attention) record {
	t := d.attendTile(a.hd)
	share, mates := a.heads/a.kvHeads, 1
	for share%(2*mates) == 0 && mates < 8 {
		mates *= 2
	}
	r := a.record("attn_tile")
	for name, v := range map[string]int{"MATES": mates, "QUERIES": t.rows, "BD": t.dims, "BV": t.values} {
		r.consts[name] = uint32(v)
	}
	r.shape, r.tile, r.x = byTile, t.rows/mates, uint32(a.heads/mates)
	r.views = []view{a.q.view(), a.out.view()}
	return r
}
