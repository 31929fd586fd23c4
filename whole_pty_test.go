//go:build unix

package main

import (
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// terminal is a process on a pseudo-terminal.
type terminal struct {
	*process
	ptmx, tty *os.File
	before    *term.State

	mu   sync.Mutex
	vt   *vt
	more chan struct{}
	over chan struct{} // nothing more will be written
}

// onTerminal starts a process on a terminal of its own, with the signaling server of this play.
func (p *play) onTerminal(args ...string) *terminal {
	p.t.Helper()
	return p.onTerminalAs(append(args, "--signal", p.signal)...)
}

// onTerminalAs is onTerminal with nothing added to the arguments.
func (p *play) onTerminalAs(args ...string) *terminal {
	p.t.Helper()
	const rows, cols = 34, 110
	ptmx, tty, err := pty.Open()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := pty.Setsize(ptmx, &pty.Winsize{Rows: rows, Cols: cols}); err != nil {
		p.t.Fatal(err)
	}
	before, err := term.GetState(int(tty.Fd()))
	if err != nil {
		p.t.Fatal(err)
	}
	tm := &terminal{process: p.prepare(args...), ptmx: ptmx, tty: tty, before: before,
		vt: newVT(rows, cols), more: make(chan struct{}), over: make(chan struct{})}
	tm.cmd.Stdin, tm.cmd.Stdout, tm.cmd.Stderr = tty, tty, tty
	tm.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	go tm.read() // ends with ptmx
	p.t.Cleanup(func() {
		_ = ptmx.Close()
		_ = tty.Close()
		<-tm.over
	})
	tm.begin()
	return tm
}

func (tm *terminal) read() {
	defer close(tm.over)
	b := make([]byte, 8192)
	for {
		n, err := tm.ptmx.Read(b)
		tm.mu.Lock()
		_, _ = tm.vt.Write(b[:n])
		close(tm.more)
		tm.more = make(chan struct{})
		tm.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// screen is what the terminal shows, and a channel that tells of more.
func (tm *terminal) screen() (string, <-chan struct{}) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	return tm.vt.String(), tm.more
}

// shows waits until all texts are on the screen at once.
func (tm *terminal) shows(texts ...string) {
	tm.t.Helper()
	for {
		screen, more := tm.screen()
		missing := ""
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-more:
		case <-tm.done:
			tm.t.Fatalf("pooled %s ended before it showed %q, the screen:\n%s", tm.name, missing, screen)
		case <-tm.ctx.Done():
			tm.t.Fatalf("pooled %s never showed %q, the screen:\n%s", tm.name, missing, screen)
		}
	}
}

// types sends keys.
func (tm *terminal) types(keys string) {
	tm.t.Helper()
	if _, err := tm.ptmx.WriteString(keys); err != nil {
		tm.t.Fatal(err)
	}
}

// givenBack checks the exit code and that the terminal is as it was.
func (tm *terminal) givenBack(exit int) {
	tm.t.Helper()
	tm.exits(exit)
	after, err := term.GetState(int(tm.tty.Fd()))
	if err != nil {
		tm.t.Fatal(err)
	}
	if !reflect.DeepEqual(tm.before, after) {
		tm.t.Errorf("pooled %s: terminal modes %+v, were %+v", tm.name, after, tm.before)
	}
	const mark = "the screen is given back"
	if _, err := tm.tty.WriteString(mark); err != nil { // behind all that the process wrote
		tm.t.Fatal(err)
	}
	for {
		screen, more := tm.screen()
		if strings.Contains(screen, mark) {
			break
		}
		select {
		case <-more:
		case <-tm.ctx.Done():
			tm.t.Fatal("the terminal does not show what is written to it")
		}
	}
	tm.mu.Lock()
	defer tm.mu.Unlock()
	for mode, on := range tm.vt.modes {
		if want := mode == "25" || mode == "7"; on != want { // the cursor and wrapping are on before, all else is off
			tm.t.Errorf("pooled %s: mode %s is left %v", tm.name, mode, on)
		}
	}
}

const ctrlC, ctrlD, enter = "\x03", "\x04", "\r"

// TestConsole plays an evening in a host's console: a device joins, the deal, a question, another device, a re-deal, a
// device killed in the middle of an answer, a re-deal, the end.
func TestConsole(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 100*time.Second)
	p.opensSignal()
	host := p.onTerminal("host", "mini", "--code", "FEA-Q38", "--split", "spread")
	host.shows("FEA-Q38", "waiting for devices", "devices 1", "Enter start")
	otter := p.member("join", "FEA-Q38", "--name", "otter", "--json-log")
	host.shows("devices 2", "otter")
	host.types(enter)
	host.shows("online", "2 devices", "0-5 +E+H", "6-11")
	otter.sees("room.online")

	host.types("c")
	host.types(planet + enter)
	host.shows("The largest planet in our solar system is Jupiter.", "15 tokens")
	otter.sees("answer.started", "answer.done")

	heron := p.member("join", "FEA-Q38", "--name", "heron", "--json-log")
	host.shows("devices 3", "heron", "next re-deal")
	host.types(ctrlD)
	host.shows("Enter re-deal")
	host.types(enter)
	host.shows("online", "3 devices", "0-3 +E+H", "4-7", "8-11")
	for _, pr := range []*process{otter, heron} {
		deal := pr.wait("deal over three", func(e event) bool { return e.Ev == "deal.made" && len(e.Shares) == 3 })
		if deal.Shares[0].Lo != 0 || deal.Shares[2].Hi != modelLayers {
			t.Errorf("pooled %s: dealt %+v", pr.name, deal.Shares)
		}
		pr.sees("room.online")
	}
	asks(t, p, "391\n")

	chat := p.chat("FEA-Q38", endless)
	chat.says(chat.out, "1, 2, 3")
	heron.signals(syscall.SIGKILL)
	host.shows("a device left", "heron left", "heron is gone")
	chat.exits(1)
	host.types(enter)
	host.shows("online", "2 devices", "0-5 +E+H", "6-11")
	asks(t, p, "391\n")

	host.types("q")
	host.shows("close the room for 1 device? y/n")
	left := time.Now()
	host.types("y")
	otter.exits(0)
	if took := time.Since(left); took > 2*leavingLimit {
		t.Errorf("the device in the room needed %v to end", took)
	}
	host.givenBack(0)
}

