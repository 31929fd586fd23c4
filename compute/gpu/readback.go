package gpu

import (
	"encoding/binary"
	"math"

	"pooled/compute/op"
)

// noCandidate is the id where fewer than asked for were found, because values are not finite or a mask leaves them out.
const noCandidate = 0xffffffff

// take copies the readback to the caller's slices and looks for values that are not finite.
func (r *run) take(data []byte) error {
	finite := getFloats(r.out.Hidden, data[:r.hiddenLen])
	data = data[r.hiddenLen:]
	finite = getFloats(r.out.Logits, data[:r.logitsLen]) && finite
	data = data[r.logitsLen:]
	if r.topLen > 0 {
		words := topWords(r.k)
		for c := range r.heads {
			col := data[4*words*c : 4*words*(c+1)]
			if binary.LittleEndian.Uint32(col) != 0 {
				finite = false
			}
			top, n := r.out.Top[c][:r.k], 0
			for ; n < len(top); n++ {
				id := binary.LittleEndian.Uint32(col[8+8*n:])
				if id == noCandidate {
					break
				}
				top[n] = op.Candidate{ID: int32(id), Logit: math.Float32frombits(binary.LittleEndian.Uint32(col[12+8*n:]))}
			}
			r.out.Top[c] = top[:n]
		}
	}
	if !finite {
		return op.ErrNotFinite
	}
	return nil
}

// putFloats encodes src and returns the number of bytes.
func putFloats(dst []byte, src []float32) int {
	for i, v := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
	return 4 * len(src)
}

// getFloats decodes src into dst and reports whether all values are finite.
func getFloats(dst []float32, src []byte) bool {
	finite := true
	for i := range dst {
		b := binary.LittleEndian.Uint32(src[4*i:])
		dst[i] = math.Float32frombits(b)
		finite = finite && b&0x7f800000 != 0x7f800000
	}
	return finite
}
