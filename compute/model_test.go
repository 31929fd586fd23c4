package compute_test

import (
	"errors"
	"strings"
	"testing"

	"pooled/compute"
	"pooled/compute/gguf"
	"pooled/compute/op"
	"pooled/compute/quant"
)

func TestModelFacts(t *testing.T) {
	s := newSynth(t)
	m := s.model(t)
	if m.Arch != "qwen3" || m.Name != "synthetic" || m.Layers != 3 || m.Width != 36 || m.Vocab != 61 || m.CtxMax != 64 {
		t.Errorf("got %+v", m)
	}
	const matrix = 36 * 61 * 4
	if m.Tied() || m.EmbedBytes != matrix || m.HeadBytes != matrix {
		t.Errorf("untied: got tied %v, embedding %d, head %d", m.Tied(), m.EmbedBytes, m.HeadBytes)
	}
	for i := range 3 {
		if got, want := m.LayerBytes(i), s.bytesOf("blk.0."); got != want {
			t.Errorf("layer %d has %d bytes, want %d", i, got, want)
		}
	}
	for _, i := range []int{-1, 3} {
		if got := m.LayerBytes(i); got != 0 {
			t.Errorf("layer %d has %d bytes, want 0", i, got)
		}
	}
	if f16, f32 := m.KVPerPos(op.KVF16), m.KVPerPos(op.KVF32); f16 != 2*2*2*24 || f32 != 2*f16 {
		t.Errorf("a position takes %d bytes in f16 and %d in f32", f16, f32)
	}
	m = newSynth(t).tied().model(t)
	if !m.Tied() || m.EmbedBytes != matrix || m.HeadBytes != 0 {
		t.Errorf("tied: got tied %v, embedding %d, head %d", m.Tied(), m.EmbedBytes, m.HeadBytes)
	}
}

func TestTinyModelFacts(t *testing.T) {
	for _, c := range []struct {
		name string
		tied bool
	}{{"tiny-qwen3-q8", true}, {"tiny-qwen3-q4", true}} {
		m := tiny(t, c.name)
		if m.Layers != 4 || m.Width != 256 || m.Vocab != 1024 || m.CtxMax != 4096 || m.Tied() != c.tied {
			t.Errorf("%s: got %+v, tied %v", c.name, m, m.Tied())
		}
		tok, err := m.Tokenizer()
		if err != nil {
			t.Fatal(err)
		}
		if tok.Size() != 1024 {
			t.Errorf("%s: %d tokens", c.name, tok.Size())
		}
		if again, err := m.Tokenizer(); again != tok || err != nil {
			t.Errorf("%s: the tokenizer was made twice", c.name)
		}
	}
}

func TestUnknownArchitectureSaysWhatIsKnown(t *testing.T) {
	_, err := newSynth(t).set("general.architecture", "llama").open(t)
	if !errors.Is(err, compute.ErrArch) || !strings.Contains(err.Error(), `"llama"`) || !strings.Contains(err.Error(), "qwen3") {
		t.Errorf("got %v", err)
	}
	_, err = newSynth(t).set("general.architecture", nil).open(t)
	if !errors.Is(err, compute.ErrArch) {
		t.Errorf("without an architecture: got %v", err)
	}
}

func TestOptionalNumbers(t *testing.T) {
	m := newSynth(t).
		set("qwen3.rope.dimension_count", nil).
		set("qwen3.attention.value_length", nil).
		model(t)
	whole(t, compute.OpenRef(), m, 8)
	// Without head_count_kv and key_length every head has its own keys, and its width is width / heads.
	s := newSynth(t).set("qwen3.attention.head_count_kv", nil).set("qwen3.attention.key_length", nil)
	s.set("qwen3.attention.value_length", nil).set("qwen3.rope.dimension_count", nil)
	for _, b := range []string{"blk.0.", "blk.1.", "blk.2."} {
		for _, n := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			s.change(b+n+".weight", quant.F32, 36, 36)
		}
		s.change(b+"attn_q_norm.weight", quant.F32, 6).change(b+"attn_k_norm.weight", quant.F32, 6)
	}
	if got := s.model(t).KVPerPos(op.KVF16); got != 2*2*36 {
		t.Errorf("a position takes %d bytes", got)
	}
}