// asks asks from another process.
func asks(t *testing.T, p *play, want string) {
	t.Helper()
	chat := p.chat("FEA-Q38", multiply)
	chat.exits(0)
	if got := chat.out.String(); got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
}

// TestTerminalGivenBack ends each role's screen in every way.
func TestTerminalGivenBack(t *testing.T) {
	hostAlone := func(p *play) *terminal {
		h := p.onTerminal("host", "mini", "--code", "FEA-Q38", "--start")
		h.shows("online", "0-11 +E+H")
		return h
	}
	hostOfOne := func(p *play) *terminal {
		h := p.onTerminal("host", "mini", "--code", "FEA-Q38", "--wait", "2", "--split", "spread")
		h.shows("waiting for devices")
		p.member("join", "FEA-Q38", "--json-log").sees("room.online")
		h.shows("online", "2 devices")
		return h
	}
	inRoom := func(args ...string) func(*play) *terminal {
		return func(p *play) *terminal {
			p.opensRoom("FEA-Q38", "2")
			tm := p.onTerminal(args...)
			tm.shows("FEA-Q38", "'s room")
			return tm
		}
	}
	join, chat := inRoom("join", "FEA-Q38"), inRoom("chat", "FEA-Q38")
	for _, c := range []struct {
		name string
		show func(*play) *terminal
		end  func(*terminal)
		exit int
	}{
		{"host q", hostAlone, func(h *terminal) { h.types("q") }, 0},
		{"host sigint", hostAlone, func(h *terminal) { h.signals(interrupt) }, 0},
		{"host sigterm", hostAlone, func(h *terminal) { h.signals(terminated) }, 0},
		{"host sighup", hostAlone, func(h *terminal) { h.signals(hangup) }, 0},
		{"host two signals", hostOfOne, func(h *terminal) { h.signals(interrupt); h.signals(terminated) }, 130},
		{"host ctrl-c", hostAlone, func(h *terminal) { h.types(ctrlC) }, 0},
		{"host ctrl-c twice, with a device in the room", hostOfOne, func(h *terminal) {
			h.types("c" + endless + enter)
			h.shows("1, 2, 3")
			h.types(ctrlC) // stops the answer
			h.shows("(stopped)")
			h.types("half a question" + ctrlC) // clears the prompt
			h.types(ctrlC)                     // asks
			h.shows("close the room for 1 device? y/n")
			h.types(ctrlC) // leaves at once
		}, 130},
		{"join q", join, func(j *terminal) { j.types("q") }, 0},
		{"join sigterm", join, func(j *terminal) { j.signals(terminated) }, 0},
		{"chat ctrl-d", chat, func(c *terminal) { c.types(ctrlD) }, 0},
		{"chat sighup", chat, func(c *terminal) { c.signals(hangup) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, 40*time.Second)
			p.opensSignal()
			tm := c.show(p)
			c.end(tm)
			tm.givenBack(c.exit)
		})
	}
}

// TestTerminalGone closes the terminal under the host.
func TestTerminalGone(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 40*time.Second)
	p.opensSignal()
	host := p.onTerminal("host", "mini", "--code", "FEA-Q38", "--wait", "2", "--split", "spread")
	host.shows("waiting for devices")
	otter := p.member("join", "FEA-Q38", "--json-log")
	otter.sees("room.online")
	_ = host.tty.Close()
	_ = host.ptmx.Close()
	host.exits(0)
	otter.exits(0)
}

// TestDemoOnATerminal ends in the host's console with the chat open.
func TestDemoOnATerminal(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 60*time.Second)
	demo := p.onTerminalAs("demo")
	demo.shows("online", "2 devices", "second-device", "0-5 +E+H", "6-11", ">>>")
	demo.types("What is 17 times 23? Answer with the number only." + enter)
	demo.shows("391", "3 tokens")
	demo.types(ctrlD)
	demo.types("qy")
	demo.givenBack(0)
	childrenAreGone(t, p, demo.process)
}

// TestBenchStops: a measurement on a terminal says what it does, and Ctrl-C ends it.
func TestBenchStops(t *testing.T) {
	t.Parallel()
	p := newPlay(t, noHang)
	tm := p.onTerminalAs("bench", "--shape", "tiny-moe", "--backend", "ref", "--prompt", "4000")
	tm.shows("prompt of 4000")
	tm.types(ctrlC)
	tm.givenBack(130)
}
