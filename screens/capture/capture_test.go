package capture

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestCaptureTakesBothStreamsAndGivesThemBack(t *testing.T) {
	var got []string
	before := identity(t)
	c, err := Start(func(s string) { got = append(got, s) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(func(string) {}); !errors.Is(err, ErrRunning) {
		t.Errorf("second start: %v, want ErrRunning", err)
	}
	fmt.Println("from stdout")
	fmt.Fprintln(os.Stderr, "from stderr")
	long := strings.Repeat("x", MaxLine+10)
	fmt.Println(long)
	fmt.Print("no line break")
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("second stop: %v", err)
	}
	want := []string{"from stdout", "from stderr", long[:MaxLine], long[MaxLine:], "no line break"}
	if !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
	if after := identity(t); after != before {
		t.Errorf("stdout and stderr are %s, were %s", after, before)
	}
}

func TestCaptureCanRunAgain(t *testing.T) {
	for i := range 3 {
		n := 0
		c, err := Start(func(string) { n++ })
		if err != nil {
			t.Fatal(i, err)
		}
		fmt.Println("line")
		if err := c.Stop(); err != nil || n != 1 {
			t.Errorf("run %d: %d lines, error %v, want 1 and none", i, n, err)
		}
	}
}

// identity names what descriptors 1 and 2 stand for.
func identity(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		return fmt.Sprint(os.Stdout.Fd(), os.Stderr.Fd())
	}
	out, err1 := os.Readlink("/proc/self/fd/1")
	errOut, err2 := os.Readlink("/proc/self/fd/2")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return out + " " + errOut
}
