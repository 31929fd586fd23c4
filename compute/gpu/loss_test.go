package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"pooled/compute/op"
)

// The tests of this file have a driver that fails. Each runs in a process of its own with testdata/fault.c before the driver. What is
// tested is first of all that the process lives: without guard.c the library ends it.

const (
	faultVar  = "POOLED_FAULT"
	faultyVar = "POOLED_TEST_FAULTY"
	lost      = "submit=-4,poll=-4,wait=-4,memory=-4,pipeline=-4"
)

// faulty runs the rest of the test in a process with the faulty driver and says whether this is that process.
func faulty(t *testing.T) bool {
	t.Helper()
	if os.Getenv(faultyVar) != "" {
		return true
	}
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED, NOT TESTED: the faulty driver is for Linux")
	}
	openTest(t, Options{}) // loads the real one
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	real := regexp.MustCompile(`/\S+/libvulkan\.so\.1\S*`).Find(maps)
	if real == nil {
		t.Fatal("no Vulkan loader is loaded")
	}
	dir := t.TempDir()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-Wl,-soname,libvulkan.so.1", "-Wl,-z,nodelete", "-o", filepath.Join(dir, "libvulkan.so.1"), filepath.Join("testdata", "fault.c"), "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), faultyVar+"=1", "POOLED_VULKAN="+string(real), "LD_LIBRARY_PATH="+dir, "RUST_BACKTRACE=0")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// lostNow fails the test unless err says that the device is lost, and why.
func lostNow(t *testing.T, what string, err error, why string) {
	t.Helper()
	if !errors.Is(err, op.ErrLost) || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: got %v, want ErrLost and %q", what, err, why)
	}
}

// gone fails unless every call fails with the same words, Close frees, and a new device works.
func gone(t *testing.T, d *Device, why string) {
	t.Helper()
	_, err := d.Buffer("late", 8, op.MaxCols)
	lostNow(t, "Buffer", err, why)
	_, err = d.KV("late", 8, 8, op.KVF16)
	lostNow(t, "KV", err, why)
	before := holds(t)
	if err := d.Close(); err != nil || d.Used() != 0 {
		t.Errorf("Close: %v, %d bytes are held", err, d.Used())
	}
	if freed := (before.pages - holds(t).pages) * os.Getpagesize(); freed < 36<<20 {
		t.Errorf("Close freed %d bytes, the weight alone is 39 MiB", freed)
	}
	t.Setenv(faultVar, "")
	again := openTest(t, Options{})
	p, in, out := identity(t, again, 64)
	in[5] = 7
	if err := p.Run(context.Background(), op.Frame{N: 1}, in, out); err != nil || out.Hidden[5] != 7 {
		t.Errorf("a new device: %v, value %v", err, out.Hidden[5])
	}
	again.Close()
}

// big is a device with a program whose weight has 39 MiB, on which waits are those of real GPUs.
func big(t *testing.T) (*Device, op.Program, []float32, *op.Out) {
	d := openTest(t, Options{})
	d.do(func() error { d.sh.slow = 0; return nil })
	const n = 3200
	w := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "first", Rows: n, Cols: n, Src: &trap{}}))
	x, y := must[op.Buffer](t)(d.Buffer("x", n, op.MaxCols)), must[op.Buffer](t)(d.Buffer("y", n, op.MaxCols))
	b := d.Program("big", op.MaxCols)
	b.Input(x)
	b.MatVec(y, w, x)
	b.Output(y)
	p, in, out := must[op.Program](t)(b.Build()), make([]float32, n), &op.Out{Hidden: make([]float32, n)}
	if err := p.Run(context.Background(), op.Frame{N: 1}, in, out); err != nil {
		t.Fatal(err)
	}
	return d, p, in, out
}

// A driver that loses the device at a submit, while a result is waited for, or at a poll.
func TestLossDuringRun(t *testing.T) {
	if !faulty(t) {
		return
	}
	for _, fault := range []string{"submit=-4,wait=-4", "wait=-4", "poll=-4", lost} {
		d, p, in, out := big(t)
		t.Setenv(faultVar, fault)
		err := p.Run(context.Background(), op.Frame{N: 1}, in, out)
		lostNow(t, fault, err, "graphics driver")
		if again := p.Run(context.Background(), op.Frame{N: 1}, in, out); again == nil || again.Error() != err.Error() {
			t.Errorf("%s: then %v, first %v", fault, again, err)
		}
		gone(t, d, "graphics driver")
	}
}

