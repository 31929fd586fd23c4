//go:build unix

package interop

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"pooled/netmesh"
	"pooled/netmesh/signal"
)

// client is a signaling client and what it delivered.
type client struct {
	*signal.Client
	events chan signal.Event
}

func register(ctx context.Context, t *testing.T, server signal.Server, id string) *client {
	t.Helper()
	c := &client{events: make(chan signal.Event, 100)}
	var err error
	c.Client, err = signal.Open(ctx, signal.Options{Servers: []signal.Server{server}, ID: id, Deliver: func(e signal.Event) { c.events <- e }})
	if err != nil {
		t.Fatal(err)
	}
	run(t, "client", c.Run)
	c.next(ctx, t) // Up
	return c
}

func (c *client) next(ctx context.Context, t *testing.T) signal.Event {
	t.Helper()
	select {
	case e := <-c.events:
		return e
	case <-ctx.Done():
		t.Fatal("no event came")
		return nil
	}
}

// TestInteropPeerServer runs our client against the npm PeerServer.
func TestInteropPeerServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	server := startPeerServer(ctx, t)
	a, b := register(ctx, t, server, ""), register(ctx, t, server, "pooled-room-4TKG9P")
	if len(a.ID()) != 36 {
		t.Errorf("id given by the server: %q", a.ID())
	}
	for _, typ := range []signal.Type{signal.TypeOffer, signal.TypeAnswer, signal.TypeCandidate} {
		if err := a.Send(signal.Message{Type: typ, Dst: b.ID(), Payload: json.RawMessage(`{"x":1}`)}); err != nil {
			t.Fatal(err)
		}
		if m, ok := b.next(ctx, t).(signal.Message); !ok || m.Type != typ || m.Src != a.ID() || string(m.Payload) != `{"x":1}` {
			t.Errorf("got %v", m)
		}
	}
	if _, err := signal.Open(ctx, signal.Options{Servers: []signal.Server{server}, ID: b.ID()}); !errors.Is(err, signal.ErrIDTaken) {
		t.Errorf("taken id: got %v", err)
	}
	wrong := server
	wrong.Key = "wrong"
	if _, err := signal.Open(ctx, signal.Options{Servers: []signal.Server{wrong}}); !errors.Is(err, signal.ErrDown) {
		t.Errorf("wrong key: got %v", err)
	}
	begin := time.Now()
	n := join(ctx, t, server, "")
	n.Dial("nobody-is-here")
	var failed netmesh.DialFailed
	for failed.Peer == "" {
		select {
		case e := <-n.events:
			failed, _ = e.(netmesh.DialFailed)
		case <-ctx.Done():
			t.Fatal("the dial did not fail")
		}
	}
	if took := time.Since(begin); !errors.Is(failed.Err, netmesh.ErrNoPeer) || took < 5*time.Second || took > 8*time.Second {
		t.Errorf("dial of nobody: got %v after %v, want ErrNoPeer after 5 to 6.5 s", failed.Err, took)
	}
}

// TestInteropComeBack: the server still holds our old socket when we come back, and takes us without a word.
func TestInteropComeBack(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	server := startPeerServer(ctx, t)
	cut := startCut(ctx, t, server)
	a, b := register(ctx, t, cut.server, "a"), register(ctx, t, server, "b")
	cut.clients()
	if d, ok := a.next(ctx, t).(signal.Down); !ok {
		t.Fatalf("got %#v, want Down", d)
	}
	begin := time.Now()
	if u, ok := a.next(ctx, t).(signal.Up); !ok {
		t.Fatalf("got %#v, want Up", u)
	}
	if took := time.Since(begin); took < 3900*time.Millisecond || took > 10*time.Second {
		t.Errorf("up after %v, want 2 s of waiting and 2 s without refusal", took)
	}
	if err := b.Send(signal.Message{Type: signal.TypeOffer, Dst: "a"}); err != nil {
		t.Fatal(err)
	}
	if m, ok := a.next(ctx, t).(signal.Message); !ok || m.Src != "b" {
		t.Errorf("got %v, want the offer of b", m)
	}
}

// cutter forwards TCP connections and can cut the client's half while the server's stays.
type cutter struct {
	server signal.Server
	mu     sync.Mutex
	near   []net.Conn
}

func (c *cutter) clients() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.near {
		_ = conn.Close()
	}
	c.near = nil
}

func startCut(ctx context.Context, t *testing.T, to signal.Server) *cutter {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{server: to}
	c.server.Port = ln.Addr().(*net.TCPAddr).Port
	target := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: to.Port}).String()
	run(t, "cutter", func(ctx context.Context) error {
		var wg sync.WaitGroup
		var far []net.Conn
		defer wg.Wait()
		defer func() {
			c.clients()
			for _, f := range far {
				_ = f.Close()
			}
		}()
		defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
		for {
			near, err := ln.Accept()
			if err != nil {
				return nil
			}
			f, err := net.Dial("tcp", target)
			if err != nil {
				return err
			}
			far = append(far, f)
			c.mu.Lock()
			c.near = append(c.near, near)
			c.mu.Unlock()
			wg.Go(func() { _, _ = io.Copy(f, near) }) // the server's half stays open when this ends
			wg.Go(func() { _, _ = io.Copy(near, f); _ = near.Close() })
		}
	})
	return c
}
