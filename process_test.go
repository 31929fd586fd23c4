package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pooled/session"

	"pooled/session/launch"
)

// play is one test's processes with one time limit for all of it: past that they are killed and every wait fails.
type play struct {
	t      *testing.T
	ctx    context.Context
	env    []string
	signal string // address of its signaling server
}

// It takes an adapter, unless POOLED_NO_GPU=1 says that this machine is known to have none.
func newPlay(t *testing.T, limit time.Duration) *play {
	t.Helper()
	if os.Getenv("POOLED_NO_GPU") == "1" {
		t.Skip("SKIPPED, NOT TESTED: POOLED_NO_GPU=1, and a room needs a GPU adapter")
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return &play{t: t, ctx: ctx, env: environment(t)}
}

// environment is this process's without what changes the program's ways, and with an empty home.
func environment(t *testing.T) []string {
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "POOLED_") || strings.HasPrefix(s, "NO_COLOR=") || strings.HasPrefix(s, "COLUMNS=")
	})
	return append(env, censusEnv+"="+people.l.Addr().String(), "HOME="+t.TempDir(), "TERM=xterm-256color", "LC_ALL=C.UTF-8")
}

// process is a run of the program.
type process struct {
	t        *testing.T
	ctx      context.Context
	name     string
	cmd      *exec.Cmd
	out, log *tape
	at       int // how much of log was read as events
	done     chan struct{}
}

// prepare makes a process that is not started.
func (p *play) prepare(args ...string) *process {
	p.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	pr := &process{t: p.t, ctx: p.ctx, name: strings.Join(args, " "), out: newTape(), log: newTape(), done: make(chan struct{})}
	pr.cmd = exec.CommandContext(p.ctx, exe, args...)
	pr.cmd.Env = p.env
	pr.cmd.Stdout, pr.cmd.Stderr = pr.out, pr.log
	pr.cmd.WaitDelay = 5 * time.Second
	return pr
}

// begin starts it. It is killed at the latest when the test ends.
func (pr *process) begin() *process {
	pr.t.Helper()
	if err := pr.cmd.Start(); err != nil {
		pr.t.Fatal(err)
	}
	go func() { // ends with the process
		defer close(pr.done)
		_ = pr.cmd.Wait()
		pr.out.end()
		pr.log.end()
	}()
	pr.t.Cleanup(func() {
		_ = pr.cmd.Process.Kill()
		<-pr.done
	})
	return pr
}

func (p *play) start(args ...string) *process {
	p.t.Helper()
	return p.prepare(args...).begin()
}

// member starts a process with the signaling server of this play.
func (p *play) member(args ...string) *process {
	p.t.Helper()
	return p.start(append(args, "--signal", p.signal)...)
}

// opensSignal starts the signaling server of this play.
func (p *play) opensSignal() *process {
	p.t.Helper()
	s := p.start("signal", "--port", "0")
	line, _, _ := strings.Cut(s.says(s.out, "\n"), "\n") // more lines follow, at once or later
	address, ok := strings.CutPrefix(line, "signaling server on ")
	if !ok {
		p.t.Fatalf("pooled signal says %q", line)
	}
	p.signal = address
	return s
}

// opensRoom starts a host of the built-in model that deals to every device once n are in, and waits until it is open.
func (p *play) opensRoom(code string, n string) *process {
	p.t.Helper()
	h := p.member("host", "mini", "--code", code, "--wait", n, "--split", "spread", "--json-log")
	h.sees("room.opened")
	return h
}

// chat asks one question.
func (p *play) chat(code, question string) *process {
	p.t.Helper()
	return p.member("chat", code, question)
}

// says waits for a text in one of the outputs and returns all of it so far.
func (pr *process) says(t *tape, text string) string {
	pr.t.Helper()
	all, ok := t.await(pr.ctx, func(all string) bool { return strings.Contains(all, text) })
	if !ok {
		pr.t.Fatalf("pooled %s: never said %q, only %q; log:\n%s", pr.name, text, all, pr.story())
	}
	return all
}

