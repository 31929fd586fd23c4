package gguftest

import (
	"encoding/binary"
	"fmt"
	"math"

	"pooled/compute/quant"
)

// Pack stores values as weights of type t: F32, F16, BF16 (cut, not rounded), Q8_0 or Q4_0, whose blocks get the scale
// that fits their largest value. len(values) is a multiple of the block length. It makes data for tests; the choice of
// scales is the simple one, not the best.
func Pack(t quant.Type, values []float32) ([]byte, error) {
	size, err := quant.Bytes(t, len(values), 1)
	if err != nil {
		return nil, fmt.Errorf("gguftest: %w", err)
	}
	b := make([]byte, 0, size)
	switch t {
	case quant.F32:
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	case quant.F16:
		for _, v := range values {
			b = binary.LittleEndian.AppendUint16(b, quant.ToF16(v))
		}
	case quant.BF16:
		for _, v := range values {
			b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(v)>>16))
		}
	case quant.Q8_0:
		for ; len(values) > 0; values = values[32:] {
			d := appendScale(&b, values[:32], 127)
			for _, v := range values[:32] {
				b = append(b, byte(int8(level(v, d, -127, 127))))
			}
		}
	case quant.Q4_0:
		for ; len(values) > 0; values = values[32:] {
			d := appendScale(&b, values[:32], 7)
			for i, v := range values[:16] {
				b = append(b, byte(level(v, d, -8, 7)+8)|byte(level(values[i+16], d, -8, 7)+8)<<4)
			}
		}
	default:
		return nil, fmt.Errorf("gguftest: no way to pack %v", t)
	}
	return b, nil
}

// appendScale appends the half max|v|/steps and returns its value.
func appendScale(b *[]byte, values []float32, steps float32) float32 {
	var most float32
	for _, v := range values {
		most = max(most, float32(math.Abs(float64(v))))
	}
	h := quant.ToF16(most / steps)
	*b = binary.LittleEndian.AppendUint16(*b, h)
	return quant.FromF16(h)
}

func level(v, d float32, least, most int) int {
	if d == 0 {
		return 0
	}
	return min(max(int(math.RoundToEven(float64(v/d))), least), most)
}
