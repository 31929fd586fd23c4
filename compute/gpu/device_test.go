package gpu

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/cogentcore/webgpu/wgpu"
	"go.uber.org/goleak"

	"pooled/compute/op"
	"pooled/compute/quant"
	"pooled/shaders"
)

// openTest opens a device for a test and closes it at the end. Without an adapter the test fails, unless POOLED_NO_GPU=1
// says that this machine is known to have none.
func openTest(t testing.TB, o Options) *Device {
	t.Helper()
	d, err := open(context.Background(), o)
	if errors.Is(err, op.ErrNoAdapter) && os.Getenv("POOLED_NO_GPU") == "1" {
		t.Skipf("SKIPPED, NOT TESTED: no GPU adapter and POOLED_NO_GPU=1: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// Every kernel of the table compiles with constants of a small model.
func TestKernelsCompile(t *testing.T) {
	values := shaders.Consts{"COLS": 192, "WIDTH": 192, "WG": 64, "LANES": 32, "ACC": 1, "HEADS": 3, "KVHEADS": 1, "HD": 64, "NROT": 64,
		"NORM": 1, "SPLITS": 64, "STEP": 64, "DIRECT_MAX": 256, "HELD": 3, "TEAM": 2, "MATES": 1, "QUERIES": 32, "BD": 16, "BV": 16, "SLICES": 1, "ROWS": 4, "FAST_HALF": 0, "FIRST": 64,
		"CHANNELS": 192, "TAPS": 4, "KEYHEADS": 1, "DIM": 32, "COLUMNS": 32, "GROUPS": 2, "EXPERTS": 8, "USED": 2, "F": 64, "LIST": 1,
		"BM": 64, "BN": 64, "BK": 16, "WORDS": 2, "TILE": 16, "BY_COLUMN": 1, "ACT": 1, "TY": 8, "TX": 8}
	for _, o := range []Options{{}, {DefaultLimits: true}} {
		d := openTest(t, o)
		for _, k := range shaders.Kernels() {
			consts := shaders.Consts{}
			for _, c := range k.Consts {
				v, ok := values[c]
				if !ok {
					t.Fatalf("%s: no value for constant %s", k.Name, c)
				}
				consts[c] = v
			}
			if err := d.do(func() error { _, err := d.pipeline(k.Name, consts); return err }); err != nil {
				t.Errorf("%s: %v", k.Name, err)
			}
		}
	}
}

func TestKernelErrors(t *testing.T) {
	d := openTest(t, Options{})
	err := d.do(func() error { _, err := d.pipeline("silu_mul", shaders.Consts{"WIDTH": 32, "WG": 5000}); return err })
	if !errors.Is(err, op.ErrKernel) || !strings.Contains(err.Error(), "silu_mul") {
		t.Errorf("a workgroup of 5000: got %v, want ErrKernel naming the kernel", err)
	}
	d.do(func() error {
		granted := d.limits.max_workgroup_storage
		d.limits.max_workgroup_storage = 1000
		_, err = d.pipeline("topk_slice", shaders.Consts{"WIDTH": 4096, "SLICES": 2})
		d.limits.max_workgroup_storage = granted
		return nil
	})
	if !errors.Is(err, op.ErrKernel) || !strings.Contains(err.Error(), "the device grants 1000") {
		t.Errorf("too much workgroup memory: got %v, want ErrKernel with both numbers", err)
	}
	p, in, out := identity(t, d, 8) // the device still works
	if err := p.Run(context.Background(), op.Frame{N: 1}, in, out); err != nil {
		t.Error(err)
	}
}

func TestCloseTwiceAndUseAfter(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := openTest(t, Options{})
	p, in, out := identity(t, d, 8)
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := d.Used(); got != 0 {
		t.Errorf("%d bytes held after Close", got)
	}
	if err := p.Run(context.Background(), op.Frame{N: 1}, in, out); err == nil {
		t.Error("Run after Close: no error")
	}
	if _, err := d.Buffer("late", 8, op.MaxCols); !errors.Is(err, ErrClosed) {
		t.Errorf("Buffer after Close: got %v, want ErrClosed", err)
	}
	p.Close() // must not hang
}

// Close while other goroutines run programs: each run succeeds or says that the device is closed.
func TestCloseDuringRuns(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := openTest(t, Options{})
	var wg sync.WaitGroup
	started := make(chan struct{}, 4)
	for range 4 {
		p, in, out := identity(t, d, 64)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; ; i++ {
				if err := p.Run(context.Background(), op.Frame{N: 1}, in, out); err != nil {
					if !errors.Is(err, ErrClosed) && !errors.Is(err, errReleased) {
						t.Errorf("got %v, want ErrClosed", err)
					}
					return
				}
				if i == 0 {
					started <- struct{}{}
				}
			}
		}()
	}
	for range 4 {
		<-started
	}
	d.Close()
	wg.Wait()
}

// A lost device fails every call with op.ErrLost and can still be closed.
func TestDeviceLoss(t *testing.T) {
	d := openTest(t, Options{})
	p, in, out := identity(t, d, 8)
	d.do(func() error { d.sh.lose("driver reset"); return nil })
	if err := p.Run(context.Background(), op.Frame{N: 1}, in, out); !errors.Is(err, op.ErrLost) || !strings.Contains(err.Error(), "driver reset") {
		t.Errorf("Run: got %v, want ErrLost with the driver's words", err)
	}
	if _, err := d.Buffer("late", 8, op.MaxCols); !errors.Is(err, op.ErrLost) {
		t.Errorf("Buffer: got %v, want ErrLost", err)
	}
	if _, err := d.Load(context.Background(), op.WeightSpec{Name: "late", Rows: 1, Cols: 1, Src: f32Bytes(1)}); !errors.Is(err, op.ErrLost) {
		t.Errorf("Load: got %v, want ErrLost", err)
	}
	d.Close()
	if got := d.Used(); got != 0 {
		t.Errorf("%d bytes held after Close", got)
	}
}

func TestLoadErrorsFreeEverything(t *testing.T) {
	d := openTest(t, Options{})
	before := d.Used()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	half := bytes.NewReader(make([]byte, 34*100))
	cases := map[string]struct {
		ctx  context.Context
		spec op.WeightSpec
		want error
	}{
		"cut short":  {context.Background(), op.WeightSpec{Type: quant.Q8_0, Rows: 64, Cols: 64, Src: half}, io.ErrUnexpectedEOF},
		"cancelled":  {cancelled, op.WeightSpec{Type: quant.Q8_0, Rows: 64, Cols: 64, Src: half}, context.Canceled},
		"no kernel":  {context.Background(), op.WeightSpec{Type: 99, Rows: 1, Cols: 32, Src: half}, quant.ErrType},
		"no rows":    {context.Background(), op.WeightSpec{Type: quant.F32, Rows: 0, Cols: 32, Src: half}, errArgument},
		"no source":  {context.Background(), op.WeightSpec{Type: quant.F32, Rows: 1, Cols: 32}, errArgument},
		"giant row":  {context.Background(), op.WeightSpec{Type: quant.F32, Rows: 1, Cols: 1 << 29, Src: half}, op.ErrMemory},
		"read error": {context.Background(), op.WeightSpec{Type: quant.F32, Rows: 1, Cols: 32, Src: brokenReader{}}, errBroken},
	}
	for name, c := range cases {
		c.spec.Name = name
		if _, err := d.Load(c.ctx, c.spec); !errors.Is(err, c.want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if got := d.Used(); got != before {
		t.Errorf("%d bytes held, %d before", got, before)
	}
}

var errBroken = errors.New("broken disk")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

func TestMemoryIsCountedAndFreed(t *testing.T) {
	d := openTest(t, Options{})
	before := d.Used()
	w := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.Q8_0, Rows: 3, Cols: 32, Src: bytes.NewReader(make([]byte, 3*34))}))
	b := must[op.Buffer](t)(d.Buffer("b", 100, op.MaxCols))
	c := must[op.KV](t)(d.KV("c", 10, 64, op.KVF16))
	r := must[op.Rope](t)(d.Rope(64, 1e6, 100))
	if got, want := w.Bytes(), int64(3*32+160+256); got != want { // q, then d aligned to 256
		t.Errorf("weight of %d bytes, want %d", got, want)
	}
	if got, want := c.Bytes(), int64(2*2*10*64); got != want {
		t.Errorf("cache of %d bytes, want %d", got, want)
	}
	if got, want := d.Used()-before, w.Bytes()+c.Bytes()+16*4*100+64*4*100; got != want {
		t.Errorf("%d bytes in use, want %d", got, want)
	}
	for range 2 {
		w.Close()
		b.Close()
		c.Close()
		r.Close()
	}
	if got := d.Used(); got != before {
		t.Errorf("%d bytes after Close, %d before", got, before)
	}
}

// A buffer that the device can't have is ErrMemory, and the device stays usable (T11).
func TestTooMuchMemory(t *testing.T) {
	d := openTest(t, Options{})
	if _, err := d.KV("huge", 1<<22, 4096, op.KVF32); !errors.Is(err, op.ErrMemory) {
		t.Errorf("a cache of 64 GiB: got %v, want ErrMemory", err)
	}
	err := d.do(func() error {
		d.info.MaxBuffer = 1 << 41 // past our own check, so that the library refuses
		_, err := d.createBuffer("huge", 1<<40, wgpu.BufferUsageStorage)
		d.info.MaxBuffer = maxBuffer
		return err
	})
	if err == nil {
		t.Error("a buffer of 1 TiB: no error")
	}
	if _, err := d.Buffer("small", 8, op.MaxCols); err != nil {
		t.Error(err)
	}
}

func TestInfo(t *testing.T) {
	for _, defaults := range []bool{false, true} {
		i := openTest(t, Options{DefaultLimits: defaults}).Info()
		if i.Name == "" || i.Backend == "" || i.DefaultLimits != defaults {
			t.Errorf("got %+v", i)
		}
		if i.MaxBuffer < 256<<20 || i.MaxBuffer > 1<<30 || i.MaxBinding < 128<<20 || i.MaxBinding > i.MaxBuffer {
			t.Errorf("buffers of %d bytes, bindings of %d", i.MaxBuffer, i.MaxBinding)
		}
		if defaults && (i.MaxBuffer != 256<<20 || i.MaxBinding != 128<<20) {
			t.Errorf("default limits: buffers of %d bytes, bindings of %d", i.MaxBuffer, i.MaxBinding)
		}
	}
}

// Without a driver Open says so, with the driver's words, and writes nothing to the terminal. It runs in a process of its
// own because drivers read their environment once.
func TestNoAdapter(t *testing.T) {
	const marker = "POOLED_TEST_NO_ADAPTER"
	if os.Getenv(marker) != "" {
		_, err := Open(context.Background(), Options{})
		if !errors.Is(err, op.ErrNoAdapter) {
			t.Fatalf("got %v, want ErrNoAdapter", err)
		}
		t.Logf("error: %v", err)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestNoAdapter$", "-test.v")
	cmd.Env = append(os.Environ(), marker+"=1", "VK_ICD_FILENAMES="+os.DevNull, "VK_DRIVER_FILES="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("error: gpu: open: no GPU adapter: ")) {
		t.Fatalf("%v\n%s", err, out)
	}
	if bytes.Contains(out, []byte("[wgpu]")) {
		t.Errorf("the library wrote to the terminal:\n%s", out)
	}
}

func TestOpenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// The library's words go to Log, not to the terminal.
func TestLog(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	d := openTest(t, Options{Verbose: true, Log: func(level, text string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, level+": "+text)
	}})
	d.do(func() error { _, err := d.pipeline("silu_mul", shaders.Consts{"WIDTH": 32, "WG": 5000}); return err })
	mu.Lock()
	defer mu.Unlock()
	if len(lines) == 0 {
		t.Error("nothing was logged")
	}
	for _, l := range lines {
		if level, text, ok := strings.Cut(l, ": "); !ok || text == "" || level == "" {
			t.Errorf("line %q", l)
		}
	}
}
