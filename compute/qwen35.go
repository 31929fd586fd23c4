package compute

import "pooled/compute/gguf"

// newQwen35 reads the hybrid architectures of spec engine.md 3.3: every fourth layer, or those that the file names, is
// gated attention, the others are DeltaNet; the feed-forward network is dense (qwen35) or a mixture of experts
// (qwen35moe). The keys of one architecture may have the prefix of the other.
func newQwen35(f *gguf.File) (*graph, error) {
	n := &numbers{f: f, prefixes: []string{f.Arch(), "qwen35", "qwen35moe"}}
	g := &graph{norms: [2]string{"attn_norm", "post_attention_norm"}}
	g.common(n)
	g.attention = newAttention(n, g, true)
	linear := newDeltanet(n, g)
	if f.Arch() == "qwen35moe" {
		g.ff = newExperts(n, g)
	} else {
		g.ff = &dense{g.width, n.count("feed_forward_length", 1, maxWidth)}
	}
	recurrent := recurrentLayers(n, g)
	for i := range g.layers {
		if n.err == nil && recurrent(i) {
			g.mixers = append(g.mixers, linear)
		} else {
			g.mixers = append(g.mixers, g.attention)
		}
	}
	return g, n.err
}

// recurrentLayers says which layers are DeltaNet.
func recurrentLayers(n *numbers, g *graph) func(i int) bool {
	const list, interval = "attention.recurrent_layers", "full_attention_interval"
	if !n.f.Has(n.at(list)) {
		every := n.countOr(interval, 1, maxLayers, 4)
		return func(i int) bool { return (i+1)%every != 0 }
	}
	flags, err := n.f.Ints(n.at(list))
	switch {
	case err != nil:
		n.fail(list, "%v", err)
	case len(flags) < g.layers:
		n.fail(list, "%d flags for %d layers", len(flags), g.layers)
	}
	return func(i int) bool { return flags[i] != 0 }
}
