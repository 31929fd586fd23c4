package shape

import "pooled/compute/quant"

// aliases are other names of shapes: what the architecture and the size are called.
var aliases = map[string]string{
	"qwen35-27b":      "qwen3.8-27b",
	"qwen35moe-35b":   "qwen3.6-35b-moe",
	"qwen35moe-122b":  "qwen3.5-122b-moe",
	"qwen3.6-35b-a3b": "qwen3.6-35b-moe",
}

const (
	vocab3  = 151_936 // tokens of Qwen3
	vocab35 = 248_320 // of Qwen3.5 and later

	fileQ4_0 = 2 // values of general.file_type
	fileQ8_0 = 7
)

// shapes are the tiny ones for tests and software adapters, then the catalogue's models (spec room.md 2.3).
var shapes = []Shape{
	tiny("tiny-dense", "qwen3"), tiny("tiny-hybrid", "qwen35"), tiny("tiny-moe", "qwen35moe"),
	dense("qwen3-0.6b", 28, 1024, 16, 3072),
	dense("qwen3-1.7b", 28, 2048, 16, 6144),
	dense("qwen3-4b", 36, 2560, 32, 9728),
	{
		Name: "qwen3.8-27b", Arch: "qwen35", Layers: 64, Width: 5120, Vocab: vocab35, Ctx: 262_144, Theta: 1e7,
		Heads: 24, KVHeads: 4, Head: 256, Rot: 64, FF: 17_408,
		Interval: 4, KeyHeads: 16, ValueHeads: 48, Dim: 128, Draft: true,
		mix: mix{
			file: fileQ4_0, rest: quant.Q4_0, embed: quant.Q4_0, head: quant.Q6_K,
			all: map[string]quant.Type{
				"attn_k": quant.Q4_1, "attn_v": quant.Q5_K, "attn_output": quant.Q4_1,
				"ssm_out": quant.Q5_K, "ssm_alpha": quant.BF16, "ssm_beta": quant.BF16,
			},
			early: map[string]quant.Type{"ffn_down": quant.Q4_1},
			draft: map[string]quant.Type{"attn_q": quant.Q4_1, "attn_output": quant.Q8_0, "ffn_down": quant.Q4_1},
		},
	},
	{
		Name: "qwen3.6-35b-moe", Arch: "qwen35moe", Layers: 40, Width: 2048, Vocab: vocab35, Ctx: 262_144, Theta: 1e7,
		Heads: 16, KVHeads: 2, Head: 256, Rot: 64,
		Interval: 4, KeyHeads: 16, ValueHeads: 32, Dim: 128, Draft: true,
		Experts: 256, Used: 8, Expert: 512, Shared: 512,
		mix: mix{
			file: fileQ4_0, rest: quant.Q4_0, embed: quant.Q4_0, head: quant.Q6_K,
			all: map[string]quant.Type{
				"attn_q": quant.Q6_K, "attn_k": quant.Q8_0, "attn_v": quant.Q8_0, "attn_output": quant.Q8_0,
				"ssm_alpha": quant.F32, "ssm_beta": quant.F32, "ffn_gate_inp": quant.BF16, "ffn_gate_inp_shexp": quant.F32,
				"ffn_gate_shexp": quant.Q8_0, "ffn_up_shexp": quant.Q8_0, "ffn_down_shexp": quant.Q5_0,
			},
			early: map[string]quant.Type{"ffn_down_exps": quant.Q4_1, "ssm_out": quant.Q8_0, "ffn_down_shexp": quant.Q8_0},
			draft: draftMoE,
		},
	},
	{
		Name: "qwen3.5-122b-moe", Arch: "qwen35moe", Layers: 48, Width: 3072, Vocab: vocab35, Ctx: 262_144, Theta: 1e7,
		Heads: 32, KVHeads: 2, Head: 256, Rot: 64,
		Interval: 4, KeyHeads: 16, ValueHeads: 64, Dim: 128, Draft: true,
		Experts: 256, Used: 8, Expert: 1024, Shared: 1024,
		mix: mix{
			file: fileQ4_0, rest: quant.Q4_0, embed: quant.Q4_0, head: quant.Q6_K,
			all: map[string]quant.Type{
				"attn_q": quant.Q5_K, "attn_k": quant.Q5_K, "attn_v": quant.Q5_K, "attn_output": quant.Q8_0,
				"ssm_alpha": quant.F32, "ssm_beta": quant.F32, "ffn_gate_inp": quant.F32, "ffn_gate_inp_shexp": quant.F32,
				"ffn_gate_shexp": quant.Q8_0, "ffn_up_shexp": quant.Q8_0, "ffn_down_shexp": quant.Q5_0,
			},
			early: map[string]quant.Type{"ffn_down_exps": quant.Q4_1, "ssm_out": quant.Q8_0},
			draft: draftMoE,
		},
	},
}

// draftMoE are the formats of the draft blocks of the mixtures of experts.
var draftMoE = map[string]quant.Type{
	"nextn.eh_proj": quant.Q8_0, "attn_q": quant.Q8_0, "attn_k": quant.Q8_0, "attn_v": quant.Q8_0, "attn_output": quant.Q8_0,
	"ffn_gate_exps": quant.Q8_0, "ffn_up_exps": quant.Q8_0, "ffn_down_exps": quant.Q8_0,
	"ffn_gate_shexp": quant.Q8_0, "ffn_up_shexp": quant.Q8_0, "ffn_down_shexp": quant.Q8_0,
	"ffn_gate_inp": quant.BF16, "ffn_gate_inp_shexp": quant.BF16,
}

// dense is a Qwen3 in Q8_0, whose head is the embedding table.
func dense(name string, layers, width, heads, ff int) Shape {
	return Shape{
		Name: name, Arch: "qwen3", Layers: layers, Width: width, Vocab: vocab3, Ctx: 40_960, Theta: 1e6,
		Heads: heads, KVHeads: 8, Head: 128, Rot: 128, FF: ff,
		mix: mix{file: fileQ8_0, rest: quant.Q8_0, embed: quant.Q8_0, tied: true},
	}
}

// tiny is a shape of a few megabytes that has every format somewhere.
func tiny(name, arch string) Shape {
	s := Shape{
		Name: name, Arch: arch, Layers: 8, Width: 256, Vocab: 2048, Ctx: 4096, Theta: 1e6,
		Heads: 4, KVHeads: 2, Head: 64, Rot: 64, FF: 512,
		mix: mix{
			file: fileQ4_0, rest: quant.Q4_0, embed: quant.Q8_0, head: quant.Q8_0, tied: arch == "qwen3",
			all: map[string]quant.Type{
				"attn_k": quant.Q5_0, "attn_v": quant.Q5_1, "attn_output": quant.Q4_K, "attn_gate": quant.F16, "ffn_up": quant.Q6_K,
				"ffn_down": quant.Q5_K, "ssm_alpha": quant.BF16, "ssm_beta": quant.F32, "ffn_gate_inp": quant.BF16,
				"ffn_gate_inp_shexp": quant.BF16, "ffn_down_exps": quant.Q8_0,
			},
			early: map[string]quant.Type{"attn_q": quant.Q4_1, "attn_qkv": quant.Q4_1},
		},
	}
	if arch != "qwen3" {
		s.Theta, s.Rot, s.Interval, s.KeyHeads, s.ValueHeads, s.Dim, s.Draft = 1e7, 32, 4, 2, 4, 64, true
	}
	if arch == "qwen35moe" {
		s.FF, s.Experts, s.Used, s.Expert, s.Shared = 0, 8, 2, 256, 256
	}
	return s
}
