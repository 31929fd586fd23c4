package gpu

import (
	"fmt"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// lacks notes that there is no kernel for an operation; Build returns it.
func (b *builder) lacks(name string) {
	if b.err == nil {
		b.err = fmt.Errorf("%s: %w", name, op.ErrKernel)
	}
}

// Deinterleave has no kernel here.
func (r *builder) Deinterleave(a, b, x op.Buffer, heads int) { r.lacks("Deinterleave") }

// SigmoidMul has no kernel here.
func (r *builder) SigmoidMul(x, g op.Buffer) { r.lacks("SigmoidMul") }

// Conv has no kernel here.
func (r *builder) Conv(out, x op.Buffer, w op.Weight, st op.Recurrent) { r.lacks("Conv") }

// Delta has no kernel here.
func (r *builder) Delta(out, y, alpha, beta op.Buffer, a, dt op.Weight, st op.Recurrent, keyHeads int) {
	r.lacks("Delta")
}

// NormGate has no kernel here.
func (r *builder) NormGate(out, x, z op.Buffer, w op.Weight, heads int, eps float32) {
	r.lacks("NormGate")
}

// Route has no kernel here.
func (r *builder) Route(sel, logits op.Buffer, used int) { r.lacks("Route") }

// Experts has no kernel here.
func (r *builder) Experts(out, x, sel op.Buffer, gate, up, down op.Weight, experts, used int) {
	r.lacks("Experts")
}

// GateAdd has no kernel here.
func (r *builder) GateAdd(x, y, s op.Buffer) { r.lacks("GateAdd") }

// Concat has no kernel here.
func (r *builder) Concat(out, a, b op.Buffer) { r.lacks("Concat") }

// Recurrent has no kernels here.
func (d *Device) Recurrent(name string, _ op.RecurrentSpec) (op.Recurrent, error) {
	return nil, fmt.Errorf("gpu: recurrent state %s: %w", name, op.ErrKernel)
}

// Memory has no kernels here.
func (d *Device) Memory([]op.KV, []op.Recurrent) (op.Memory, error) {
	return nil, fmt.Errorf("gpu: memory: %w", op.ErrKernel)
}

// WeightBytes is the size of the arrays that a weight is repacked into.
func (d *Device) WeightBytes(t quant.Type, rows, cols int) int64 {
	f, ok := formatOf(t, cols)
	q, known := t.Format()
	if !ok || !known {
		return 0
	}
	var block int64
	for _, bytes := range f.arrays {
		block += bytes
	}
	return int64(rows) * int64(cols/q.BlockLen) * block
}
