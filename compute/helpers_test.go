package compute_test

import (
	"context"
	"encoding/json"
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

// opener makes one kind of device; every test of this package that runs a model goes over all of openers.
type opener struct {
	name string
	open func(t *testing.T) op.Device
}

var openers = []opener{{"ref", func(*testing.T) op.Device { return compute.OpenRef() }}}

// device opens a device and closes it at the end of the test; nothing may be left on it then.
func (o opener) device(t *testing.T) op.Device {
	t.Helper()
	dev := o.open(t)
	t.Cleanup(func() {
		if used := dev.Used(); used != 0 {
			t.Errorf("%d bytes still in use on the device at the end", used)
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
	for _, o := range openers {
		t.Run(o.name, func(t *testing.T) { test(t, o.device(t)) })
	}
}

// openModel opens a one-file model; the file is closed at the end of the test.
func openModel(t testing.TB, path string) (*compute.Model, error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return compute.OpenModel(gguf.Part{Name: filepath.Base(path), R: f, Size: info.Size()})
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
