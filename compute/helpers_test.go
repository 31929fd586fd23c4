package compute_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"pooled/compute"
	"pooled/compute/gguf"
	"pooled/compute/golden"
	"pooled/compute/op"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kind is one kind of device; every test of this package that runs a model goes over all of kinds.
type kind struct {
	name string
	open func(t testing.TB) op.Device
	own  int64 // bytes that the device may keep for itself when everything was closed: its staging memory
}

var (
	onRef = &kind{"ref", func(testing.TB) op.Device { return compute.OpenRef() }, 0}
	onGPU = &kind{"gpu", openGPU, 1 << 20}
	kinds = []*kind{onRef, onGPU}

	// onDefaults is a GPU that grants what every one does: bindings of 128 MiB, 16 KiB of workgroup memory, 256 threads, 8 storage buffers.
	onDefaults = &kind{"gpu with default limits", func(t testing.TB) op.Device { return openGPUWith(t, true) }, 1 << 20}
)

// openGPU fails without an adapter, unless POOLED_NO_GPU=1 says that this machine is known to have none.
func openGPU(t testing.TB) op.Device { return openGPUWith(t, false) }

func openGPUWith(t testing.TB, defaults bool) op.Device {
	t.Helper()
	dev, err := compute.OpenGPU(context.Background(), compute.GPUOptions{DefaultLimits: defaults, Log: func(line string) { t.Log(line) }})
	if errors.Is(err, op.ErrNoAdapter) && os.Getenv("POOLED_NO_GPU") == "1" {
		t.Skipf("SKIPPED, NOT TESTED: no GPU adapter and POOLED_NO_GPU=1: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// device opens a device and closes it at the end of the test; nothing of the test may be left on it then.
func (k *kind) device(t testing.TB) op.Device {
	t.Helper()
	dev := k.open(t)
	t.Cleanup(func() {
		if used := dev.Used(); used > k.own {
			t.Errorf("%d bytes still in use on the device at the end, at most %d are its own", used, k.own)
		}
		if err := dev.Close(); err != nil {
			t.Errorf("close the device: %v", err)
		}
	})
	return dev
}

// onAll runs a test on every kind of device.
func onAll(t *testing.T, test func(t *testing.T, dev op.Device)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { test(t, k.device(t)) })
	}
}

// openModel opens a model; its files are closed at the end of the test.
func openModel(t testing.TB, path string) (*compute.Model, error) {
	t.Helper()
	parts, files, err := gguf.OpenFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	return compute.OpenModel(parts...)
}

// tiny opens one of the tiny models.
func tiny(t testing.TB, name string) *compute.Model {
	t.Helper()
	m, err := openModel(t, filepath.Join("testdata", "models", name+".gguf"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// goldenOf reads the golden file beside a tiny model.
func goldenOf(t testing.TB, path string) *golden.Result {
	t.Helper()
	b, err := os.ReadFile(strings.TrimSuffix(path, ".gguf") + ".golden.json")
	if err != nil {
		t.Fatal(err)
	}
	r := &golden.Result{}
	if err := json.Unmarshal(b, r); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return r
}

// load loads a shard and closes it at the end of the test.
func load(t testing.TB, dev op.Device, m *compute.Model, spec compute.ShardSpec) *compute.Shard {
	t.Helper()
	s, err := compute.LoadShard(context.Background(), dev, m, spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// whole loads all of a model with a context of ctx.
func whole(t testing.TB, dev op.Device, m *compute.Model, ctx int) *compute.Shard {
	t.Helper()
	return load(t, dev, m, compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: ctx})
}

// prompt is a fixed prompt for the tiny models.
func prompt(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32((i*i*31 + i*7 + 3) % 1000)
	}
	return ids
}

func nan() float32 { return float32(math.NaN()) }
