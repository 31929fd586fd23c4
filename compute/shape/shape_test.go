package shape

import (
	"fmt"
	"strings"
	"testing"
)

// The sizes of spec engine.md 1.5: the mean over the first four layers, and the ends.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name                      string
		layer, embed, head, draft int64
		file, header              int64 // header: what the real file has beside its tensors
		slack                     int64
	}{
		{"qwen3-0.6b", 16_720_896, 165_306_368, 0, 0, 639_446_688, 5_951_136, 6_000},
		{"qwen3-1.7b", 53_494_784, 330_612_736, 0, 0, 1_834_426_016, 5_951_136, 6_000},
		{"qwen3-4b", 107_254_784, 413_265_920, 0, 0, 4_280_404_704, 5_951_136, 6_000},
		{"qwen3.8-27b", 223_970_464, 715_161_600, 1_042_944_000, 265_197_568, 16_056_478_688, 10_996_704, 0},
		{"qwen3.6-35b-moe", 498_197_568, 286_064_640, 417_177_600, 897_955_840, 20_836_243_072, 10_990_000, 10_000_000},
		{"qwen3.5-122b-moe", 1_485_116_672, 429_096_960, 625_766_400, 2_682_195_968, 39_917_224_704 + 32_600_258_112, 11_000_000, 14_000_000},
	} {
		s, err := Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		var layers, embed, head, draft, all int64
		for _, x := range s.Tensors() {
			n, err := x.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			all += n
			var i int
			switch _, err := fmt.Sscanf(x.Name, "blk.%d.", &i); {
			case x.Name == "token_embd.weight":
				embed = n
			case x.Name == "output.weight":
				head = n
			case err == nil && i < 4:
				layers += n
			case err == nil && i == s.Layers:
				draft += n
			}
		}
		t.Logf("%s: %d bytes of tensors, %d less than the file without its header", c.name, all, c.file-c.header-all)
		if layers != 4*c.layer || embed != c.embed || head != c.head || draft != c.draft {
			t.Errorf("%s: layers 0-3 %d (mean %d), embedding %d, head %d, draft block %d", c.name, layers, layers/4, embed, head, draft)
		}
		if d := c.file - c.header - all; d < -c.slack || d > c.slack {
			t.Errorf("%s: %d bytes of tensors, %d off", c.name, all, d)
		}
	}
}

func TestFind(t *testing.T) {
	for typed, want := range map[string]string{
		"qwen3-1.7b": "qwen3-1.7b", "1.7B": "qwen3-1.7b", "27b": "qwen3.8-27b", "35b": "qwen3.6-35b-moe", " 122 ": "qwen3.5-122b-moe",
		"qwen35-27b": "qwen3.8-27b", "tiny-moe": "tiny-moe",
	} {
		if s, err := Find(typed); err != nil || s.Name != want {
			t.Errorf("%q: %q, %v", typed, s.Name, err)
		}
	}
	for _, typed := range []string{"", "gpt", "qwen3-", "moe"} {
		if _, err := Find(typed); err == nil || !strings.Contains(err.Error(), strings.Join(Names(), ", ")) {
			t.Errorf("%q: %v", typed, err)
		}
	}
}
