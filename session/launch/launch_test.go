package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pooled/catalog"
	"pooled/compute/op"
	"pooled/compute/ref"
	"pooled/netmesh"
	"pooled/netmesh/signal"
	"pooled/session"
)

func TestParseGB(t *testing.T) {
	for in, want := range map[string]GB{
		"": {}, "1": {N: 1}, "9.5": {N: 9.5}, "64": {N: 64}, "100": {N: 64}, "max": {Max: true}, "MAX": {Max: true},
	} {
		if got, err := ParseGB(in); err != nil || got != want {
			t.Errorf("ParseGB(%q) = %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"0", "-1", "abc", "0.5", "NaN", "1e999x", "inf "} {
		got, err := ParseGB(in)
		var p *session.Problem
		if !errors.As(err, &p) || p.Exit != session.ExitUsage || !strings.Contains(p.What, "--gb") || !strings.Contains(p.What, in) {
			t.Errorf("ParseGB(%q) = %+v, %v, want a usage error that names --gb and the value", in, got, err)
		}
	}
}

func TestPledgeFor(t *testing.T) {
	for _, c := range []struct {
		name   string
		buffer int64
		gb     GB
		want   float64 // GB
	}{
		{"half of the largest buffer", 4 << 30, GB{}, 2},
		{"at least one", 1 << 30, GB{}, 1},
		{"at most 64", 1 << 40, GB{}, 64},
		{"buffer not known", 0, GB{}, 1},
		{"a number wins", 4 << 30, GB{N: 9.5}, 9.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := PledgeFor(op.Info{MaxBuffer: c.buffer}, c.gb)
			if want := int64(c.want * GiB); got.Bytes != want || got.Why == "" {
				t.Errorf("got %d (%s), want %d and a reason", got.Bytes, got.Why, want)
			}
		})
	}
}

func TestDeviceName(t *testing.T) {
	first, err := deviceName(session.Worker, "")
	if err != nil || !regexp.MustCompile(`^(linux|mac|pc|node)-[a-z]{3}$`).MatchString(first) {
		t.Errorf("got %q, %v", first, err)
	}
	if again, _ := deviceName(session.Host, ""); again != first {
		t.Errorf("the name changed from %q to %q", first, again)
	}
	asker, err := deviceName(session.Asker, "")
	if err != nil || !regexp.MustCompile(`^pooled chat [a-z0-9]{4}$`).MatchString(asker) {
		t.Errorf("got %q, %v", asker, err)
	}
	if got, err := deviceName(session.Worker, "  anna\x1b[31m "); err != nil || strings.ContainsRune(got, 0x1b) || !strings.HasPrefix(got, "anna") {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := deviceName(session.Worker, "\x1b\a"); err == nil {
		t.Errorf("got %q, want an error", got)
	}
}

func TestHostsStayOnThisComputer(t *testing.T) {
	for spec, local := range map[string]bool{
		"127.0.0.1:9000": true, "localhost:9000": true, "ws://[::1]:9000": true, "ws://127.8.8.8:1/x": true,
		"cloud": false, "192.168.1.5:9000": false, "127.0.0.1:9000,example.org": false, "wss://localhost.example.org": false,
	} {
		_, _, err := servers(&Spec{Options: session.Options{Role: session.Host}, Signal: spec})
		var p *session.Problem
		if local && err != nil || !local && (!errors.As(err, &p) || p.Code != "not-loopback") {
			t.Errorf("host on %s: %v, want allowed %v", spec, err, local)
		}
		if _, got, err := servers(&Spec{Options: session.Options{Role: session.Worker}, Signal: spec}); err != nil || got != local {
			t.Errorf("worker on %s: local %v, %v, want %v", spec, got, err, local)
		}
	}
}

func TestFlagsAreChecked(t *testing.T) {
	usage := func(name string, err error) {
		t.Helper()
		var p *session.Problem
		if !errors.As(err, &p) || p.Exit != session.ExitUsage {
			t.Errorf("%s: %v, want a usage error", name, err)
		}
	}
	host := func(change func(*HostFlags)) error {
		f := HostFlags{Split: "speed"}
		change(&f)
		_, err := f.Spec(true)
		return err
	}
	if err := host(func(*HostFlags) {}); err != nil {
		t.Errorf("defaults: %v", err)
	}
	usage("two models", host(func(f *HostFlags) { f.Model, f.ModelOpt = "35b", "27b" }))
	usage("wait", host(func(f *HostFlags) { f.Wait = 65 }))
	usage("context", host(func(f *HostFlags) { f.Ctx = 255 }))
	usage("memory", host(func(f *HostFlags) { f.GB = "0" }))
	for name, f := range map[string]ChatFlags{
		"tokens": {MaxTokens: 0, Temperature: -1}, "many tokens": {MaxTokens: 65537, Temperature: -1},
		"hot": {MaxTokens: 1, Temperature: 2.1}, "cold": {MaxTokens: 1, Temperature: -0.5}, "wait": {MaxTokens: 1, Wait: -1},
	} {
		_, err := f.Spec()
		usage(name, err)
	}
	for _, c := range []struct {
		name   string
		f      HostFlags
		screen bool
		auto   bool
		with   int
	}{
		{"a script starts by itself", HostFlags{}, false, true, 0},
		{"a screen waits for Enter", HostFlags{}, true, false, 0},
		{"unless told", HostFlags{Start: true}, true, true, 0},
		{"a script that waits", HostFlags{Wait: 3}, false, false, 3},
	} {
		s, err := c.f.Spec(c.screen)
		if err != nil || s.AutoStart != c.auto || s.StartWith != c.with {
			t.Errorf("%s: start %v, with %d, %v", c.name, s.AutoStart, s.StartWith, err)
		}
	}
}

func TestProblemsSayWhatToDo(t *testing.T) {
	server, err := signal.ParseServer("127.0.0.1:9000", signal.BareFlag)
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{Options: session.Options{Code: "FEAQ38"}}
	for _, c := range []struct {
		name string
		p    *session.Problem
		exit int
		want string
	}{
		{"no adapter", gpuProblem(fmt.Errorf("gpu: %w", op.ErrNoAdapter)), session.ExitNoGPU, "Vulkan"},
		{"kernel", gpuProblem(fmt.Errorf("gpu: %w", op.ErrKernel)), session.ExitNoGPU, "update the GPU driver"},
		{"taken", meshProblem(fmt.Errorf("x: %w", netmesh.ErrIDTaken), spec, []signal.Server{server}), session.ExitFailed, "--code"},
		{"down", meshProblem(fmt.Errorf("x: %w", netmesh.ErrSignalDown), spec, []signal.Server{server}), session.ExitFailed, "pooled signal"},
	} {
		if c.p.Exit != c.exit || c.p.What == "" || !strings.Contains(c.p.Do, c.want) {
			t.Errorf("%s: %+v, want exit %d and %q", c.name, c.p, c.exit, c.want)
		}
	}
}

func TestUntilSignal(t *testing.T) {
	again := make(chan struct{}, 1)
	ctx, stop := UntilSignal(func() { again <- struct{}{} })
	defer stop()
	send := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	send()
	<-ctx.Done()
	var by Interrupted
	if !errors.As(context.Cause(ctx), &by) || by.Signal != syscall.SIGHUP {
		t.Errorf("cause %v, want the hangup", context.Cause(ctx))
	}
	send()
	<-again
}

// A signaling server that took connections and never answered left the screen blank for 20 seconds.
func TestSayIfSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		fast := SayIfSlow(&out, "a:1")
		time.Sleep(slowAfter - time.Millisecond) // of the bubble
		fast()
		time.Sleep(time.Minute)
		if out.Len() > 0 {
			t.Errorf("said %q though it was fast", out.String())
		}
		defer SayIfSlow(&out, "a:1")()
		time.Sleep(slowAfter)
		synctest.Wait()
		if !strings.Contains(out.String(), "a:1") {
			t.Errorf("said %q, want the server's name", out.String())
		}
	})
}

