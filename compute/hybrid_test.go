package compute_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pooled/compute"
	"pooled/compute/gguf"
	"pooled/compute/gguf/gguftest"
	"pooled/compute/op"
	"pooled/compute/quant"
)

func TestHybridFacts(t *testing.T) {
	for _, arch := range []string{"qwen35", "qwen35moe"} {
		s := newHybrid(t, arch)
		m := s.model(t)
		if m.Layers != hybridLayers || m.Width != synthWidth || !m.Drafts() || !m.Recurrent() || m.Tied() {
			t.Errorf("%s: got %+v, drafts %v, recurrent %v", arch, m, m.Drafts(), m.Recurrent())
		}
		if got, want := m.DraftBytes, s.bytesOf("blk.5."); got != want {
			t.Errorf("%s: the draft block has %d bytes, want %d", arch, got, want)
		}
		// Layer 2 alone is attention: one key head, keys and values, in halves; averaged over 5 layers and rounded up.
		if got := m.KVPerPos(op.KVF16); got != (2*2*hybridHead+4)/5 {
			t.Errorf("%s: a position takes %d bytes", arch, got)
		}
		spec := op.RecurrentSpec{Channels: 2*24 + 48, Taps: 3, Heads: 4, Dim: 12}
		if got, want := m.StateBytes(1), spec.Bytes()+spec.UndoBytes(); got != want || m.StateBytes(2) != 0 || m.StateBytes(-1) != 0 || m.StateBytes(5) != 0 {
			t.Errorf("%s: a state takes %d bytes, want %d", arch, got, want)
		}
		for i := range hybridLayers {
			if got, want := m.LayerBytes(i), s.bytesOf(fmt.Sprintf("blk.%d.", i)); got != want {
				t.Errorf("%s: layer %d has %d bytes, want %d", arch, i, got, want)
			}
		}
	}
	for _, name := range []string{"tiny-qwen35-q4", "tiny-qwen35moe-q4"} {
		if m := tiny(t, name); m.Layers != 8 || m.Tied() || !m.Drafts() || m.DraftBytes == 0 {
			t.Errorf("%s: got %+v", name, m)
		}
	}
}

// variants describe the same model in other ways; the answer must be the same to the bit.
func TestSameModelWrittenOtherwise(t *testing.T) {
	base := func() *synth { return newHybrid(t, "qwen35moe") }
	for name, other := range map[string]*synth{
		"keys of the other architecture": base().rekey("qwen35moe.", "qwen35."),
		"a list of recurrent layers":     base().set("qwen35moe.full_attention_interval", nil).set("qwen35moe.attention.recurrent_layers", []bool{true, true, false, true, true, false}),
		"gates and ups in one tensor":    base().fuseExperts(),
		"expert width by default":        base().set("qwen35moe.expert_feed_forward_length", nil).set("qwen35moe.feed_forward_length", uint32(hybridExpert*hybridUsed)),
		"draft block's own ends":         base().copyAs("output.weight", "blk.5.nextn.shared_head_head.weight").copyAs("token_embd.weight", "blk.5.nextn.embed_tokens.weight"),
	} {
		t.Run(name, func(t *testing.T) {
			dev := onRef.device(t)
			answer := func(m *compute.Model) *compute.Generated {
				s := load(t, dev, m, compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: 60, Draft: compute.DraftNorm})
				r, err := s.Generate(context.Background(), compute.Request{Tokens: ids(m, 20), Max: 24, Sampler: compute.NewSampler(compute.Sampling{}, 1), Draft: true})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			a, b := base().model(t), other.model(t)
			want, got := logitsOf(t, whole(t, dev, a, 40), 0, ids(a, 40), 16), logitsOf(t, whole(t, dev, b, 40), 0, ids(b, 40), 16)
			equal(t, name, a, got, want)
			if a, b := answer(a), answer(b); !slices.Equal(a.Tokens, b.Tokens) || a.Drafts != b.Drafts {
				t.Errorf("got %v, want %v", b, a)
			}
		})
	}
}

// rekey renames keys.
func (s *synth) rekey(from, to string) *synth {
	for i, k := range s.keys {
		if rest, ok := strings.CutPrefix(k.Key, from); ok {
			s.keys[i].Key = to + rest
		}
	}
	return s
}

// copyAs adds a tensor under another name.
func (s *synth) copyAs(name, as string) *synth {
	i := slices.IndexFunc(s.tensors, func(t gguftest.Tensor) bool { return t.Name == name })
	other := s.tensors[i]
	other.Name = as
	s.tensors = append(s.tensors, other)
	return s
}

