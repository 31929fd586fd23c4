package netmesh

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pooled/netmesh/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deadline bounds a whole test, and every wait in it.
const deadline = 90 * time.Second

// testNet is a signaling server and the meshes of one test.
type testNet struct {
	t      *testing.T
	ctx    context.Context
	server signal.Server
	stop   func() // of the server
}

// newTestNet starts a server on loopback. Everything must have ended when the test has.
func newTestNet(t *testing.T, o signal.HubOptions) *testNet {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	n := &testNet{t: t, ctx: ctx}
	n.listen(0, o)
	return n
}

func (n *testNet) listen(port int, o signal.HubOptions) {
	n.t.Helper()
	l, err := signal.Listen(n.ctx, signal.ListenOptions{Host: "127.0.0.1", Port: port, HubOptions: o})
	if err != nil {
		n.t.Fatal(err)
	}
	n.server = l.Server()
	ctx, cancel := context.WithCancel(context.WithoutCancel(n.ctx))
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	var once sync.Once
	n.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				n.t.Errorf("signaling server: %v", err)
			}
		})
	}
	n.t.Cleanup(n.stop)
}

// node is a mesh under test and what it delivered.
type node struct {
	*Mesh
	t      *testing.T
	ctx    context.Context
	events chan Event
	kill   func() // ends it as a killed process ends: without a word
	logs   *lines
}

type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, s)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.text, "\n")
}

// join opens a mesh and waits until it is registered.
func (n *testNet) join(id PeerID, change ...func(*Config, *tuning)) *node {
	n.t.Helper()
	nd := &node{t: n.t, ctx: n.ctx, events: make(chan Event, 4096), logs: &lines{}}
	cfg := Config{
		ID: id, Servers: []signal.Server{n.server}, Loopback: true, AcceptLinks: true,
		Deliver: func(e Event) { nd.events <- e }, Log: nd.logs.add,
	}
	tune := defaults()
	for _, f := range change {
		f(&cfg, &tune)
	}
	var err error
	if nd.Mesh, err = open(n.ctx, cfg, tune); err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(n.ctx))
	done := make(chan error, 1)
	go func() { done <- nd.Run(ctx) }()
	var once sync.Once
	nd.kill = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				n.t.Errorf("%s: Run: %v", id, err)
			}
		})
	}
	n.t.Cleanup(func() {
		nd.kill()
		if n.t.Failed() {
			n.t.Logf("log of %s:\n%s", id, nd.logs)
		}
	})
	want[SignalUp](nd)
	return nd
}

// next waits for the next event.
func (n *node) next() Event {
	n.t.Helper()
	select {
	case e := <-n.events:
		return e
	case <-n.ctx.Done():
		n.t.Fatalf("%s: no event came", n.ID())
		return nil
	}
}

// want waits for the next event of type T, passing RTTs over.
func want[T Event](n *node) T {
	n.t.Helper()
	for {
		e := n.next()
		if v, ok := e.(T); ok {
			return v
		}
		if _, ok := e.(RTT); !ok {
			n.t.Fatalf("%s: got %#v, want a %T", n.ID(), e, *new(T))
		}
	}
}

// pair is two linked meshes; a dialed b.
func (n *testNet) pair(change ...func(*Config, *tuning)) (a, b *node) {
	n.t.Helper()
	a, b = n.join("peer-a", change...), n.join("peer-b", change...)
	n.link(a, b)
	return a, b
}

func (n *testNet) link(a, b *node) {
	n.t.Helper()
	a.Dial(b.ID())
	if got := want[LinkUp](a); got != (LinkUp{Peer: b.ID(), Dialed: true}) {
		n.t.Fatalf("got %+v", got)
	}
	if got := want[LinkUp](b); got != (LinkUp{Peer: a.ID()}) {
		n.t.Fatalf("got %+v", got)
	}
}

func (n *node) send(to PeerID, msg map[string]any) {
	n.t.Helper()
	if err := n.Send(to, msg); err != nil {
		n.t.Fatal(err)
	}
}

func TestTwoMeshesTalk(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, b := n.pair()
	for i := range 50 {
		a.send(b.ID(), map[string]any{"t": "n", "i": i})
		b.send(a.ID(), map[string]any{"t": "n", "i": i, "text": strings.Repeat("é", i)})
	}
	for i := range 50 {
		for _, nd := range []*node{a, b} {
			if m := want[Message](nd); m.Msg["t"] != "n" || m.Msg["i"] != int64(i) {
				t.Fatalf("%s: got %v, want message %d", nd.ID(), m, i)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := a.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	if d := want[LinkDown](b); !d.Leaving || d.Peer != a.ID() {
		t.Errorf("got %+v, want leaving", d)
	}
	if err := b.Send(a.ID(), map[string]any{"t": "x"}); !errors.Is(err, ErrClosed) {
		t.Errorf("send to a closed link: got %v, want ErrClosed", err)
	}
	if err := b.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}
