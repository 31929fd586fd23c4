package compute_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pooled/compute"
	"pooled/compute/gguf"
	"pooled/compute/op"
)

// shelf opens the tiny models by name and counts what is open.
type shelf struct{ open int }

type lent struct {
	io.Closer
	s *shelf
}

func (l lent) Close() error { l.s.open--; return l.Closer.Close() }

func (s *shelf) get(key string) ([]gguf.Part, io.Closer, error) {
	f, err := os.Open(filepath.Join("testdata", "models", key+".gguf"))
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	s.open++
	return []gguf.Part{{Name: key, R: f, Size: info.Size()}}, lent{f, s}, nil
}

func TestEngine(t *testing.T) {
	ctx, books := context.Background(), &shelf{}
	dev := compute.OpenRef()
	e := compute.NewEngine(dev, books.get)
	if _, err := e.Embed(ctx, 0, []int32{1}); !errors.Is(err, compute.ErrCall) {
		t.Errorf("before loading: got %v", err)
	}
	if _, _, err := e.Text(); !errors.Is(err, compute.ErrCall) {
		t.Errorf("text before a model: got %v", err)
	}
	m, err := e.Model(ctx, "tiny-qwen3-q8")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := e.Model(ctx, "tiny-qwen3-q8"); again != m || err != nil || books.open != 1 {
		t.Errorf("the same model again: got %p, want %p; %v; %d files open", again, m, err, books.open)
	}
	if tok, p, err := e.Text(); err != nil || tok.Size() != 1024 || p.Style == "" {
		t.Errorf("text: %v, %+v", err, p)
	}
	var percents []int
	spec := compute.ShardSpec{Hi: 4, Head: true, Ctx: 32}
	if err := e.Load(ctx, "tiny-qwen3-q8", spec, func(p int) { percents = append(percents, p) }); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(percents) || len(percents) < 5 || percents[len(percents)-1] != 100 || len(slices.Compact(percents)) != len(percents) {
		t.Errorf("percents %v", percents)
	}
	used := e.Used()
	first, err := e.EmbedTop(ctx, 0, []int32{5, 6, 7}, 3)
	if err != nil {
		t.Fatal(err)
	}
	first = slices.Clone(first)

	// The same through its parts.
	x, err := e.Embed(ctx, 0, []int32{5, 6, 7})
	if err != nil {
		t.Fatal(err)
	}
	if top, err := e.Top(ctx, x[2*m.Width:], 3); err != nil || !slices.Equal(top, first) {
		t.Errorf("head alone: got %v, %v; want %v", top, err, first)
	}
	if _, err := e.Hidden(ctx, 3, 1, slices.Clone(x[:m.Width])); err != nil {
		t.Error(err)
	}

	// Another model replaces the first; its file is closed.
	if err := e.Load(ctx, "tiny-qwen3-q4", compute.ShardSpec{Lo: 1, Hi: 2, Ctx: 32}, nil); err != nil {
		t.Fatal(err)
	}
	if books.open != 1 || e.Used() >= used {
		t.Errorf("after a smaller load %d files are open, %d bytes in use of %d before", books.open, e.Used(), used)
	}
	// A failed load leaves nothing; the model stays open.
	if err := e.Load(ctx, "tiny-qwen3-q4", compute.ShardSpec{Hi: 99, Ctx: 32}, nil); !errors.Is(err, compute.ErrCall) {
		t.Errorf("too many layers: got %v", err)
	}
	if e.Used() != 0 || books.open != 1 {
		t.Errorf("after a failed load: %d bytes, %d files", e.Used(), books.open)
	}
	if _, err := e.Hidden(ctx, 0, 1, make([]float32, 256)); !errors.Is(err, compute.ErrCall) {
		t.Errorf("after a failed load: got %v", err)
	}
	for key, want := range map[string]error{"none": os.ErrNotExist, "vocab-qwen3": compute.ErrModel} {
		if _, err := e.Model(ctx, key); !errors.Is(err, want) {
			t.Errorf("model %s: got %v, want %v", key, err, want)
		}
	}
	if books.open != 1 {
		t.Errorf("after models that can't be opened %d files are open", books.open)
	}
	if err := e.Close(); err != nil || books.open != 0 || dev.Used() != 0 {
		t.Errorf("closed with %v, %d files, %d bytes", err, books.open, dev.Used())
	}
}