func TestBadModels(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(s *synth) *synth
		says string
	}{
		{"no layers", func(s *synth) *synth { return s.set("qwen3.block_count", uint32(0)) }, "block_count"},
		{"huge layer count", func(s *synth) *synth { return s.set("qwen3.block_count", uint64(1<<63)) }, "block_count"},
		{"layers without tensors", func(s *synth) *synth { return s.set("qwen3.block_count", uint32(4)) }, "blk.3.attn_norm.weight is missing"},
		{"no width", func(s *synth) *synth { return s.set("qwen3.embedding_length", nil) }, "embedding_length"},
		{"width of text", func(s *synth) *synth { return s.set("qwen3.embedding_length", "wide") }, "embedding_length"},
		{"another width", func(s *synth) *synth { return s.set("qwen3.embedding_length", uint32(40)) }, "token_embd.weight has shape [36 61]"},
		{"no context", func(s *synth) *synth { return s.set("qwen3.context_length", uint32(0)) }, "context_length"},
		{"no heads", func(s *synth) *synth { return s.set("qwen3.attention.head_count", uint32(0)) }, "head_count"},
		{"heads that can't share", func(s *synth) *synth { return s.set("qwen3.attention.head_count_kv", uint32(4)) }, "head_count_kv"},
		{"odd head", func(s *synth) *synth {
			return s.set("qwen3.attention.key_length", uint32(7)).set("qwen3.attention.value_length", uint32(7)).set("qwen3.rope.dimension_count", uint32(6))
		}, "key_length"},
		{"values of another width", func(s *synth) *synth { return s.set("qwen3.attention.value_length", uint32(16)) }, "value_length"},
		{"rotation wider than a head", func(s *synth) *synth { return s.set("qwen3.rope.dimension_count", uint32(26)) }, "dimension_count"},
		{"odd rotation", func(s *synth) *synth { return s.set("qwen3.rope.dimension_count", uint32(9)) }, "dimension_count"},
		{"no rope base", func(s *synth) *synth { return s.set("qwen3.rope.freq_base", nil) }, "freq_base"},
		{"negative rope base", func(s *synth) *synth { return s.set("qwen3.rope.freq_base", float32(-1)) }, "freq_base"},
		{"scaled rope", func(s *synth) *synth { return s.set("qwen3.rope.scaling.type", "yarn") }, `"yarn" is not supported`},
		{"no epsilon", func(s *synth) *synth { return s.set("qwen3.attention.layer_norm_rms_epsilon", nil) }, "epsilon"},
		{"no embedding", func(s *synth) *synth { return s.change("token_embd.weight", quant.F32) }, "token_embd.weight is missing"},
		{"embedding in one dimension", func(s *synth) *synth { return s.change("token_embd.weight", quant.F32, 36) }, "token_embd.weight has shape"},
		{"no final norm", func(s *synth) *synth { return s.change("output_norm.weight", quant.F32) }, "output_norm.weight is missing"},
		{"head for other tokens", func(s *synth) *synth { return s.change("output.weight", quant.F32, 36, 60) }, "output.weight has shape"},
		{"missing tensor", func(s *synth) *synth { return s.change("blk.1.ffn_up.weight", quant.F32) }, "blk.1.ffn_up.weight is missing"},
		{"transposed tensor", func(s *synth) *synth { return s.change("blk.2.ffn_down.weight", quant.F32, 36, 50) }, "blk.2.ffn_down.weight has shape [36 50]"},
		{"norm in halves", func(s *synth) *synth { return s.change("blk.0.attn_norm.weight", quant.F16, 36) }, "only F32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := c.make(newSynth(t)).open(t)
			if !errors.Is(err, compute.ErrModel) || m != nil {
				t.Fatalf("got %v, %v; want an unusable model", m, err)
			}
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "synth.gguf") {
				t.Errorf("got %q, want the file's name and %q in it", err, c.says)
			}
		})
	}
}

func TestOpenModelOfNothing(t *testing.T) {
	if _, err := compute.OpenModel(); err == nil {
		t.Error("no parts: no error")
	}
	part := gguf.Part{Name: "x.gguf", R: strings.NewReader("nonsense that is long enough"), Size: 28}
	if _, err := compute.OpenModel(part); !errors.Is(err, gguf.ErrNotGGUF) {
		t.Errorf("got %v", err)
	}
}

func TestTokenizerErrors(t *testing.T) {
	vocab := func(s *synth) *synth {
		return s.set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", "qwen2").
			set("tokenizer.ggml.tokens", make([]string, 62)).set("tokenizer.ggml.merges", []string{}).
			set("tokenizer.ggml.token_type", make([]int32, 62))
	}
	for _, c := range []struct {
		name string
		make func(s *synth) *synth
		says string
	}{
		{"none", func(s *synth) *synth { return s }, "tokenizer model"},
		{"another kind", func(s *synth) *synth { return s.set("tokenizer.ggml.model", "llama") }, `"llama"`},
		{"no tokens", func(s *synth) *synth { return vocab(s).set("tokenizer.ggml.tokens", nil) }, "tokenizer.ggml.tokens"},
		{"no merges", func(s *synth) *synth { return vocab(s).set("tokenizer.ggml.merges", nil) }, "tokenizer.ggml.merges"},
		{"no types", func(s *synth) *synth { return vocab(s).set("tokenizer.ggml.token_type", nil) }, "tokenizer.ggml.token_type"},
		{"more tokens than rows", vocab, "62 tokens but 61 rows"},
	} {
		m := c.make(newSynth(t)).model(t)
		if _, err := m.Tokenizer(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q in it", c.name, err, c.says)
		}
		if _, err := m.Profile(); err == nil {
			t.Errorf("%s: a profile without a tokenizer", c.name)
		}
	}
}
