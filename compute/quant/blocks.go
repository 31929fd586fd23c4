package quant

import "encoding/binary"

// The formats of 32 weights a block. Low nibbles are the first 16 weights of a block, high nibbles the last 16.

func half(src []byte) float32 { return FromF16(binary.LittleEndian.Uint16(src)) }

// decodeQ4_0: d, 16 bytes of nibbles; d (q - 8).
func decodeQ4_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[18:] {
		y, b := (*[32]float32)(dst), (*[18]byte)(src)
		d := half(b[0:])
		for j, v := range b[2:18] {
			y[j] = d * float32(int(v&15)-8)
			y[j+16] = d * float32(int(v>>4)-8)
		}
	}
}

// decodeQ4_1: d, m, 16 bytes of nibbles; d q + m.
func decodeQ4_1(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[20:] {
		y, b := (*[32]float32)(dst), (*[20]byte)(src)
		d, m := half(b[0:]), half(b[2:])
		for j, v := range b[4:20] {
			y[j] = float32(d*float32(v&15)) + m
			y[j+16] = float32(d*float32(v>>4)) + m
		}
	}
}

// decodeQ5_0: d, 32 fifth bits, 16 bytes of nibbles; d (q - 16).
func decodeQ5_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[22:] {
		y, b := (*[32]float32)(dst), (*[22]byte)(src)
		d, h := half(b[0:]), binary.LittleEndian.Uint32(b[2:])
		for j, v := range b[6:22] {
			lo := uint32(v&15) | h>>j&1<<4
			hi := uint32(v>>4) | h>>(j+16)&1<<4
			y[j] = d * float32(int(lo)-16)
			y[j+16] = d * float32(int(hi)-16)
		}
	}
}

// decodeQ5_1: d, m, 32 fifth bits, 16 bytes of nibbles; d q + m.
func decodeQ5_1(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[24:] {
		y, b := (*[32]float32)(dst), (*[24]byte)(src)
		d, m, h := half(b[0:]), half(b[2:]), binary.LittleEndian.Uint32(b[4:])
		for j, v := range b[8:24] {
			lo := uint32(v&15) | h>>j&1<<4
			hi := uint32(v>>4) | h>>(j+16)&1<<4
			y[j] = float32(d*float32(lo)) + m
			y[j+16] = float32(d*float32(hi)) + m
		}
	}
}

// decodeQ8_0: d, 32 signed bytes; d q.
func decodeQ8_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[34:] {
		y, b := (*[32]float32)(dst), (*[34]byte)(src)
		d := half(b[0:])
		for j, v := range b[2:34] {
			y[j] = d * float32(int8(v))
		}
	}
}
