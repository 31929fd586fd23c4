package catalog

// builtin is the catalogue (spec room.md 2.1 to 2.3). Sizes of layers and embeddings are those of the tensors in the
// files; the test adds them up and compares with the files' sizes where the table allows that.
var builtin = []Entry{
	{
		Key: "mini", Label: "Pooled Mini · Q8", Note: "tiny: for first runs and tests", Kind: Dense, Layers: 12, Embedded: true,
		Files: []File{{Name: "pooled-mini.gguf", Bytes: 5_995_200,
			SHA256: "1d8d8f440ab954e158f3f5f931c765fb069076f6d4bac4c21be097940c3b7e86"}},
		// Trained on conversations of 2,048 tokens, measured up to 8,000.
		CtxDefault: 4096, CtxMax: 8192,
		LayerBytes: 459_008, KVPerPos: 256, EmbedBytes: 417_792,
	},
	{
		Key: "qwen3-0.6b", Label: "Qwen3 0.6B · Q8", Kind: Dense, Layers: 28,
		Files: []File{from("Qwen/Qwen3-0.6B-GGUF", "Qwen3-0.6B-Q8_0.gguf", 639_446_688,
			"9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031")},
		CtxDefault: otherCtx, CtxMax: otherCtx,
		LayerBytes: 16_720_896, KVPerPos: 8192, EmbedBytes: 165_306_368,
	},
	{
		Key: "qwen3-1.7b", Label: "Qwen3 1.7B · Q8", Kind: Dense, Layers: 28,
		Files: []File{from("Qwen/Qwen3-1.7B-GGUF", "Qwen3-1.7B-Q8_0.gguf", 1_834_426_016,
			"061b54daade076b5d3362dac252678d17da8c68f07560be70818cace6590cb1a")},
		CtxDefault: 16384, CtxMax: 16384, CtxFallback: 8192,
		LayerBytes: 53_494_784, KVPerPos: 8192, EmbedBytes: 330_612_736,
	},
	{
		Key: "qwen3-4b", Label: "Qwen3 4B · Q8", Kind: Dense, Layers: 36,
		Files: []File{from("Qwen/Qwen3-4B-GGUF", "Qwen3-4B-Q8_0.gguf", 4_280_404_704,
			"8c2f07f26af9747e41988551106f149b03eb9b5cb6df636027b6bf6278473300")},
		CtxDefault: otherCtx, CtxMax: otherCtx,
		LayerBytes: 107_254_784, KVPerPos: 8192, EmbedBytes: 413_265_920,
	},
	{
		Key: "qwen3.8-27b", Label: "Qwen3.8 27B · Q4", Kind: Hybrid, Layers: 64,
		Files: []File{from("unsloth/Qwen3.8-27B-GGUF", "Qwen3.8-27B-Q4_0.gguf", 16_056_478_688,
			"ede16c7b36e578ca87a8c70e011e4b4633a32c831c0ce76d0f474582384e671d")},
		CtxDefault: 16384, CtxMax: 65536,
		LayerBytes: 223_970_464, KVPerPos: 1024, KVPerPosQ8: 576,
		EmbedBytes: 715_161_600, HeadBytes: 1_042_944_000, DraftBytes: 265_197_568,
	},
	{
		Key: "qwen3.6-35b-moe", Label: "Qwen3.6 35B MoE · Q4", Kind: Hybrid, Layers: 40,
		Files: []File{from("bartowski/Qwen_Qwen3.6-35B-A3B-GGUF", "Qwen_Qwen3.6-35B-A3B-Q4_0.gguf", 20_836_243_072,
			"52312daa5b2190c1f5723d33c3315c01c55af4206f6c6e6eb63f3d8dd52bb85e")},
		CtxDefault: 32768, CtxMax: 131072,
		LayerBytes: 498_197_568, KVPerPos: 512, KVPerPosQ8: 288, ExpertBytes: 469_762_048,
		EmbedBytes: 286_064_640, HeadBytes: 417_177_600, DraftBytes: 897_955_840,
	},
	{
		Key: "qwen3.5-122b-moe", Label: "Qwen3.5 122B MoE · Q4", Kind: Hybrid, Layers: 48,
		Files: []File{
			from(repo122, file122+"-00001-of-00002.gguf", 39_917_224_704,
				"717ab3efe330cb8581e7233bb93ad0c965fdb351ce5ae61a6f7b1252ba6925d9"),
			from(repo122, file122+"-00002-of-00002.gguf", 32_600_258_112,
				"28d9accacf99f2e87c6b2f4a199556067775af6ecccd76e31904f5bb0fd5867f"),
		},
		CtxDefault: 32768, CtxMax: 131072,
		LayerBytes: 1_485_116_672, KVPerPos: 512, KVPerPosQ8: 288, ExpertBytes: 1_409_286_144,
		EmbedBytes: 429_096_960, HeadBytes: 625_766_400, DraftBytes: 2_682_195_968,
	},
}

const (
	repo122 = "bartowski/Qwen_Qwen3.5-122B-A10B-GGUF"
	file122 = "Qwen_Qwen3.5-122B-A10B-Q4_0/Qwen_Qwen3.5-122B-A10B-Q4_0"
)
