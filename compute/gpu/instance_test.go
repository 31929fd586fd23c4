package gpu

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"pooled/compute/op"
)

// held is what a process holds of the system. On systems without /proc all of it is zero.
type held struct{ fds, threads, pages int }

func holds(t testing.TB) (h held) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return h
	}
	count := func(dir string) int {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	if h.pages, err = strconv.Atoi(strings.Fields(string(text))[1]); err != nil {
		t.Fatal(err)
	}
	h.fds, h.threads = count("/proc/self/fd"), count("/proc/self/task")
	return h
}

// Close frees everything: devices can be opened and closed again and again in one process.
func TestCloseLeavesNothing(t *testing.T) {
	const warm, rounds = 5, 50
	var before held
	for i := range warm + rounds {
		d, err := open(context.Background(), Options{DefaultLimits: i%2 == 0})
		if err != nil {
			openTest(t, Options{}) // skips or fails as the other tests do
			t.Fatal(err)
		}
		p, in, out := identity(t, d, 64)
		if err := p.Run(context.Background(), op.Frame{N: 1}, in, out); err != nil {
			t.Fatal(err)
		}
		if list := d.instance.kept(); len(list) == 0 {
			t.Fatal("an open device has no objects")
		}
		d.Close()
		if process.now != d.instance {
			t.Fatalf("round %d: after Close the library has kept something", i)
		}
		if i == warm-1 {
			before = holds(t)
		}
	}
	after := holds(t)
	t.Logf("%d rounds: %+v, then %+v", rounds, before, after)
	if after.fds > before.fds+3 || after.threads > before.threads+8 {
		t.Errorf("%d rounds: %+v, then %+v", rounds, before, after)
	}
	if grown := (after.pages - before.pages) * os.Getpagesize() / rounds; grown > 800_000 { // usually 70,000; the C heap grows in jumps
		t.Errorf("%d bytes of memory a round", grown)
	}
}

// An instance that can't serve is replaced, and released when its last device is closed.
func TestInstanceIsReplaced(t *testing.T) {
	first := openTest(t, Options{})
	process.Lock()
	old := process.now
	old.retire()
	process.Unlock()
	second := openTest(t, Options{})
	if second.instance == old || !old.stale || old.users != 1 {
		t.Errorf("the device opened later has the retired instance: %v; that has %d users", second.instance == old, old.users)
	}
	for _, d := range []*Device{first, second} { // both work
		p, in, out := identity(t, d, 8)
		if err := p.Run(context.Background(), op.Frame{N: 1}, in, out); err != nil {
			t.Error(err)
		}
		d.Close()
	}
	if old.users != 0 {
		t.Errorf("%d users", old.users)
	}
}
