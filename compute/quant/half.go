package quant

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// FromF16 returns the value of a half-precision bit pattern. It is exact for every pattern: subnormals, infinities and the
// payloads of NaNs included. Only integers are used, so a processor mode that flushes subnormals changes nothing.
func FromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	man := uint32(h & 0x3ff)
	switch exp := uint32(h >> 10 & 0x1f); exp {
	case 0:
		if man == 0 {
			return math.Float32frombits(sign)
		}
		// man * 2^-24: move the leading one to the place of the implicit bit.
		up := uint32(bits.LeadingZeros32(man)) - 21
		return math.Float32frombits(sign | (113-up)<<23 | (man<<up&0x3ff)<<13)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	default:
		return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
	}
}

// ToF16 returns the half nearest to f, ties to the even one. Values from 65520 up become infinite, values up to 2^-25
// become zero, both keep their sign. A NaN stays a NaN with the upper bits of its payload.
func ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	abs := b & 0x7fffffff
	switch {
	case abs >= 0x38800000 && abs < 0x477ff000: // normal as a half, after rounding too
		return sign | uint16((abs-0x38000000+0xfff+(abs>>13&1))>>13)
	case abs > 0x7f800000:
		payload := uint16(abs >> 13 & 0x3ff)
		if payload == 0 {
			payload = 0x200
		}
		return sign | 0x7c00 | payload
	case abs >= 0x477ff000:
		return sign | 0x7c00
	case abs <= 0x33000000:
		return sign
	}
	// A subnormal half counts units of 2^-24.
	shift := 126 - abs>>23
	man := abs&0x7fffff | 0x800000
	q := man >> shift
	if rest, half := man&(1<<shift-1), uint32(1)<<(shift-1); rest > half || rest == half && q&1 == 1 {
		q++ // may carry into the exponent, which then is right as it stands
	}
	return sign | uint16(q)
}

// F16Slice sets dst to the len(dst) little-endian halves at the start of src.
func F16Slice(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		h := uint32(binary.LittleEndian.Uint16(src[2*i:]))
		if exp := h & 0x7c00; exp != 0 && exp != 0x7c00 {
			dst[i] = math.Float32frombits((h&0x8000)<<16 | ((h&0x7fff)<<13 + 112<<23))
			continue
		}
		dst[i] = FromF16(uint16(h))
	}
}

// PutF16Slice writes src as little-endian halves, rounded as ToF16 does, to the first 2*len(src) bytes of dst.
func PutF16Slice(dst []byte, src []float32) {
	dst = dst[:2*len(src)]
	for i, f := range src {
		b := math.Float32bits(f)
		if abs := b & 0x7fffffff; abs >= 0x38800000 && abs < 0x477ff000 {
			h := b>>16&0x8000 | (abs-0x38000000+0xfff+(abs>>13&1))>>13
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(h))
			continue
		}
		binary.LittleEndian.PutUint16(dst[2*i:], ToF16(f))
	}
}

func decodeF32(dst []float32, src []byte) {
	src = src[:4*len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

// decodeBF16: the upper half of a float32.
func decodeBF16(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
	}
}