// event is what the tests read of a line of the JSON log.
type event struct {
	Seq     uint64
	Ev      string
	Peer    string
	Name    string
	Kind    session.Kind
	Code    string
	Host    string
	Reason  string
	Err     string
	Why     string
	Text    string
	Model   string
	ID      int
	Epoch   int
	Shares  []session.Share
	LeftOut map[string]session.Out
	Stats   session.Stats
	Problem *session.Problem
}

// wait reads events until one fits, which it returns.
func (pr *process) wait(what string, fits func(event) bool) event {
	pr.t.Helper()
	for {
		line, ok := pr.log.line(pr.ctx, pr.at)
		if !ok {
			pr.t.Fatalf("pooled %s: no %s; log:\n%s", pr.name, what, pr.story())
		}
		pr.at += len(line)
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			if strings.HasPrefix(line, "{") {
				pr.t.Fatalf("pooled %s: %v in the log: %s", pr.name, err, line)
			}
			continue // what a driver printed
		}
		if fits(e) {
			return e
		}
	}
}

// sees waits for events of these names, in this order, others between them, and returns the last.
func (pr *process) sees(names ...string) event {
	pr.t.Helper()
	var e event
	for _, name := range names {
		e = pr.wait(name, func(e event) bool { return e.Ev == name })
	}
	return e
}

// events are all events logged so far.
func (pr *process) events() []event {
	var all []event
	for line := range strings.Lines(pr.log.String()) {
		var e event
		if json.Unmarshal([]byte(line), &e) == nil {
			all = append(all, e)
		}
	}
	return all
}

// exits waits for the end and checks the exit code.
func (pr *process) exits(code int) {
	pr.t.Helper()
	select {
	case <-pr.done:
	case <-pr.ctx.Done():
		pr.t.Fatalf("pooled %s: still runs; log:\n%s", pr.name, pr.story())
	}
	if got := pr.cmd.ProcessState.ExitCode(); got != code {
		pr.t.Errorf("pooled %s: exit %d (%s), want %d; stdout %q, log:\n%s", pr.name, got, pr.cmd.ProcessState, code, pr.out, pr.story())
	}
}

// story is the log without the measurements.
func (pr *process) story() string {
	var b strings.Builder
	for line := range strings.Lines(pr.log.String()) {
		if !strings.Contains(line, `"ev":"l`) { // load.progress, link.rtt, lap
			b.WriteString(line)
		}
	}
	return b.String()
}

// signals sends a signal.
func (pr *process) signals(s os.Signal) {
	pr.t.Helper()
	if err := pr.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		pr.t.Fatal(err)
	}
}

// tape is what a process wrote, with waiting for more.
type tape struct {
	mu    sync.Mutex
	text  []byte
	ended bool
	more  chan struct{}
}

func newTape() *tape { return &tape{more: make(chan struct{})} }

// Write appends.
func (t *tape) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.wake()
	return len(b), nil
}

func (t *tape) wake() {
	close(t.more)
	t.more = make(chan struct{})
}

func (t *tape) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.wake()
}

func (t *tape) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// await waits until enough says that what was written suffices; false when it never will.
func (t *tape) await(ctx context.Context, enough func(all string) bool) (string, bool) {
	for {
		t.mu.Lock()
		all, ended, more := string(t.text), t.ended, t.more
		t.mu.Unlock()
		if enough(all) {
			return all, true
		}
		if ended {
			return all, false
		}
		select {
		case <-more:
		case <-ctx.Done():
			return all, false
		}
	}
}

// line waits for a whole line that begins at offset.
func (t *tape) line(ctx context.Context, offset int) (string, bool) {
	all, ok := t.await(ctx, func(all string) bool { return strings.Contains(all[offset:], "\n") })
	if !ok {
		return "", false
	}
	line, _, _ := strings.Cut(all[offset:], "\n")
	return line + "\n", true
}

// inProcess runs the program in this process and returns what it printed. It does not run beside others that capture
// the standard streams.
func inProcess(t *testing.T, stdin string, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	file := func(content string) *os.File {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		if _, err := f.WriteString(content); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		return f
	}
	in, out, errs := file(stdin), file(""), file("")
	exit = run(args, launch.Streams{In: in, Out: out, Err: errs})
	read := func(f *os.File) string {
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	return exit, read(out), read(errs)
}
