package launch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pooled/catalog"
	"pooled/compute"
	"pooled/compute/bench"
	"pooled/compute/op"
	"pooled/compute/shape"
	"pooled/session"
)

// There is a shape for every model of the catalogue, of its sizes, and the engine takes it.
func TestShapesAreTheCatalogues(t *testing.T) {
	for _, e := range catalog.Builtin() {
		if e.Embedded {
			continue
		}
		s, err := shape.Find(e.Key)
		if err != nil {
			t.Error(err)
			continue
		}
		f, err := s.Open()
		if err != nil {
			t.Fatal(err)
		}
		m, err := compute.OpenModel(f.Part())
		if err != nil {
			t.Fatal(err)
		}
		var first int64 // what the catalogue has the mean of
		for i := range 4 {
			first += m.LayerBytes(i)
		}
		if m.Layers != e.Layers || first != 4*e.LayerBytes || m.EmbedBytes != e.EmbedBytes || m.HeadBytes != e.HeadBytes || m.DraftBytes != e.DraftBytes {
			t.Errorf("%s: %d layers of %d, embedding %d, head %d, draft block %d", e.Key, m.Layers, first/4, m.EmbedBytes, m.HeadBytes, m.DraftBytes)
		}
		if kv := m.KVPerPos(op.KVF16); e.Kind == catalog.Hybrid && kv != e.KVPerPos {
			t.Errorf("%s: %d bytes per position", e.Key, kv)
		}
		if _, err := m.Tokenizer(); err != nil {
			t.Errorf("%s: %v", e.Key, err)
		}
	}
}

func TestBenchProblems(t *testing.T) {
	refused := &bench.MemoryError{Need: 16 << 30, Given: 8 << 30, Err: op.ErrMemory}
	for _, c := range []struct {
		err       error
		code      string
		exit      int
		what, why string
	}{
		{fmt.Errorf("bench: %w", refused), "memory", session.ExitFailed, "H100", "16.0 GB with these options, 8.0 GB"},
		{fmt.Errorf("bench: %w: a run", bench.ErrDiffer), "differ", session.ExitFailed, "different tokens", "a run"},
		{fmt.Errorf("bench: %w: 0 runs", bench.ErrOptions), "bench", session.ExitUsage, "0 runs", ""},
		{errors.New("else"), "failed", session.ExitFailed, "else", ""},
	} {
		p := session.AsProblem(benchProblem(c.err, op.Info{Name: "H100"}))
		if p.Code != c.code || p.Exit != c.exit || !strings.Contains(p.What, c.what) || !strings.Contains(p.Why, c.why) {
			t.Errorf("%v: %+v", c.err, p)
		}
	}
}

// What is measured without flags depends on the device.
func TestBenchDefaults(t *testing.T) {
	c := &BenchCommand{Shape: "tiny-dense", Gen: -1, Warm: -1, Reps: 3, KV: "f32"}
	hard, err := c.options(nil, op.Info{})
	if err != nil || fmt.Sprint(hard.Prompts) != "[512 2048]" || hard.Gen != 128 || hard.Warm == 0 || hard.Most != 0 || hard.KV != op.KVF32 {
		t.Errorf("%+v, %v", hard, err)
	}
	soft, err := c.options(nil, op.Info{Software: true})
	if err != nil || fmt.Sprint(soft.Prompts) != "[64]" || soft.Gen != 16 || soft.Warm != 0 || soft.Most != freeRAM() && soft.Most == 0 {
		t.Errorf("%+v, %v", soft, err)
	}
	c.Prompt, c.Gen, c.Warm = []int{7}, 0, 0.5
	if o, err := c.options(nil, op.Info{}); err != nil || o.Warm != time.Second/2 || fmt.Sprint(o.Prompts) != "[7]" || o.Gen != 0 {
		t.Errorf("%+v, %v", o, err)
	}
}

// Names of drivers and files can't move a cursor.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"NVIDIA H200": "NVIDIA H200", "\x1b[2Jx\u009b": "[2Jx", "\x00": "without a name", strings.Repeat("x", 100): strings.Repeat("x", 59) + "…",
	} {
		if got := plain(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 28500: "28500"} {
		if got := figure(v); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
}
