package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"pooled/compute/gguf"
)

// The numbers of the embedded model are those of the embedded file.
func TestMiniIsItsFile(t *testing.T) {
	e := byKey("mini")
	if int64(len(miniModel)) != e.Files[0].Bytes {
		t.Errorf("%d bytes embedded, want %d", len(miniModel), e.Files[0].Bytes)
	}
	if sum := sha256.Sum256([]byte(miniModel)); hex.EncodeToString(sum[:]) != e.Files[0].SHA256 {
		t.Errorf("SHA-256 %x, want %s", sum, e.Files[0].SHA256)
	}
	f, err := gguf.Open(gguf.Part{Name: "mini", R: strings.NewReader(miniModel), Size: int64(len(miniModel))})
	if err != nil {
		t.Fatal(err)
	}
	layers := map[string]int64{}
	var embed, head int64
	for _, tensor := range f.Tensors() {
		parts := strings.Split(tensor.Name, ".")
		switch {
		case parts[0] == "blk":
			layers[parts[1]] += tensor.Bytes
		case tensor.Name == "token_embd.weight":
			embed = tensor.Bytes
		case tensor.Name == "output.weight":
			head = tensor.Bytes
		}
	}
	if len(layers) != e.Layers || f.UintOr("qwen3.block_count", 0) != uint64(e.Layers) {
		t.Errorf("%d layers, want %d", len(layers), e.Layers)
	}
	for name, bytes := range layers {
		if bytes != e.LayerBytes {
			t.Errorf("layer %s: %d bytes, want %d", name, bytes, e.LayerBytes)
		}
	}
	if embed != e.EmbedBytes || head != e.HeadBytes {
		t.Errorf("embedding %d, head %d, want %d, %d", embed, head, e.EmbedBytes, e.HeadBytes)
	}
	heads, length := f.UintOr("qwen3.attention.head_count_kv", 0), f.UintOr("qwen3.attention.key_length", 0)
	if got := int64(heads * length * 2 * 2); got != e.KVPerPos { // keys and values, f16
		t.Errorf("%d bytes per position, want %d", got, e.KVPerPos)
	}
	if most := f.UintOr("qwen3.context_length", 0); uint64(e.CtxMax) > most {
		t.Errorf("context %d, the file allows %d", e.CtxMax, most)
	}
}

// The dense Qwen3 models: layer and embedding sizes from their shapes (Q8_0: 34 bytes for 32 weights; norms in f32),
// and all of it together is the file less its header, which has the same vocabulary in each.
func TestDenseSizes(t *testing.T) {
	for _, c := range []struct {
		key                               string
		width, heads, kvHeads, hd, hidden int64
	}{
		{"qwen3-0.6b", 1024, 16, 8, 128, 3072},
		{"qwen3-1.7b", 2048, 16, 8, 128, 6144},
		{"qwen3-4b", 2560, 32, 8, 128, 9728},
	} {
		e := byKey(c.key)
		q8 := func(weights int64) int64 { return weights / 32 * 34 }
		layer := q8(c.width*(2*c.heads+2*c.kvHeads)*c.hd+3*c.width*c.hidden) + 4*(2*c.width+2*c.hd)
		if e.LayerBytes != layer {
			t.Errorf("%s: layer %d, want %d", c.key, e.LayerBytes, layer)
		}
		if embed := q8(151936 * c.width); e.EmbedBytes != embed {
			t.Errorf("%s: embedding %d, want %d", c.key, e.EmbedBytes, embed)
		}
		if kv := 2 * 4 * c.kvHeads * c.hd; e.KVPerPos != kv {
			t.Errorf("%s: %d bytes per position, want %d", c.key, e.KVPerPos, kv)
		}
		header := e.Bytes() - int64(e.Layers)*e.LayerBytes - e.EmbedBytes - 4*c.width
		if header < 5_951_136 || header > 5_951_136+6000 {
			t.Errorf("%s: %d bytes left for the header, want about 5,951,136", c.key, header)
		}
	}
}