// Calls that wait for their turn when the device is lost end with its error.
func TestLossWhileOthersWait(t *testing.T) {
	if !faulty(t) {
		return
	}
	d, p, in, out := big(t)
	held, waiting := make(chan struct{}), make(chan error, 3)
	blocked := make(chan error, 1)
	go func() { blocked <- d.do(func() error { close(held); <-waiting; return nil }) }()
	<-held
	results := make(chan error, 2)
	go func() { results <- p.Run(context.Background(), op.Frame{N: 1}, in, out) }()
	go func() { _, err := d.Buffer("waits", 8, op.MaxCols); results <- err }()
	t.Setenv(faultVar, lost)
	close(waiting)
	<-blocked
	for range 2 {
		lostNow(t, "a waiting call", <-results, "graphics driver")
	}
	gone(t, d, "graphics driver")
}

// A driver that loses the device while a weight is loaded.
func TestLossDuringLoad(t *testing.T) {
	if !faulty(t) {
		return
	}
	d, _, _, _ := big(t)
	src := &trap{after: 20 << 20, do: func() { t.Setenv(faultVar, lost) }}
	_, err := d.Load(context.Background(), op.WeightSpec{Name: "second", Rows: 4096, Cols: 4096, Src: src})
	lostNow(t, "Load", err, "graphics driver")
	if !strings.Contains(err.Error(), "second") {
		t.Errorf("%v: the weight is not named", err)
	}
	gone(t, d, "graphics driver")
}

// trap is a source of zeros that calls do on the way.
type trap struct {
	read, after int
	do          func()
}

func (r *trap) Read(p []byte) (int, error) {
	if r.read >= r.after && r.do != nil {
		r.do()
		r.do = nil
	}
	clear(p)
	r.read += len(p)
	return len(p), nil
}

var _ io.Reader = (*trap)(nil)

// A driver that loses the device when a buffer, or a kernel, is made; the library reports these without a panic.
func TestLossDuringBuild(t *testing.T) {
	if !faulty(t) {
		return
	}
	d, _, _, _ := big(t)
	t.Setenv(faultVar, "memory=-4")
	_, err := d.KV("cache", 1<<14, 1024, op.KVF16)
	lostNow(t, "KV", err, "")
	gone(t, d, "")

	d, _, _, _ = big(t)
	x := must[op.Buffer](t)(d.Buffer("x", 24, op.MaxCols))
	y := must[op.Buffer](t)(d.Buffer("y", 24, op.MaxCols))
	b := d.Program("late", op.MaxCols)
	b.SiluMul(y, x, x)
	t.Setenv(faultVar, "pipeline=-4")
	_, err = b.Build()
	lostNow(t, "Build", err, "")
	gone(t, d, "")
}

// An allocation that the driver refuses is an error of that call only.
func TestNoMemoryIsNoLoss(t *testing.T) {
	if !faulty(t) {
		return
	}
	d, p, in, out := big(t)
	used := d.Used()
	for _, fault := range []string{"memory=-2", "memory=-1"} {
		t.Setenv(faultVar, fault)
		_, err := d.KV("cache", 1<<14, 1024, op.KVF16)
		if !errors.Is(err, op.ErrMemory) || errors.Is(err, op.ErrLost) {
			t.Errorf("KV: got %v, want ErrMemory", err)
		}
		for _, part := range []string{"cache keys", "33554432 bytes", fmt.Sprintf("%d bytes are in use", used)} {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("KV: %v does not say %q", err, part)
			}
		}
		_, err = d.Load(context.Background(), op.WeightSpec{Name: "second", Rows: 4096, Cols: 4096, Src: &trap{}})
		if !errors.Is(err, op.ErrMemory) || !strings.Contains(err.Error(), "second") {
			t.Errorf("Load: got %v, want ErrMemory with the name", err)
		}
		if d.Used() != used {
			t.Errorf("%d bytes are held, %d before", d.Used(), used)
		}
		t.Setenv(faultVar, "")
		if err := p.Run(context.Background(), op.Frame{N: 1}, in, out); err != nil {
			t.Error(err)
		}
	}
}

// A wait that the library gave up is a loss: what it would go on to read is not there yet.
func TestOverlongSubmit(t *testing.T) {
	if !faulty(t) {
		return
	}
	d, p, in, out := big(t)
	d.do(func() error { d.sh.state.patience = 1e-9; return nil })
	t.Setenv(faultVar, "wait=2")
	lostNow(t, "Run", p.Run(context.Background(), op.Frame{N: 1}, in, out), "did not finish its work")
	gone(t, d, "did not finish its work")
}

// A driver that gives no device is no adapter; the next Open gets one.
func TestNoDevice(t *testing.T) {
	if !faulty(t) {
		return
	}
	t.Setenv(faultVar, "device=-3")
	if _, err := open(context.Background(), Options{}); !errors.Is(err, op.ErrNoAdapter) {
		t.Errorf("got %v, want ErrNoAdapter", err)
	}
	t.Setenv(faultVar, "")
	openTest(t, Options{})
}
