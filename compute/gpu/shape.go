package gpu

import "pooled/shaders"

// matVecShape says how the threads of a matrix-vector kernel share its rows (rows.wgsl).
type matVecShape struct{ lanes, rows, wg int }

func (s matVecShape) rowsPerWG() int { return s.wg / s.lanes * s.rows }

func (s matVecShape) consts(cols int) shaders.Consts {
	c := shaders.Consts{"COLS": uint32(cols), "WG": uint32(s.wg), "LANES": uint32(s.lanes)}
	if cols%8 == 0 {
		c["ROWS"] = uint32(s.rows)
	}
	return c
}

// pairs is the shape for kernels that treat rows in pairs.
func (s matVecShape) pairs() matVecShape {
	s.rows = max(s.rows, 2)
	return s
}

// matVecShape follows from the matrix and the kind of device. The number of lanes decides the order of sums and so the bits:
// it is the same for every number of columns (the bit contract of package op). rows and wg don't change bits; for several
// columns cols replaces them.
//
// A processor has no latency to hide: a thread with rows of its own reads the activations once for all threads. A GPU wants
// many threads, most of all for small matrices, whose time is the latency of the few reads that each thread does. The numbers
// are those of docs/kernels.md.
func (d *Device) matVecShape(rows, cols int, f format) matVecShape {
	if f.any() {
		if cols <= 512 {
			return matVecShape{8, 4, 64}
		}
		return matVecShape{64, 4, 64}
	}
	if d.shape != (matVecShape{}) {
		return d.shape
	}
	octets := cols / 8
	if d.info.Software {
		if rows < 1024 {
			return matVecShape{1, 4, 8} // enough workgroups for a few cores
		}
		return matVecShape{1, 4, 32}
	}
	s := matVecShape{64, 2, 128}
	switch {
	case octets >= 768:
		s.lanes = 128
	case rows >= 1<<16:
		s.lanes, s.rows = 32, 4
	}
	for s.lanes > 8 && s.lanes > octets {
		s.lanes /= 2
	}
	if s.rows == 2 && rows*octets <= 1<<19 {
		s.rows = 1
	}
	return s
}

// several is the shape for several columns: the same lanes, but a weight that was decoded is used four times, so that more rows a
// thread pay.
func (d *Device) several(s matVecShape) matVecShape {
	if !d.info.Software && d.shape == (matVecShape{}) {
		s.rows = 4
	}
	return s
}

// form ends the name of a matrix kernel that reads x: see shaders.Uniform.
func (d *Device) form(x *buffer) string {
	if v := x.view(); d.info.Software && v.near <= int64(d.limits.max_uniform_binding) {
		return shaders.Uniform
	}
	return ""
}
