package compute_test

import (
	"testing"

	"pooled/compute"
	"pooled/compute/op"
)

// What a token reads of the tiny models, counted by hand from their tensors (spec engine.md 8.4).
func TestReads(t *testing.T) {
	m := mini(t)
	const pos = 100
	var layers int64
	for i := range m.Layers {
		layers += m.LayerBytes(i)
	}
	row := m.EmbedBytes / int64(m.Vocab)
	norm := int64(4 * m.Width)
	want := compute.Reads{Weights: layers + m.EmbedBytes + norm + row, Caches: pos * int64(m.Layers) * m.KVPerPos(op.KVF16)}
	if got := m.Reads(pos, op.KVF16); got != want {
		t.Errorf("mini: %+v, want %+v", got, want)
	}
	if got := m.WeightBytes(); got != layers+m.EmbedBytes+norm {
		t.Errorf("mini: %d bytes of weights", got)
	}
	for name, experts := range map[string]int64{"tiny-qwen35-q4": 0, "tiny-qwen35moe-q4": 1} {
		m := tiny(t, name)
		var layers, states int64
		for i := range m.Layers {
			layers += m.LayerBytes(i)
			states += m.StateBytes(i)
		}
		got := m.Reads(pos, op.KVF32)
		rest := layers + m.HeadBytes + int64(4*m.Width) + m.EmbedBytes/int64(m.Vocab) - got.Weights
		if experts == 0 && rest != 0 || experts > 0 && (rest < layers/2 || rest > layers*3/4) { // 2 of 8 experts
			t.Errorf("%s: %d bytes less than all weights, layers have %d", name, rest, layers)
		}
		if got.States <= states/2 || got.States >= 2*states || got.Caches != pos*int64(m.Layers)*m.KVPerPos(op.KVF32) {
			t.Errorf("%s: %+v, states %d", name, got, states)
		}
		if got.Total() != got.Weights+got.States+got.Caches {
			t.Errorf("%s: total %d", name, got.Total())
		}
	}
}
