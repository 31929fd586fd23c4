package compute_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pooled/compute"
	"pooled/compute/gguf"
	"pooled/compute/gguf/gguftest"
	"pooled/compute/quant"
)

// synth is a small dense model with sizes that no real model has. A test changes what it wants before it is written.
type synth struct {
	keys    []gguftest.KV
	tensors []gguftest.Tensor
}

const (
	synthWidth  = 36
	synthLayers = 3
	synthVocab  = 61
	synthHead   = 24
	synthHeads  = 6
	synthKV     = 2
	synthFF     = 50
)

// newSynth makes an untied model with random F32 weights.
func newSynth(t testing.TB) *synth {
	t.Helper()
	s := &synth{keys: []gguftest.KV{
		{Key: "general.architecture", Value: "qwen3"},
		{Key: "general.name", Value: "synthetic"},
		{Key: "qwen3.block_count", Value: uint32(synthLayers)},
		{Key: "qwen3.context_length", Value: uint32(64)},
		{Key: "qwen3.embedding_length", Value: uint32(synthWidth)},
		{Key: "qwen3.feed_forward_length", Value: uint32(synthFF)},
		{Key: "qwen3.attention.head_count", Value: uint32(synthHeads)},
		{Key: "qwen3.attention.head_count_kv", Value: uint32(synthKV)},
		{Key: "qwen3.attention.key_length", Value: uint32(synthHead)},
		{Key: "qwen3.attention.value_length", Value: uint32(synthHead)},
		{Key: "qwen3.attention.layer_norm_rms_epsilon", Value: float32(1e-6)},
		{Key: "qwen3.rope.freq_base", Value: float32(1e4)},
		{Key: "qwen3.rope.dimension_count", Value: uint32(10)},
	}}
	r := rand.New(rand.NewPCG(7, 7))
	add := func(name string, dims ...uint64) { s.tensors = append(s.tensors, f32Tensor(r, name, dims)) }
	const d, q, kv, f = synthWidth, synthHeads * synthHead, synthKV * synthHead, synthFF
	add("token_embd.weight", d, synthVocab)
	add("output_norm.weight", d)
	add("output.weight", d, synthVocab)
	for _, b := range []string{"blk.0.", "blk.1.", "blk.2."} {
		add(b+"attn_norm.weight", d)
		add(b+"attn_q.weight", d, q)
		add(b+"attn_k.weight", d, kv)
		add(b+"attn_v.weight", d, kv)
		add(b+"attn_q_norm.weight", synthHead)
		add(b+"attn_k_norm.weight", synthHead)
		add(b+"attn_output.weight", q, d)
		add(b+"ffn_norm.weight", d)
		add(b+"ffn_gate.weight", d, f)
		add(b+"ffn_up.weight", d, f)
		add(b+"ffn_down.weight", f, d)
	}
	return s
}

// Sizes of the hybrid model, as odd as those of the dense one.
const (
	hybridLayers  = 5 // and a draft block; every third is attention
	hybridHeads   = 3
	hybridHead    = 24
	hybridTaps    = 3
	hybridDim     = 12
	hybridKeys    = 2
	hybridValues  = 4
	hybridExperts = 5
	hybridUsed    = 3
	hybridExpert  = 14
	hybridShared  = 11
)

