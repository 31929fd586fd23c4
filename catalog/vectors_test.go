package catalog

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// group reads one group of cases of models.json.
func group[In, Out any](t *testing.T, name string) []struct {
	In  In
	Out Out
} {
	t.Helper()
	dir := os.Getenv("POOLED_VECTORS")
	given := dir != ""
	if !given {
		dir = filepath.Join("testdata", "vectors")
	}
	text, err := os.ReadFile(filepath.Join(dir, "models.json"))
	if given && errors.Is(err, fs.ErrNotExist) {
		t.Skipf("POOLED_VECTORS has no models.json: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if given && all[name] == nil {
		t.Skipf("models.json of POOLED_VECTORS has no group %s", name)
	}
	var g struct {
		Cases []struct {
			In  In
			Out Out
		}
	}
	if err := json.Unmarshal(all[name], &g); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(g.Cases) == 0 {
		t.Fatalf("%s: no cases", name)
	}
	return g.Cases
}

// byKey returns the zero Entry for a model that the catalogue does not have.
func byKey(key string) Entry {
	for _, e := range Builtin() {
		if e.Key == key {
			return e
		}
	}
	return Entry{}
}

func TestVectorsModelsHostHeld(t *testing.T) {
	type in struct {
		Kind            string
		Embed, Out, MTP int64
	}
	for _, c := range group[in, int64](t, "host_held_bytes") {
		if got := HostHeld(c.In.Kind, c.In.Embed, c.In.Out, c.In.MTP); got != c.Out {
			t.Errorf("%+v: %d, want %d", c.In, got, c.Out)
		}
	}
}

func TestVectorsModelsRoomBytes(t *testing.T) {
	type in struct {
		Model, KV string
		Ctx       int
	}
	type out struct {
		L                                              int
		LayerBytes, HostBytes, ExpertBytes, TotalBytes int64
	}
	for _, c := range group[in, out](t, "room_bytes") {
		e := byKey(c.In.Model)
		got := out{e.Layers, e.LayerCost(c.In.Ctx, c.In.KV), e.HostBytes(), e.ExpertBytes, e.RoomBytes(c.In.Ctx, c.In.KV)}
		if got != c.Out {
			t.Errorf("%+v: %+v, want %+v", c.In, got, c.Out)
		}
	}
}

func TestVectorsModelsMaxSeq(t *testing.T) {
	type in struct {
		Model string
		Ask   int
	}
	type out struct{ MaxSeqFor, NodeCtxFor int }
	for _, c := range group[in, out](t, "max_seq_for") {
		e := byKey(c.In.Model)
		if got := (out{e.Ctx(c.In.Ask), e.NodeCtx(c.In.Ask)}); got != c.Out {
			t.Errorf("%+v: %+v, want %+v", c.In, got, c.Out)
		}
	}
}

// meta is the part of a header that the shape of a cache comes from.
type meta struct {
	Heads    int `json:"qwen35.attention.head_count_kv"`
	Length   int `json:"qwen35.attention.key_length"`
	Interval int `json:"qwen35.full_attention_interval"`
}

func TestVectorsModelsKVBytes(t *testing.T) {
	type in struct {
		Meta meta
		KV   string
	}
	for _, c := range group[in, int64](t, "kv_bytes") {
		if got := KVShape(c.In.Meta).PerPos(c.In.KV); got != c.Out {
			t.Errorf("%+v: %d, want %d", c.In, got, c.Out)
		}
	}
}

func TestVectorsModelsBinding(t *testing.T) {
	type in struct {
		Meta    meta
		Ctx     int
		KV      string
		BindMiB int64
	}
	for _, c := range group[in, int](t, "ctx_for_binding") {
		if got := KVShape(c.In.Meta).CtxForBinding(c.In.Ctx, c.In.KV, c.In.BindMiB<<20); got != c.Out {
			t.Errorf("%+v: %d, want %d", c.In, got, c.Out)
		}
	}
}
