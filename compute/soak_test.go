package compute_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"pooled/compute"
)

// holding is what the process holds of the system: the Go heap and, where there is /proc, everything else.
type holding struct {
	heap, rss    int64 // bytes
	fds, threads int
}

func holds(t *testing.T) (h holding) {
	t.Helper()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.heap = int64(m.HeapAlloc)
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return h
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	fds, err1 := os.ReadDir("/proc/self/fd")
	threads, err2 := os.ReadDir("/proc/self/task")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	h.rss, h.fds, h.threads = pages*int64(os.Getpagesize()), len(fds), len(threads)
	return h
}

// flat fails when more was gained than n times each bytes of the process, and a little: some of it comes and goes.
func flat(t *testing.T, what string, before, after holding, n, each int) {
	t.Helper()
	t.Logf("%d %s: %+v, then %+v: %d bytes each", n, what, before, after, (after.rss-before.rss)/int64(n))
	const little = 4 << 20
	if after.heap > before.heap+1<<20 || after.rss > before.rss+int64(n*each)+little ||
		after.fds > before.fds+2 || after.threads > before.threads+4 {
		t.Errorf("%d %s: %+v, then %+v", n, what, before, after)
	}
}

// Memory, files and threads stay as they are however long a model runs and however often it is loaded. POOLED_SOAK=20000 is the long
// form, with 50 loads.
func TestSoak(t *testing.T) {
	steps, loads := 1500, 8
	if n, err := strconv.Atoi(os.Getenv("POOLED_SOAK")); err == nil && n > 0 {
		steps, loads = n, 50
	}
	dev := openGPU(t)
	defer dev.Close()
	m, err := openModel(t, filepath.Join("testdata", "models", "tiny-qwen3-q8.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	load := func() *compute.Shard {
		s, err := compute.LoadShard(context.Background(), dev, m, compute.ShardSpec{Hi: 1, Ctx: 64}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := load()
	in := make([]float32, m.Width)
	run := func(n int) {
		for i := range n {
			if _, err := s.Hidden(context.Background(), i%64, 1, in); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(300)
	used, before := dev.Used(), holds(t)
	run(steps)
	flat(t, "steps", before, holds(t), steps, 1200) // the binding keeps about 800 bytes a submit
	if dev.Used() != used {
		t.Errorf("%d bytes of the device in use, %d before the steps", dev.Used(), used)
	}
	s.Close()
	for range 3 { // the first rounds make the C heap as large as it gets
		load().Close()
	}
	used, before = dev.Used(), holds(t)
	for range loads {
		load().Close()
	}
	flat(t, "loads", before, holds(t), loads, 100_000)
	if dev.Used() != used || dev.Used() > 1<<20 {
		t.Errorf("%d bytes of the device in use, %d before the loads", dev.Used(), used)
	}
}
