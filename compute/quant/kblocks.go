package quant

// The formats of 256 weights a block ("K"): eight sub-blocks of 32 with six-bit scales and offsets, or sixteen of 16
// with eight-bit scales.

// scaleMin returns the six-bit scale and offset of sub-block j (0..7) from the twelve packed bytes of Q4_K and Q5_K.
func scaleMin(s []byte, j int) (scale, offset float32) {
	if j < 4 {
		return float32(s[j] & 63), float32(s[j+4] & 63)
	}
	return float32(s[j+4]&15 | s[j-4]>>6<<4), float32(s[j+4]>>4 | s[j]>>6<<4)
}

// decodeQ4_K: d, dmin, 12 bytes of scales, 128 bytes of nibbles; bytes 32i.. hold sub-block 2i low and 2i+1 high;
// d sc q - dmin m.
func decodeQ4_K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[144:] {
		b := src[:144]
		d, dmin, s := half(b[0:]), half(b[2:]), b[4:16]
		for i := range 4 {
			q, lo, hi := b[16+32*i:][:32], dst[64*i:][:32], dst[64*i+32:][:32]
			sc0, m0 := scaleMin(s, 2*i)
			sc1, m1 := scaleMin(s, 2*i+1)
			d0, d1 := float32(d*sc0), float32(d*sc1)
			o0, o1 := float32(dmin*m0), float32(dmin*m1)
			for l, v := range q {
				lo[l] = float32(d0*float32(v&15)) - o0
				hi[l] = float32(d1*float32(v>>4)) - o1
			}
		}
	}
}

// decodeQ5_K: as Q4_K with 32 bytes of fifth bits before the nibbles: bit j of byte l belongs to weight l of sub-block j.
func decodeQ5_K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[176:] {
		b := src[:176]
		d, dmin, s, h := half(b[0:]), half(b[2:]), b[4:16], b[16:48]
		for i := range 4 {
			q, lo, hi := b[48+32*i:][:32], dst[64*i:][:32], dst[64*i+32:][:32]
			sc0, m0 := scaleMin(s, 2*i)
			sc1, m1 := scaleMin(s, 2*i+1)
			d0, d1 := float32(d*sc0), float32(d*sc1)
			o0, o1 := float32(dmin*m0), float32(dmin*m1)
			for l, v := range q {
				fifth := h[l] >> (2 * i)
				lo[l] = float32(d0*float32(v&15|fifth&1<<4)) - o0
				hi[l] = float32(d1*float32(v>>4|fifth>>1&1<<4)) - o1
			}
		}
	}
}

// decodeQ6_K: 128 bytes of low nibbles, 64 bytes of upper bit pairs, 16 signed scales, d last; d sc (q - 32).
func decodeQ6_K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[210:] {
		b := src[:210]
		d := half(b[208:])
		for part := range 2 {
			ql, qh, sc, y := b[64*part:][:64], b[128+32*part:][:32], b[192+8*part:][:8], dst[128*part:][:128]
			for k := range 4 {
				low := (*[32]byte)(ql[32*(k&1):])
				high := (*[32]byte)(qh)
				nibble, pair := uint(4*(k>>1)), uint(2*k) // both below 8
				d0, d1 := float32(d*float32(int8(sc[2*k]))), float32(d*float32(int8(sc[2*k+1])))
				out := (*[32]float32)(y[32*k:])
				for l, v := range low {
					q := v>>(nibble&7)&15 | high[l]>>(pair&7)&3<<4
					scale := d0
					if l >= 16 {
						scale = d1
					}
					out[l] = scale * float32(int(q)-32)
				}
			}
		}
	}
}
