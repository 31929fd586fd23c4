//go:build unix

package screens_test

import (
	"bytes"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"pooled/session"
)

// tape is what a program wrote to its terminal.
type tape struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	more chan struct{}
}

func (t *tape) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.buf.Write(p)
	select {
	case t.more <- struct{}{}:
	default:
	}
	return n, err
}

func (t *tape) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// wait waits until text was written.
func (t *tape) wait(tb testing.TB, text string) {
	tb.Helper()
	limit := time.After(20 * time.Second)
	for !strings.Contains(t.String(), text) {
		select {
		case <-t.more:
		case <-limit:
			tb.Fatalf("the terminal never got %q, only %q", text, t.String())
		}
	}
}

func TestTerminalIsGivenBack(t *testing.T) {
	cases := []struct {
		name string
		keys string // typed once the screen is up
		sig  syscall.Signal
		exit int
		says string // after the screen is gone
	}{
		{name: "q and yes", keys: "\x04qy", exit: 0},
		{name: "ctrl-c twice", keys: "\x03\x03", exit: session.ExitInterrupted},
		{name: "sigterm", sig: syscall.SIGTERM, exit: 0},
		{name: "panic in the event loop", keys: "panic in the event loop\r", exit: 2, says: "a test panicked in the event loop"},
		{name: "panic elsewhere", keys: "panic elsewhere\r", exit: 2, says: "a test panicked elsewhere"},
		{name: "alt-enter breaks the line", keys: "one\x1b\rtwo\r", exit: session.ExitNoRoom, says: "one/two"},
		{name: "a paste is text", keys: "\x1b[200~one\rtwo\x1b[201~\r", exit: session.ExitNoRoom, says: "one/two"},
		{name: "room closed", keys: "end\r", exit: session.ExitNoRoom,
			says: "the room is over: the host left: ask for a new code"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			con := startConsole(t)
			before := con.before
			con.out.wait(t, "Jupiter")
			if c.sig != 0 {
				if err := con.cmd.Process.Signal(c.sig); err != nil {
					t.Error(err)
				}
			}
			con.typed(t, c.keys)
			if got := exitCode(t, con.cmd); got != c.exit {
				t.Errorf("exit %d, want %d; terminal %q", got, c.exit, con.out)
			}
			if after := con.modes(t); !reflect.DeepEqual(before, after) {
				t.Errorf("terminal modes %+v, were %+v", after, before)
			}
			con.close()
			checkRestored(t, con.out.String(), c.says)
		})
	}
}

// onTerminal is this test binary as a console on a pseudo-terminal.
type onTerminal struct {
	ptmx, tty *os.File
	cmd       *exec.Cmd
	out       *tape
	copied    chan struct{}
	before    *term.State // modes before it started
	once      sync.Once
}

// startConsole starts the console. It ends with the test.
func startConsole(t *testing.T) *onTerminal {
	t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(ptmx, &pty.Winsize{Rows: 32, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &onTerminal{ptmx: ptmx, tty: tty, cmd: exec.Command(exe), out: &tape{more: make(chan struct{}, 1)},
		copied: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), childMode+"=1", "TERM=xterm-256color", "LANG=C.UTF-8", "LC_ALL=C.UTF-8")
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = tty, tty, tty
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	c.before = c.modes(t)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.copy()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // ended already, or the test failed
		c.close()
	})
	return c
}

// copy records what the terminal gets until its last user is gone.
func (c *onTerminal) copy() {
	defer close(c.copied)
	buf := make([]byte, 4096)
	for {
		n, err := c.ptmx.Read(buf)
		_, _ = c.out.Write(buf[:n])
		if err != nil {
			return
		}
	}
}

// close gives up this end of the terminal and waits until everything written to it is recorded.
func (c *onTerminal) close() {
	c.once.Do(func() {
		_ = c.tty.Close()
		<-c.copied
		_ = c.ptmx.Close()
	})
}

// modes are the terminal's modes now.
func (c *onTerminal) modes(t *testing.T) *term.State {
	t.Helper()
	st, err := term.GetState(int(c.tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// typed sends keys.
func (c *onTerminal) typed(t *testing.T, keys string) {
	t.Helper()
	if _, err := c.ptmx.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// exitCode waits for the end of a program.
func exitCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
		return cmd.ProcessState.ExitCode()
	case <-time.After(20 * time.Second):
		t.Fatal("the program did not end")
		return -1
	}
}

// checkRestored looks at the bytes the terminal got: the alternate screen left, the cursor shown, paste mode off, and
// whatever had to be said said after that.
func checkRestored(t *testing.T, out, says string) {
	t.Helper()
	left := strings.LastIndex(out, "\x1b[?1049l")
	if left < 0 {
		t.Fatalf("the alternate screen was not left: %q", out)
	}
	for _, pair := range [][2]string{{"\x1b[?25l", "\x1b[?25h"}, {"\x1b[?2004h", "\x1b[?2004l"}} {
		if on, off := strings.LastIndex(out, pair[0]), strings.LastIndex(out, pair[1]); off < on || off < 0 {
			t.Errorf("%q is not undone by %q at the end", pair[0], pair[1])
		}
	}
	if tail := out[left:]; !strings.Contains(tail, says) {
		t.Errorf("after the screen: %q, want %q in it", tail, says)
	}
}

func TestNativeOutputGoesToTheLog(t *testing.T) {
	con := startConsole(t)
	con.out.wait(t, "Jupiter")
	con.typed(t, "print\r")
	con.out.wait(t, "a driver printed this")
	if strings.Contains(con.out.String(), "a driver printed this\r\n") {
		t.Errorf("the line went to the terminal as it was: %q", con.out)
	}
	con.typed(t, "\x03\x03\x03")
	if got := exitCode(t, con.cmd); got != session.ExitInterrupted {
		t.Errorf("exit %d, want %d", got, session.ExitInterrupted)
	}
}