// newHybrid makes an untied hybrid model, dense or with experts, that has a draft block.
func newHybrid(t testing.TB, arch string) *synth {
	t.Helper()
	s := &synth{keys: []gguftest.KV{
		{Key: "general.architecture", Value: arch},
		{Key: "general.name", Value: "synthetic"},
	}}
	for _, k := range []gguftest.KV{
		{Key: "block_count", Value: uint32(hybridLayers + 1)}, {Key: "nextn_predict_layers", Value: uint32(1)},
		{Key: "context_length", Value: uint32(1024)}, {Key: "embedding_length", Value: uint32(synthWidth)},
		{Key: "feed_forward_length", Value: uint32(synthFF)},
		{Key: "attention.head_count", Value: uint32(hybridHeads)}, {Key: "attention.head_count_kv", Value: uint32(1)},
		{Key: "attention.key_length", Value: uint32(hybridHead)}, {Key: "attention.value_length", Value: uint32(hybridHead)},
		{Key: "attention.layer_norm_rms_epsilon", Value: float32(1e-6)},
		{Key: "rope.freq_base", Value: float32(1e4)}, {Key: "rope.dimension_count", Value: uint32(6)},
		{Key: "full_attention_interval", Value: uint32(3)},
		{Key: "ssm.conv_kernel", Value: uint32(hybridTaps)}, {Key: "ssm.state_size", Value: uint32(hybridDim)},
		{Key: "ssm.group_count", Value: uint32(hybridKeys)}, {Key: "ssm.time_step_rank", Value: uint32(hybridValues)},
		{Key: "ssm.inner_size", Value: uint32(hybridValues * hybridDim)},
		{Key: "expert_count", Value: uint32(hybridExperts)}, {Key: "expert_used_count", Value: uint32(hybridUsed)},
		{Key: "expert_feed_forward_length", Value: uint32(hybridExpert)},
		{Key: "expert_shared_feed_forward_length", Value: uint32(hybridShared)},
	} {
		if arch == "qwen35" && strings.HasPrefix(k.Key, "expert") {
			continue
		}
		s.keys = append(s.keys, gguftest.KV{Key: arch + "." + k.Key, Value: k.Value})
	}
	h := &hybridWriter{s: s, r: rand.New(rand.NewPCG(35, 7)), moe: arch == "qwen35moe"}
	h.add("token_embd.weight", synthWidth, synthVocab)
	h.add("output_norm.weight", synthWidth)
	h.add("output.weight", synthWidth, synthVocab)
	for i := range hybridLayers + 1 {
		h.block(fmt.Sprintf("blk.%d.", i), (i+1)%3 == 0 || i == hybridLayers)
	}
	b := fmt.Sprintf("blk.%d.nextn.", hybridLayers)
	h.add(b+"eh_proj.weight", 2*synthWidth, synthWidth)
	h.add(b+"enorm.weight", synthWidth)
	h.add(b+"hnorm.weight", synthWidth)
	h.add(b+"shared_head_norm.weight", synthWidth)
	return s
}

type hybridWriter struct {
	s   *synth
	r   *rand.Rand
	moe bool
}

func (h *hybridWriter) add(name string, dims ...uint64) {
	h.s.tensors = append(h.s.tensors, f32Tensor(h.r, name, dims))
}

func (h *hybridWriter) block(b string, full bool) {
	const d, q, kd, vd = synthWidth, hybridHeads * hybridHead, hybridKeys * hybridDim, hybridValues * hybridDim
	h.add(b+"attn_norm.weight", d)
	h.add(b+"post_attention_norm.weight", d)
	if full {
		h.add(b+"attn_q.weight", d, 2*q)
		h.add(b+"attn_k.weight", d, hybridHead)
		h.add(b+"attn_v.weight", d, hybridHead)
		h.add(b+"attn_q_norm.weight", hybridHead)
		h.add(b+"attn_k_norm.weight", hybridHead)
		h.add(b+"attn_output.weight", q, d)
	} else {
		h.add(b+"attn_qkv.weight", d, 2*kd+vd)
		h.add(b+"attn_gate.weight", d, vd)
		h.add(b+"ssm_conv1d.weight", hybridTaps, 2*kd+vd)
		h.add(b+"ssm_alpha.weight", d, hybridValues)
		h.add(b+"ssm_beta.weight", d, hybridValues)
		h.add(b+"ssm_dt.bias", hybridValues)
		h.add(b+"ssm_a", hybridValues)
		h.negative()
		h.add(b+"ssm_norm.weight", hybridDim)
		h.add(b+"ssm_out.weight", vd, d)
	}
	ff, suffix := uint64(synthFF), ""
	if h.moe {
		ff, suffix = hybridShared, "_shexp"
		h.add(b+"ffn_gate_inp.weight", d, hybridExperts)
		h.add(b+"ffn_gate_exps.weight", d, hybridExpert, hybridExperts)
		h.add(b+"ffn_up_exps.weight", d, hybridExpert, hybridExperts)
		h.add(b+"ffn_down_exps.weight", hybridExpert, d, hybridExperts)
		h.add(b+"ffn_gate_inp_shexp.weight", d)
	}
	h.add(b+"ffn_gate"+suffix+".weight", d, ff)
	h.add(b+"ffn_up"+suffix+".weight", d, ff)
	h.add(b+"ffn_down"+suffix+".weight", ff, d)
}