// Six models come from the hub (spec cli.md 4.2), one is embedded.
func TestBuiltin(t *testing.T) {
	wantBytes := map[string][]int64{
		"mini":             {5995200},
		"qwen3-0.6b":       {639446688},
		"qwen3-1.7b":       {1834426016},
		"qwen3-4b":         {4280404704},
		"qwen3.8-27b":      {16056478688},
		"qwen3.6-35b-moe":  {20836243072},
		"qwen3.5-122b-moe": {39917224704, 32600258112},
	}
	list := Builtin()
	if len(list) != len(wantBytes) {
		t.Errorf("%d models, want %d", len(list), len(wantBytes))
	}
	seen := map[string]bool{}
	for _, e := range list {
		var sizes []int64
		for _, f := range e.Files {
			sizes = append(sizes, f.Bytes)
			if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != sha256.Size || seen[f.SHA256] {
				t.Errorf("%s: hash %q", e.Key, f.SHA256)
			}
			seen[f.SHA256] = true
			u, err := url.Parse(f.URL)
			if !e.Embedded && (err != nil || u.Scheme != "https" || path.Base(u.Path) != f.Name || !strings.Contains(u.Path, "/resolve/main/")) {
				t.Errorf("%s: URL %q of %s", e.Key, f.URL, f.Name)
			}
			if f.Name == "" || f.Name != path.Base(f.Name) {
				t.Errorf("%s: file name %q", e.Key, f.Name)
			}
		}
		if !slices.Equal(sizes, wantBytes[e.Key]) {
			t.Errorf("%s: files of %v bytes, want %v", e.Key, sizes, wantBytes[e.Key])
		}
		if e.Label == "" || e.Short() == e.Label || e.Layers <= 0 || e.LayerBytes <= 0 || e.KVPerPos <= 0 || e.EmbedBytes <= 0 {
			t.Errorf("%s is incomplete: %+v", e.Key, e)
		}
		if e.CtxDefault <= 0 || e.CtxDefault > e.CtxMax || e.CtxFallback >= e.CtxDefault {
			t.Errorf("%s: contexts %d, %d, %d", e.Key, e.CtxDefault, e.CtxMax, e.CtxFallback)
		}
	}
	if got, want := byKey("qwen3.5-122b-moe").Files[1].URL, "https://huggingface.co/bartowski/Qwen_Qwen3.5-122B-A10B-GGUF/resolve/main/"+
		"Qwen_Qwen3.5-122B-A10B-Q4_0/Qwen_Qwen3.5-122B-A10B-Q4_0-00002-of-00002.gguf"; got != want {
		t.Errorf("URL %q, want %q", got, want)
	}
	list[0].Files[0].Name = "changed"
	if Builtin()[0].Files[0].Name == "changed" {
		t.Error("a caller can change the catalogue")
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		typed, want string
		err         error
		says        string
	}{
		{"qwen3-1.7b", "qwen3-1.7b", nil, ""},
		{"35b", "qwen3.6-35b-moe", nil, ""},
		{"35B", "qwen3.6-35b-moe", nil, ""},
		{"1.7b", "qwen3-1.7b", nil, ""},
		{" Mini ", "mini", nil, ""},
		{"122", "qwen3.5-122b-moe", nil, ""},
		{"qwen3-", "", ErrAmbiguous, `"qwen3-" fits more than one model: qwen3-0.6b, qwen3-1.7b, qwen3-4b`},
		{"moe", "", ErrAmbiguous, "qwen3.6-35b-moe, qwen3.5-122b-moe"},
		{"gpt", "", ErrUnknown, `unknown model "gpt": the models are mini, qwen3-0.6b, qwen3-1.7b, qwen3-4b, qwen3.8-27b, qwen3.6-35b-moe, qwen3.5-122b-moe`},
		{"", "", ErrUnknown, `unknown model ""`},
		{"\x1b[2J", "", ErrUnknown, `unknown model "\x1b[2J"`},
		{strings.Repeat("x", 50), "", ErrUnknown, `"` + strings.Repeat("x", 40) + `…"`},
	} {
		got, err := Match(Builtin(), c.typed)
		if got.Key != c.want || !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: got %q, %v, want %q, %v %s", c.typed, got.Key, err, c.want, c.err, c.says)
		}
	}
	// An exact key wins over longer keys that contain it.
	if got, err := Match([]Entry{{Key: "mini-two"}, {Key: "mini"}}, "mini"); err != nil || got.Key != "mini" {
		t.Errorf("exact key: got %q, %v", got.Key, err)
	}
}

func TestFormatBytes(t *testing.T) {
	for _, c := range []struct {
		n    int64
		want string
	}{
		{-1, "?"}, {0, "0 B"}, {1023, "1023 B"}, {1024, "1 KB"}, {1535, "1 KB"}, {1536, "2 KB"},
		{1<<20 - 1, "1 MB"}, {1 << 20, "1 MB"}, {5995200, "6 MB"}, {639446688, "610 MB"},
		{1<<30 - 1, "1.0 GB"}, {1 << 30, "1.0 GB"}, {1834426016, "1.7 GB"}, {20836243072, "19.4 GB"},
		{72517482816, "67.5 GB"}, {5 << 28, "1.3 GB"}, {107320000000, "99.9 GB"}, {107374182399, "100 GB"},
		{100 << 30, "100 GB"}, {1 << 40, "1024 GB"}, {1<<63 - 1, "8589934592 GB"},
	} {
		if got := FormatBytes(c.n); got != c.want {
			t.Errorf("FormatBytes(%d) = %q, want %q", c.n, got, c.want)
		}
	}
}

func TestCtx(t *testing.T) {
	for ask, want := range map[int]int{4223: 4096, 4224: 4352, 4351: 4352} {
		if got := byKey("qwen3.8-27b").Ctx(ask); got != want {
			t.Errorf("Ctx(%d) = %d, want %d", ask, got, want)
		}
	}
	if got := byKey("qwen3-1.7b").Ctx(int(^uint(0) >> 1)); got != 16384 {
		t.Errorf("got %d, want the most, 16384", got)
	}
	if got := (Entry{Kind: Hybrid}).Ctx(0); got != 8192 {
		t.Errorf("hybrid without a table: got %d, want 8192", got)
	}
}
