package gpu

import (
	"encoding/binary"
	"math"

	"pooled/compute/quant"
)

// The functions that move blocks from file order to the arrays of shaders' decode files. Eight bytes are treated at a time.
//
// An octet of nibbles is a word: byte i holds weight i in its low and weight i+4 in its high nibble.

const (
	lowNibbles = 0x0f0f0f0f0f0f0f0f
	lowPairs   = 0x0303030303030303
	lowBits    = 0x0101010101010101
)

var le = binary.LittleEndian

// octetWord packs eight values below 16, one a byte.
func octetWord(x uint64) uint32 { return uint32(x) | uint32(x>>32)<<4 }

// pairBits packs eight values below 4, one a byte, into 16 bits.
func pairBits(x uint64) uint16 {
	x = (x | x>>6) & 0x000f000f000f000f
	x = (x | x>>12) & 0x000000ff000000ff
	return uint16(x | x>>24)
}

// oneBits packs eight values below 2, one a byte, into a byte.
func oneBits(x uint64) byte { return byte(x * 0x0102040810204080 >> 56) }

// nibbleBlock packs 16 bytes of a block of 32: low nibbles first, then the high ones.
func nibbleBlock(dst, src []byte) {
	a, b := le.Uint64(src), le.Uint64(src[8:])
	le.PutUint32(dst, octetWord(a&lowNibbles))
	le.PutUint32(dst[4:], octetWord(b&lowNibbles))
	le.PutUint32(dst[8:], octetWord(a>>4&lowNibbles))
	le.PutUint32(dst[12:], octetWord(b>>4&lowNibbles))
}

func repackCopy(dst [][]byte, src []byte) { copy(dst[0], src) }

// repackFloats widens blocks of one weight to floats.
func repackFloats(dst, src []byte, f quant.Format) {
	var v [1]float32
	for i := 0; len(src) >= f.BlockBytes; i, src = i+1, src[f.BlockBytes:] {
		f.Decode(v[:], src)
		le.PutUint32(dst[4*i:], math.Float32bits(v[0]))
	}
}

// repackQ8_0: d, 32 bytes q.
func repackQ8_0(dst [][]byte, src []byte) {
	q, d := dst[0], dst[1]
	for i := 0; len(src) >= 34; i, src = i+1, src[34:] {
		d[2*i], d[2*i+1] = src[0], src[1]
		copy(q[32*i:32*i+32], src[2:34])
	}
}

// repackQ4_0: d, 16 bytes of nibbles.
func repackQ4_0(dst [][]byte, src []byte) {
	q, d := dst[0], dst[1]
	for i := 0; len(src) >= 18; i, src = i+1, src[18:] {
		d[2*i], d[2*i+1] = src[0], src[1]
		nibbleBlock(q[16*i:], src[2:])
	}
}

// repackQ4_1: d, m, 16 bytes of nibbles.
func repackQ4_1(dst [][]byte, src []byte) {
	q, d := dst[0], dst[1]
	for i := 0; len(src) >= 20; i, src = i+1, src[20:] {
		copy(d[4*i:4*i+4], src)
		nibbleBlock(q[16*i:], src[4:])
	}
}

// repackQ5_0 widens to Q8_0, which is exact: d, 32 fifth bits, 16 bytes of nibbles; d (q - 16).
func repackQ5_0(dst [][]byte, src []byte) {
	q, d := dst[0], dst[1]
	for i := 0; len(src) >= 22; i, src = i+1, src[22:] {
		d[2*i], d[2*i+1] = src[0], src[1]
		h, out := le.Uint32(src[2:]), q[32*i:32*i+32]
		for j, v := range src[6:22] {
			out[j] = byte(int(v&15|byte(h>>j&1<<4)) - 16)
			out[j+16] = byte(int(v>>4|byte(h>>(j+16)&1<<4)) - 16)
		}
	}
}

// repackQ5_1: d, m, 32 fifth bits (already in order), 16 bytes of nibbles.
func repackQ5_1(dst [][]byte, src []byte) {
	q, h, d := dst[0], dst[1], dst[2]
	for i := 0; len(src) >= 24; i, src = i+1, src[24:] {
		copy(d[4*i:4*i+4], src)
		copy(h[4*i:4*i+4], src[4:8])
		nibbleBlock(q[16*i:], src[8:])
	}
}

// kScales writes the 20 bytes of a Q4_K or Q5_K block: eight times (scale, offset), then d and dmin.
func kScales(dst, src []byte) {
	s := src[4:16]
	for j := range 4 {
		dst[2*j], dst[2*j+1] = s[j]&63, s[j+4]&63
		dst[8+2*j], dst[9+2*j] = s[j+8]&15|s[j]>>6<<4, s[j+8]>>4|s[j+4]>>6<<4
	}
	copy(dst[16:20], src[:4])
}

// kNibbles packs the 128 bytes of a Q4_K or Q5_K block: bytes 32i.. hold sub-block 2i low and 2i+1 high.
func kNibbles(dst, src []byte) {
	for i := range 4 {
		for g := range 4 {
			x := le.Uint64(src[32*i+8*g:])
			le.PutUint32(dst[32*i+4*g:], octetWord(x&lowNibbles))
			le.PutUint32(dst[32*i+16+4*g:], octetWord(x>>4&lowNibbles))
		}
	}
}

// repackQ4_K: d, dmin, 12 bytes of scales, 128 bytes of nibbles.
func repackQ4_K(dst [][]byte, src []byte) {
	for i := 0; len(src) >= 144; i, src = i+1, src[144:] {
		kNibbles(dst[0][128*i:], src[16:])
		kScales(dst[1][20*i:], src)
	}
}

// repackQ5_K: as Q4_K with 32 bytes of fifth bits; bit j of byte l belongs to weight l of sub-block j.
func repackQ5_K(dst [][]byte, src []byte) {
	for i := 0; len(src) >= 176; i, src = i+1, src[176:] {
		kNibbles(dst[0][128*i:], src[48:])
		h := dst[1][32*i : 32*i+32]
		for g := range 4 {
			x := le.Uint64(src[16+8*g:])
			for j := range 8 {
				h[4*j+g] = oneBits(x >> j & lowBits)
			}
		}
		kScales(dst[2][20*i:], src)
	}
}

// repackQ6_K: 128 bytes of low nibbles, 64 bytes of upper pairs, 16 scales, d. Of each half of 128 weights, run k of 32 has
// nibble k/2 of bytes 32(k%2).. and pair k of the 32 bytes of pairs.
func repackQ6_K(dst [][]byte, src []byte) {
	for i := 0; len(src) >= 210; i, src = i+1, src[210:] {
		q, h, s := dst[0][128*i:], dst[1][64*i:], dst[2][20*i:]
		for half := range 2 {
			for k := range 4 {
				for g := range 4 {
					o := 16*half + 4*k + g
					low := le.Uint64(src[64*half+32*(k&1)+8*g:]) >> (4 * (k >> 1)) & lowNibbles
					le.PutUint32(q[4*o:], octetWord(low))
					le.PutUint16(h[2*o:], pairBits(le.Uint64(src[128+32*half+8*g:])>>(2*k)&lowPairs))
				}
			}
		}
		copy(s[:16], src[192:208])
		copy(s[16:18], src[208:210])
		s[18], s[19] = 0, 0
	}
}
