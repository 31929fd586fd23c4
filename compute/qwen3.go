package compute

import "pooled/compute/gguf"

// newQwen3 reads the dense architecture of spec engine.md 3.2.
func newQwen3(f *gguf.File) (*graph, error) {
	n := &numbers{f: f, prefixes: []string{"qwen3"}}
	g := &graph{norms: [2]string{"attn_norm", "ffn_norm"}}
	g.common(n)
	if g.draft {
		n.fail("nextn_predict_layers", "no draft block is known for this architecture")
	}
	g.ff = &dense{g.width, n.count("feed_forward_length", 1, maxWidth)}
	g.attention = newAttention(n, g, false)
	for range g.layers {
		g.mixers = append(g.mixers, g.attention)
	}
	return g, n.err
}