func TestUntilEOF(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := UntilEOF(t.Context(), r, true)
	defer cancel()
	if ctx.Err() != nil {
		t.Fatal("ended before its input")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
}

// The engine's shape of the built-in model is what the catalogue plans with.
func TestModelIsWhatTheCatalogueSays(t *testing.T) {
	store, err := catalog.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(ref.Open(), store)
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	entry, err := catalog.Match(catalog.Builtin(), "mini")
	if err != nil {
		t.Fatal(err)
	}
	m, err := e.Model(t.Context(), "mini")
	if err != nil {
		t.Fatal(err)
	}
	if m.Layers != entry.Layers || m.LayerBytes != entry.LayerBytes || m.HostBytes != entry.HostBytes() || m.KVBytes != entry.KVPerPos {
		t.Errorf("engine %+v, catalogue %+v", m, entry)
	}
	spec := session.LoadSpec{ModelKey: "mini", Lo: 2, Hi: 4, Ctx: 64}
	var last int
	if err := e.Load(t.Context(), spec, func(pct int) { last = pct }); err != nil || last != 100 {
		t.Fatalf("load: %v, %d%%", err, last)
	}
	used := e.Used()
	if err := e.Load(t.Context(), spec, func(int) {}); err != nil || e.Used() != used {
		t.Errorf("the same load again: %v, %d bytes, want %d", err, e.Used(), used)
	}
	e.Free()
	if e.Used() != 0 {
		t.Errorf("%d bytes held after Free", e.Used())
	}
	if _, err := e.Model(t.Context(), "qwen3-4b"); !errors.Is(err, catalog.ErrAbsent) {
		t.Errorf("a model that is not here: %v, want ErrAbsent", err)
	}
}