// negative turns the last tensor into what ssm_a is: between -1.1 and 0, so that states live long enough to matter.
func (h *hybridWriter) negative() {
	t := h.s.tensors[len(h.s.tensors)-1]
	for i := 0; i < len(t.Data); i += 4 {
		binary.LittleEndian.PutUint32(t.Data[i:], math.Float32bits(-float32(math.Exp(-3*h.r.Float64()))))
	}
}

// f32Tensor is scaled so that logits have margins of order 1 (spec engine.md 9.1).
func f32Tensor(r *rand.Rand, name string, dims []uint64) gguftest.Tensor {
	n := 1
	for _, d := range dims {
		n *= int(d)
	}
	data := make([]byte, 4*n)
	for i := range n {
		v := 1 + 0.2*r.NormFloat64()
		if len(dims) > 1 {
			v = 2 * r.NormFloat64() / math.Sqrt(float64(dims[0]))
		}
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(v)))
	}
	return gguftest.Tensor{Name: name, Dims: dims, Type: quant.F32, Data: data}
}

// set changes a key's value; nil removes the key.
func (s *synth) set(key string, value any) *synth {
	for i := range s.keys {
		if s.keys[i].Key != key {
			continue
		}
		s.keys[i].Value = value
		if value == nil {
			s.keys = append(s.keys[:i], s.keys[i+1:]...)
		}
		return s
	}
	s.keys = append(s.keys, gguftest.KV{Key: key, Value: value})
	return s
}

// change replaces a tensor's description and data; without dims the tensor is removed.
func (s *synth) change(name string, typ quant.Type, dims ...uint64) *synth {
	for i := range s.tensors {
		if s.tensors[i].Name != name {
			continue
		}
		if len(dims) == 0 {
			s.tensors = append(s.tensors[:i], s.tensors[i+1:]...)
			return s
		}
		rows := 1
		for _, d := range dims[1:] {
			rows *= int(d)
		}
		size, err := quant.Bytes(typ, int(dims[0]), rows)
		if err != nil {
			panic(err) // a mistake in the test
		}
		s.tensors[i] = gguftest.Tensor{Name: name, Dims: dims, Type: typ, Data: make([]byte, size)}
	}
	return s
}

// tied removes the output matrix.
func (s *synth) tied() *synth { return s.change("output.weight", quant.F32) }

func (s *synth) open(t testing.TB) (*compute.Model, error) {
	t.Helper()
	b, err := gguftest.Bytes(s.keys, s.tensors)
	if err != nil {
		t.Fatal(err)
	}
	return compute.OpenModel(gguf.Part{Name: "synth.gguf", R: bytes.NewReader(b), Size: int64(len(b))})
}

func (s *synth) model(t testing.TB) *compute.Model {
	t.Helper()
	m, err := s.open(t)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// bytesOf sums the data of tensors whose name starts with prefix.
func (s *synth) bytesOf(prefix string) (n int64) {
	for _, t := range s.tensors {
		if strings.HasPrefix(t.Name, prefix) {
			n += int64(len(t.Data))
		}
	}
	return n
}