// fuseExperts stores each expert's gate rows and up rows one after the other.
func (s *synth) fuseExperts() *synth {
	var list []gguftest.Tensor
	for _, x := range s.tensors {
		if up, ok := strings.CutSuffix(x.Name, "ffn_gate_exps.weight"); ok {
			i := slices.IndexFunc(s.tensors, func(t gguftest.Tensor) bool { return t.Name == up+"ffn_up_exps.weight" })
			both := gguftest.Tensor{Name: up + "ffn_gate_up_exps.weight", Dims: []uint64{x.Dims[0], 2 * x.Dims[1], x.Dims[2]}, Type: x.Type}
			size := len(x.Data) / int(x.Dims[2])
			for e := range int(x.Dims[2]) {
				both.Data = append(append(both.Data, x.Data[e*size:(e+1)*size]...), s.tensors[i].Data[e*size:(e+1)*size]...)
			}
			x = both
		}
		if !strings.HasSuffix(x.Name, "ffn_up_exps.weight") || strings.Contains(x.Name, "gate_up") {
			list = append(list, x)
		}
	}
	s.tensors = list
	return s
}

// A model in several files is the model.
func TestSplitFilesEqualOne(t *testing.T) {
	s := newHybrid(t, "qwen35moe")
	var parts []gguf.Part
	for no := range 3 {
		keys := []gguftest.KV{{Key: "split.no", Value: uint16(no)}, {Key: "split.count", Value: uint16(3)}, {Key: "split.tensors.count", Value: int32(len(s.tensors))}}
		if no == 0 {
			keys = append(slices.Clone(s.keys), keys...)
		}
		n := len(s.tensors)
		b, err := gguftest.Bytes(keys, s.tensors[no*n/3:(no+1)*n/3])
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, gguf.Part{Name: fmt.Sprintf("m-%05d-of-00003.gguf", no+1), R: bytes.NewReader(b), Size: int64(len(b))})
	}
	m, err := compute.OpenModel(parts...)
	if err != nil {
		t.Fatal(err)
	}
	one, dev := s.model(t), onRef.device(t)
	want := logitsOf(t, whole(t, dev, one, 40), 0, ids(one, 40), 16)
	equal(t, "three files", m, logitsOf(t, whole(t, dev, m, 40), 0, ids(m, 40), 16), want)
	if _, err := compute.OpenModel(parts[:2]...); err == nil {
		t.Error("a missing part: no error")
	}
}

