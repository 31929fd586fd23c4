package compute_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pooled/compute"
	"pooled/compute/golden"
	"pooled/compute/op"
)

// goldens runs every model that has a golden file, in testdata/models or in the folder that POOLED_GOLDENS names. What
// can't run yet (an architecture without a graph, on a GPU a weight format without a kernel) is counted and named.
func goldens(t *testing.T, k *kind) {
	dir := os.Getenv("POOLED_GOLDENS")
	if dir == "" {
		dir = filepath.Join("testdata", "models")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	dev := k.device(t)
	run, notYet := 0, 0
	for _, file := range files {
		path := strings.TrimSuffix(file, ".golden.json") + ".gguf"
		m, err := openModel(t, path)
		if err == nil {
			err = loadable(dev, m)
		}
		if errors.Is(err, compute.ErrArch) || k != onRef && noKernel(err) {
			notYet++
			t.Logf("NOT COMPARED: %v", err)
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		run++
		want, name := goldenOf(t, path), filepath.Base(path)
		if k != onDefaults { // one of the two is enough there
			t.Run(name+" f32", func(t *testing.T) { compare(t, dev, m, want, op.KVF32, golden.F32) })
		}
		t.Run(name+" f16", func(t *testing.T) { compare(t, dev, m, want, op.KVF16, golden.F16) })
	}
	t.Logf("%d models compared, %d not yet", run, notYet)
	if run == 0 {
		t.Errorf("no model with a golden file in %s could be compared", dir)
	}
}

// loadable loads all of a model and lets go of it again.
func loadable(dev op.Device, m *compute.Model) error {
	s, err := compute.LoadShard(context.Background(), dev, m, compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: 1}, nil)
	if err != nil {
		return fmt.Errorf("%s on %s: %w", m.Name, dev.Info().Backend, err)
	}
	s.Close()
	return nil
}

func compare(t *testing.T, dev op.Device, m *compute.Model, want *golden.Result, kv op.KVType, tol golden.Tolerance) {
	var follow []int32
	for _, s := range want.Greedy {
		follow = append(follow, s.ID)
	}
	got, err := golden.EvalWith(context.Background(), dev, m, golden.Options{Prompt: want.Prompt, Greedy: len(follow), KV: kv, Follow: follow})
	if err != nil {
		t.Fatal(err)
	}
	report, err := golden.Compare(got, want, tol)
	if err != nil {
		t.Error(err)
	}
	t.Logf("worst logit off by %.2g of %g; %d greedy tokens compared, %d differ within the tolerance",
		report.WorstLogit, tol.Logit, report.Steps, report.CloseCalls)
}

func TestGoldensRef(t *testing.T) { goldens(t, onRef) }

func TestGoldensGPU(t *testing.T) { goldens(t, onGPU) }

func TestGoldensDefaultLimits(t *testing.T) { goldens(t, onDefaults) }
