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

// matVecShape follows from the matrix and the kind of device, never from the number of columns: another shape would add up in
// another order (the bit contract of package op).
//
// A processor has no latency to hide: a thread with rows of its own reads the activations once for all threads. A GPU wants
// many threads, most of all for small matrices, whose time is the latency of the one read that each thread does.
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
		return matVecShape{1, 1, 32}
	}
	s := matVecShape{128, 4, 128}
	for s.lanes > 8 && s.lanes > octets {
		s.lanes /= 2
	}
	for s.rows > 1 && rows/s.rows*s.lanes < 1<<18 { // fewer threads than a big GPU runs at once
		s.rows /= 2
	}
	return s
}