// The engine speculates with the shard it holds, and says so when it holds none.
func TestEngineSpeculates(t *testing.T) {
	ctx, books := context.Background(), &shelf{}
	dev := compute.OpenRef()
	e := compute.NewEngine(dev, books.get)
	defer e.Close()
	spec := compute.ShardSpec{Hi: 8, Head: true, Ctx: 32, Draft: compute.DraftNorm}
	calls := func() map[string]error {
		errs := make(map[string]error)
		x, err := e.EmbedSpec(ctx, 0, []int32{1, 2, 3})
		errs["EmbedSpec"] = err
		errs["Control"] = e.Control(ctx, op.Control{Rollback: 1})
		_, errs["Draft"] = e.Draft(ctx, 0, x[:min(len(x), 256)], []int32{2}, 1)
		_, errs["HiddenSpec"] = e.HiddenSpec(ctx, 1, 1, x[:min(len(x), 256)])
		_, _, errs["Verify"] = e.Verify(ctx, e.At(), []int32{4, 5}, 3)
		_, errs["Tops"] = e.Tops(ctx, make([]float32, 512), 2)
		return errs
	}
	for name, err := range calls() {
		if !errors.Is(err, compute.ErrCall) {
			t.Errorf("%s before loading: got %v", name, err)
		}
	}
	need, err := e.Need(ctx, "tiny-qwen35-q4", spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Load(ctx, "tiny-qwen35-q4", spec, nil); err != nil {
		t.Fatal(err)
	}
	if used := e.Used(); need.Total() != used || e.At() != 0 {
		t.Errorf("%d bytes computed, %d in use; at %d", need.Total(), used, e.At())
	}
	for name, err := range calls() {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if e.At() != 4 {
		t.Errorf("the engine stands at %d, want 4", e.At())
	}
}

func TestEngineCancelledLoad(t *testing.T) {
	books := &shelf{}
	e := compute.NewEngine(compute.OpenRef(), books.get)
	ctx, cancel := context.WithCancel(context.Background())
	err := e.Load(ctx, "tiny-qwen3-q8", compute.ShardSpec{Hi: 4, Head: true, Ctx: 32}, func(p int) {
		if p > 30 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || e.Used() != 0 {
		t.Errorf("got %v with %d bytes in use", err, e.Used())
	}
	if err := e.Close(); err != nil || books.open != 0 {
		t.Errorf("closed with %v, %d files open", err, books.open)
	}
}

var _ interface {
	Info() op.Info
	Embed(ctx context.Context, pos int, tokens []int32) ([]float32, error)
	EmbedTop(ctx context.Context, pos int, tokens []int32, k int) ([]op.Candidate, error)
	Hidden(ctx context.Context, pos, n int, in []float32) ([]float32, error)
	Top(ctx context.Context, hidden []float32, k int) ([]op.Candidate, error)
	EmbedSpec(ctx context.Context, pos int, tokens []int32) ([]float32, error)
	HiddenSpec(ctx context.Context, pos, n int, in []float32) ([]float32, error)
	Verify(ctx context.Context, pos int, tokens []int32, k int) ([]float32, [][]op.Candidate, error)
	Tops(ctx context.Context, hidden []float32, k int) ([][]op.Candidate, error)
	Control(ctx context.Context, c op.Control) error
	Draft(ctx context.Context, pos int, hidden []float32, tokens []int32, k int) ([]int32, error)
	At() int
	Used() int64
	Free()
	Close() error
} = (*compute.Engine)(nil)
