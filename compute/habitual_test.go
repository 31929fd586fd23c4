package compute_test

import (
	"encoding/binary"
	"math"
	"strings"
)

// habitual makes a model whose next token hangs mostly on the last one, so that its texts repeat themselves, and whose draft block
// guesses as the model does: layers add little, and the block hands on the token that it is given. So proposals are right often, but
// not always.
func (s *synth) habitual() *synth {
	var norm []byte
	for _, x := range s.tensors {
		if x.Name == "output_norm.weight" {
			norm = x.Data
		}
	}
	for i := range s.tensors {
		x := &s.tensors[i]
		each := func(f func(at int, v float32) float32) {
			for j := 0; j < len(x.Data); j += 4 {
				v := math.Float32frombits(binary.LittleEndian.Uint32(x.Data[j:]))
				binary.LittleEndian.PutUint32(x.Data[j:], math.Float32bits(f(j/4, v)))
			}
		}
		switch {
		case strings.Contains(x.Name, "attn_output.") || strings.Contains(x.Name, "ssm_out.") || strings.Contains(x.Name, "ffn_down"):
			each(func(_ int, v float32) float32 { return v / 128 })
		case strings.HasSuffix(x.Name, "enorm.weight"):
			each(func(int, float32) float32 { return 1 })
		case strings.HasSuffix(x.Name, "shared_head_norm.weight"):
			copy(x.Data, norm)
		case strings.HasSuffix(x.Name, "eh_proj.weight"):
			each(func(at int, v float32) float32 {
				if row, col := at/(2*synthWidth), at%(2*synthWidth); col < synthWidth {
					if row == col {
						return 1
					}
					return 0
				}
				return v / 16
			})
		}
	}
	return s
}
