package signal

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// memNet is a network of named servers in memory, so that tests run on a fake clock.
type memNet struct {
	mu     sync.Mutex
	listen map[string]*memListener // by host:port
	holes  map[string]bool         // hosts that take a connection and never say anything
}

func newMemNet() *memNet {
	return &memNet{listen: map[string]*memListener{}, holes: map[string]bool{}}
}

func (n *memNet) setHole(addr string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.holes[addr] = on
}

func (n *memNet) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	l, hole := n.listen[addr], n.holes[addr]
	n.mu.Unlock()
	if hole {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if l == nil {
		return nil, errors.New("connection refused")
	}
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// client makes HTTP requests over the memory network.
func (n *memNet) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: n.dial, DisableKeepAlives: true}}
}

type memListener struct {
	n     *memNet
	addr  string
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (n *memNet) bind(addr string) *memListener {
	l := &memListener{n: n, addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listen[addr] = l
	return l
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.n.mu.Lock()
		defer l.n.mu.Unlock()
		if l.n.listen[l.addr] == l {
			delete(l.n.listen, l.addr)
		}
	})
	return nil
}

func (l *memListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// serveHub runs a server at addr; stop ends it and waits.
func (n *memNet) serveHub(t *testing.T, addr string, o HubOptions) (stop func()) {
	t.Helper()
	l, err := NewListener(n.bind(addr), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("server ended with %v", err)
			}
		})
	}
	return stop
}

// serveHTTP runs a handler at addr until the test's stop is called.
func (n *memNet) serveHTTP(addr string, h http.Handler) (stop func()) {
	l := n.bind(addr)
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { _ = srv.Serve(l); close(done) }()
	return func() { _ = srv.Close(); <-done }
}

// at is the server spec of a memory address.
func at(t *testing.T, spec string) Server {
	t.Helper()
	s, err := ParseServer(spec, BarePlain)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// inbox collects a client's events.
type inbox struct{ ch chan Event }

func newInbox() *inbox                                         { return &inbox{ch: make(chan Event, 1000)} }
func (b *inbox) deliver(e Event)                               { b.ch <- e }
func (b *inbox) next(t *testing.T, within time.Duration) Event { return next(t, b.ch, within) }

func next(t *testing.T, ch <-chan Event, within time.Duration) Event {
	t.Helper()
	select {
	case e := <-ch:
		return e
	case <-time.After(within):
		t.Fatalf("no event within %v", within)
		return nil
	}
}

func (b *inbox) none(t *testing.T, during time.Duration) {
	t.Helper()
	select {
	case e := <-b.ch:
		t.Fatalf("got %#v, want nothing for %v", e, during)
	case <-time.After(during):
	}
}

// running is a client whose Run runs.
type running struct {
	*Client
	*inbox
	stop func()
}

func startClient(t *testing.T, o Options) running {
	t.Helper()
	in := newInbox()
	o.Deliver = in.deliver
	c, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	var once sync.Once
	return running{c, in, func() {
		once.Do(func() {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Run returned %v, want context.Canceled", err)
			}
		})
	}}
}

// rawSocket opens a WebSocket as a foreign client would.
func rawSocket(t *testing.T, n *memNet, url string) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPClient: n.client()})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func rawRead(t *testing.T, conn *websocket.Conn) Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m, err := readMessage(ctx, conn)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return m
}