func TestBadHybrids(t *testing.T) {
	for _, c := range []struct {
		name, arch string
		make       func(s *synth) *synth
		says       string
	}{
		{"no state size", "qwen35", func(s *synth) *synth { return s.set("qwen35.ssm.state_size", nil) }, "ssm.state_size"},
		{"no taps", "qwen35", func(s *synth) *synth { return s.set("qwen35.ssm.conv_kernel", uint32(1)) }, "ssm.conv_kernel"},
		{"another inner size", "qwen35", func(s *synth) *synth { return s.set("qwen35.ssm.inner_size", uint32(49)) }, "49 is not 4 heads of 12"},
		{"heads that can't share", "qwen35", func(s *synth) *synth { return s.set("qwen35.ssm.group_count", uint32(3)) }, "can't share 3 key heads"},
		{"no interval", "qwen35", func(s *synth) *synth { return s.set("qwen35.full_attention_interval", uint32(0)) }, "full_attention_interval"},
		{"another interval", "qwen35", func(s *synth) *synth { return s.set("qwen35.full_attention_interval", uint32(2)) }, "blk.1.attn_q.weight is missing"},
		{"few flags", "qwen35", func(s *synth) *synth { return s.set("qwen35.attention.recurrent_layers", []bool{true}) }, "1 flags for 5 layers"},
		{"flags of text", "qwen35", func(s *synth) *synth { return s.set("qwen35.attention.recurrent_layers", "all") }, "recurrent_layers"},
		{"drafts only", "qwen35", func(s *synth) *synth { return s.set("qwen35.nextn_predict_layers", uint32(6)) }, "6 of 6 blocks"},
		{"no draft block", "qwen35", func(s *synth) *synth { return s.change("blk.5.nextn.eh_proj.weight", quant.F32) }, "blk.5.nextn.eh_proj.weight is missing"},
		{"draft norm of another width", "qwen35", func(s *synth) *synth { return s.change("blk.5.nextn.shared_head_norm.weight", quant.F32, 35) }, "shape [35]"},
		{"taps in halves", "qwen35", func(s *synth) *synth { return s.change("blk.0.ssm_conv1d.weight", quant.F16, 3, 96) }, "only F32"},
		{"no decay", "qwen35", func(s *synth) *synth { return s.change("blk.0.ssm_a", quant.F32) }, "blk.0.ssm_a is missing"},
		{"query without gate", "qwen35", func(s *synth) *synth { return s.change("blk.2.attn_q.weight", quant.F32, 36, 72) }, "blk.2.attn_q.weight has shape [36 72]"},
		{"no experts", "qwen35moe", func(s *synth) *synth { return s.set("qwen35moe.expert_count", nil) }, "expert_count"},
		{"no experts used", "qwen35moe", func(s *synth) *synth { return s.set("qwen35moe.expert_used_count", uint32(0)) }, "expert_used_count"},
		{"more used than there are", "qwen35moe", func(s *synth) *synth { return s.set("qwen35moe.expert_used_count", uint32(6)) }, "6 is not between 1 and 5"},
		{"other expert count", "qwen35moe", func(s *synth) *synth { return s.set("qwen35moe.expert_count", uint32(4)) }, "ffn_gate_inp.weight has shape [36 5]"},
		{"no shared expert", "qwen35moe", func(s *synth) *synth { return s.change("blk.1.ffn_up_shexp.weight", quant.F32) }, "blk.1.ffn_up_shexp.weight is missing"},
		{"expert width that can't be shared out", "qwen35moe", func(s *synth) *synth { return s.set("qwen35moe.expert_feed_forward_length", nil) }, "50 for 3 experts"},
		{"scaled rope", "qwen35", func(s *synth) *synth { return s.set("qwen35.rope.scaling.type", "yarn") }, `"yarn" is not supported`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := c.make(newHybrid(t, c.arch)).open(t)
			if !errors.Is(err, compute.ErrModel) || m != nil {
				t.Fatalf("got %v, %v; want an unusable model", m, err)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, want %q in it", err, c.says)
			}
		})
	}
	if _, err := newSynth(t).set("qwen3.nextn_predict_layers", uint32(1)).open(t); !errors.Is(err, compute.ErrModel) {
		t.Errorf("a draft block behind qwen3: got %v", err)
	}
}

// A chain of shards that verifies and undoes says what the whole model says: host and workers get the same controls.
func TestVerifyInAChain(t *testing.T) {
	onEach(t, subjects(t), func(t *testing.T, dev op.Device, m *compute.Model) {
		ctx, tokens := context.Background(), ids(m, 30)
		want := logitsOf(t, whole(t, dev, m, 40), 0, tokens, 16)
		host := load(t, dev, m, compute.ShardSpec{Hi: 1, Head: true, Ctx: 40})
		workers := []*compute.Shard{load(t, dev, m, compute.ShardSpec{Lo: 1, Hi: 2, Ctx: 40}), load(t, dev, m, compute.ShardSpec{Lo: 2, Hi: m.Layers, Ctx: 40})}
		lap := func(pos int, tokens []int32) []float32 {
			x, err := host.EmbedSpec(ctx, pos, tokens)
			for _, w := range workers {
				if err == nil {
					x, err = w.HiddenSpec(ctx, pos, len(tokens), slices.Clone(x))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			return slices.Clone(x)
		}
		all := func(c op.Control) {
			for _, s := range append(workers, host) {
				control(t, s, c)
			}
		}
		lap(0, tokens[:7])
		all(op.Control{Save: 9})
		for pos, keep := 7, 1; pos+5 <= len(tokens); pos, keep = pos+keep, keep%5+1 {
			columns := append(slices.Clone(tokens[pos:pos+keep]), make([]int32, 5-keep)...)
			x := lap(pos, columns)
			logits, err := host.HeadLogits(ctx, x[:keep*m.Width])
			if err != nil {
				t.Fatal(err)
			}
			equal(t, fmt.Sprintf("%d columns at %d", keep, pos), m, logits, want[pos*m.Vocab:(pos+keep)*m.Vocab])
			all(op.Control{Rollback: keep})
		}
		all(op.Control{Load: 9})
		logits, err := host.HeadLogits(ctx, lap(7, tokens[7:20]))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "after the slot came back", m, logits, want[7*m.Vocab:20*m.Vocab])
	})
}
