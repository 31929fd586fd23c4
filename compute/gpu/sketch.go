package gpu

import "pooled/compute/op"

// ProgramBytes follows what prepare makes.
func (d *Device) ProgramBytes(s op.Sketch) int64 {
	sum := max(int64(s.Steps), 1) * alignment
	var scratch int64
	var slots expertSlots
	for _, a := range s.Attend {
		if s.Cols > op.MaxCols {
			break
		}
		scratch = max(scratch, d.attendScratchBytes(a.Heads, a.KVHeads, a.Head))
	}
	for _, e := range s.Experts {
		slots.grow(d.expertSlots(e, s.Cols))
	}
	sum += scratch + slots.total()
	if s.Embeds && s.Cols > op.MaxCols {
		sum += 4 * int64(s.Cols)
	}
	if s.Logits > 0 {
		slices := int64(groups(s.Logits, topSlice))
		sum += op.MaxCols * (slices*(op.MaxTopK*8+4) + (2+2*op.MaxTopK)*4 + 4*int64(op.MaskWords(s.Logits)))
	}
	return sum
}
