//go:build unix

package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pooled/netmesh"
	"pooled/netmesh/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deadline bounds one test.
const deadline = 120 * time.Second

// need skips unless the tests were asked for, and fails when they were and something is missing.
func need(t *testing.T, file string) {
	t.Helper()
	if os.Getenv("POOLED_INTEROP") != "1" {
		t.Skip("NOT RUN: interop with PeerJS and PeerServer needs netmesh/interop/install.sh and POOLED_INTEROP=1")
	}
	if _, err := os.Stat(filepath.Join("node_modules", file)); err != nil {
		t.Fatalf("%v: run netmesh/interop/install.sh", err)
	}
}

// process is a child that is ended with its whole process group.
type process struct {
	cmd  *exec.Cmd
	done chan error
}

func start(t *testing.T, out io.Writer, name string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, done: make(chan error, 1)}
	go func() { p.done <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // may have ended
		<-p.done
	})
	return p
}

// freePort is a port nobody listens on at the moment.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// startPeerServer runs the npm PeerServer's own command.
func startPeerServer(ctx context.Context, t *testing.T) signal.Server {
	t.Helper()
	need(t, "peer/dist/bin/peerjs.js")
	port := freePort(t)
	out, w := io.Pipe()
	p := start(t, w, "node", "node_modules/peer/dist/bin/peerjs.js", "--port", fmt.Sprint(port), "--host", "127.0.0.1", "--path", "/npm")
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case lines <- s.Text():
			default:
			}
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		_ = w.Close()
		for range lines {
		}
	})
	for {
		select {
		case s := <-lines:
			if strings.Contains(s, "Started PeerServer") {
				return signal.Server{Host: "127.0.0.1", Port: port, Path: "/npm/"}
			}
		case err := <-p.done:
			t.Fatalf("PeerServer ended: %v", err)
		case <-ctx.Done():
			t.Fatal("PeerServer did not start")
		}
	}
}

// startOurs runs our own signaling server.
func startOurs(ctx context.Context, t *testing.T) signal.Server {
	t.Helper()
	l, err := signal.Listen(ctx, signal.ListenOptions{Host: "127.0.0.1", HubOptions: signal.HubOptions{Path: "/ours"}})
	if err != nil {
		t.Fatal(err)
	}
	run(t, "signaling server", func(ctx context.Context) error { return l.Run(ctx) })
	return l.Server()
}

// run runs f until the test's end and waits for it.
func run(t *testing.T, what string, f func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// report is what the page says happened.
type report struct {
	What, ID, Type, Text, T, Label, Serialization string
	Bytes                                         int
	Dialed                                        bool
}

// page is a PeerJS peer in Chromium.
type page struct {
	t       *testing.T
	ctx     context.Context
	reports chan report
	kept    []report // came before they were wanted
}

// openPage loads the page in a browser of its own; query is what it is to do.
func openPage(ctx context.Context, t *testing.T, server signal.Server, query string) *page {
	t.Helper()
	need(t, "peerjs/dist/peerjs.min.js")
	p := &page{t: t, ctx: ctx, reports: make(chan report, 1000)}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir("page")))
	mux.HandleFunc("/peerjs.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, "node_modules/peerjs/dist/peerjs.min.js")
	})
	mux.HandleFunc("/report", func(_ http.ResponseWriter, r *http.Request) {
		var rep report
		if err := json.NewDecoder(r.Body).Decode(&rep); err != nil {
			t.Errorf("report: %v", err)
			return
		}
		if rep.What != "slice" {
			t.Logf("page: %+v", rep)
		}
		p.reports <- rep
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: mux}
	served := make(chan struct{})
	go func() { _ = srv.Serve(ln); close(served) }()
	t.Cleanup(func() { _ = srv.Close(); <-served })
	start(t, io.Discard, chromium(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(),
		fmt.Sprintf("http://%s/?port=%d&path=%s&%s", ln.Addr(), server.Port, server.Path, query))
	return p
}

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Chromium: run netmesh/interop/install.sh")
	return ""
}

// want waits for a report. Others are kept for later calls: each travels in a request of its own, so they may overtake each
// other.
func (p *page) want(what string) report {
	p.t.Helper()
	for i, r := range p.kept {
		if r.What == what {
			p.kept = slices.Delete(p.kept, i, i+1)
			return r
		}
	}
	for {
		select {
		case r := <-p.reports:
			if r.What == what {
				return r
			}
			if strings.Contains(r.What, "error") || r.What == "exception" {
				p.t.Fatalf("the page says %+v", r)
			}
			p.kept = append(p.kept, r)
		case <-p.ctx.Done():
			p.t.Fatalf("the page never said %q", what)
		}
	}
}

// node is a mesh and what it delivered.
type node struct {
	*netmesh.Mesh
	t      *testing.T
	ctx    context.Context
	events chan netmesh.Event
}

func join(ctx context.Context, t *testing.T, server signal.Server, id netmesh.PeerID) *node {
	t.Helper()
	n := &node{t: t, ctx: ctx, events: make(chan netmesh.Event, 1000)}
	var err error
	n.Mesh, err = netmesh.Open(ctx, netmesh.Config{
		ID: id, Servers: []signal.Server{server}, Loopback: true, AcceptLinks: true,
		Deliver: func(e netmesh.Event) { n.events <- e },
		Log:     func(s string) { t.Log("mesh: " + s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, "mesh", n.Run)
	return n
}

// want waits for an event of type T, passing others over but for the end of a link.
func want[T netmesh.Event](n *node) T {
	n.t.Helper()
	for {
		select {
		case e := <-n.events:
			if v, ok := e.(T); ok {
				return v
			}
			switch e := e.(type) {
			case netmesh.LinkDown, netmesh.DialFailed:
				n.t.Fatalf("got %#v, want a %T", e, *new(T))
			}
		case <-n.ctx.Done():
			n.t.Fatalf("no %T came", *new(T))
		}
	}
}
