package netmesh

import (
	"context"
	"errors"
	"testing"
	"time"

	"pooled/netmesh/signal"
)

func TestIDTaken(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	n.join("pooled-room-4TKG9P")
	_, err := Open(n.ctx, Config{ID: "pooled-room-4TKG9P", Servers: []signal.Server{n.server}})
	if !errors.Is(err, ErrIDTaken) || errors.Is(err, ErrSignalDown) {
		t.Errorf("got %v, want ErrIDTaken", err)
	}
}

func TestNoSignaling(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	n.stop()
	_, err := Open(n.ctx, Config{Servers: []signal.Server{n.server, n.server}})
	var down *signal.DownError
	if !errors.Is(err, ErrSignalDown) || !errors.As(err, &down) || len(down.Tried) != 2 {
		t.Errorf("got %v, want ErrSignalDown with two tried", err)
	}
}

func TestDialFails(t *testing.T) {
	short := func(_ *Config, t *tuning) { t.dial = 400 * time.Millisecond }
	cases := []struct {
		name  string
		peer  PeerID
		tune  func(*Config, *tuning)
		setup func(n *testNet, a *node)
		want  error
	}{
		{"nobody has the id", "nobody", nil, nil, ErrNoPeer},
		{"own id", "dialer", nil, nil, ErrNoPeer},
		{"not an id", "../x", nil, nil, ErrNoPeer},
		{"empty id", "", nil, nil, ErrNoPeer},
		{"peer takes no links", "closed", short, func(n *testNet, _ *node) {
			n.join("closed", func(c *Config, _ *tuning) { c.AcceptLinks = false })
		}, ErrTimeout},
		{"no path", "far", quick, func(n *testNet, _ *node) {
			h := newHole(n.t)
			h.off.Store(true)
			n.join("far", h.use)
		}, ErrNoPath},
		{"signaling is down", "other", nil, func(n *testNet, a *node) {
			n.stop()
			want[SignalDown](a)
		}, ErrSignalDown},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n := newTestNet(t, signal.HubOptions{QueueFor: 200 * time.Millisecond})
			var change []func(*Config, *tuning)
			if c.tune != nil {
				change = append(change, c.tune)
			}
			a := n.join("dialer", change...)
			if c.setup != nil {
				c.setup(n, a)
			}
			a.Dial(c.peer)
			a.Dial(c.peer) // while one runs the second changes nothing, but for those that fail at once
			got := want[DialFailed](a)
			if got.Peer != c.peer || !errors.Is(got.Err, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestDialBeforeRun: what is dialed at once waits for Run.
func TestDialBeforeRun(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	b := n.join("peer-b")
	events := make(chan Event, 100)
	m, err := Open(n.ctx, Config{Servers: []signal.Server{n.server}, Loopback: true, Deliver: func(e Event) { events <- e }})
	if err != nil {
		t.Fatal(err)
	}
	m.Dial(b.ID())
	done := make(chan error, 1)
	go func() { done <- m.Run(n.ctx) }()
	a := &node{Mesh: m, t: t, ctx: n.ctx, events: events}
	want[SignalUp](a)
	want[LinkUp](a)
	if err := m.Close(n.ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
}

// TestBothDial: of two dials that cross, one counts, whichever way they cross.
func TestBothDial(t *testing.T) {
	for range 8 {
		func() {
			n := newTestNet(t, signal.HubOptions{})
			a, b := n.join("peer-a"), n.join("peer-b")
			a.Dial(b.ID())
			b.Dial(a.ID())
			upA, upB := want[LinkUp](a), want[LinkUp](b)
			if upA.Dialed == upB.Dialed {
				t.Fatalf("got %+v and %+v, want one dialer", upA, upB)
			}
			a.send(b.ID(), map[string]any{"t": "one"})
			b.send(a.ID(), map[string]any{"t": "two"})
			if m := want[Message](b); m.Msg["t"] != "one" {
				t.Errorf("got %v", m)
			}
			if m := want[Message](a); m.Msg["t"] != "two" {
				t.Errorf("got %v", m)
			}
			a.Dial(b.ID()) // linked already: nothing happens
			if e := during(a, 100*time.Millisecond); e != nil {
				t.Errorf("got %#v, want nothing", e)
			}
			a.kill()
			b.kill()
			n.stop()
		}()
	}
}

func TestHangGivesUpDial(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{QueueFor: 200 * time.Millisecond})
	a := n.join("peer-a")
	a.Dial("nobody")
	a.Hang("nobody", "changed my mind")
	if e := during(a, 600*time.Millisecond); e != nil {
		t.Errorf("got %#v, want nothing", e)
	}
}

func TestSignalingDropsAndReturns(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, b := n.pair()
	n.stop()
	if d := want[SignalDown](a); !errors.Is(d.Err, ErrSignalDown) || d.Server != n.server.String() {
		t.Errorf("got %+v", d)
	}
	want[SignalDown](b)
	a.send(b.ID(), map[string]any{"t": "still here"})
	if m := want[Message](b); m.Msg["t"] != "still here" {
		t.Errorf("got %v", m)
	}
	n.listen(n.server.Port, signal.HubOptions{})
	want[SignalUp](a)
	want[SignalUp](b)
	c := n.join("peer-c")
	c.Dial(a.ID())
	want[LinkUp](c)
	want[LinkUp](a)
	b.send(a.ID(), map[string]any{"t": "me too"})
	if m := want[Message](a); m.Peer != b.ID() {
		t.Errorf("got %v", m)
	}
}

// TestReplacedLink: a peer that comes back under its id while the old link looks alive.
func TestReplacedLink(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	old, b := n.pair()
	n.stop() // forgets who holds which id
	want[SignalDown](b)
	n.listen(n.server.Port, signal.HubOptions{})
	fresh := n.join("peer-a")
	want[SignalUp](b)
	fresh.Dial(b.ID())
	want[LinkUp](fresh)
	if d := want[LinkDown](b); d.Peer != "peer-a" || d.Why != "replaced by a new link" {
		t.Errorf("got %+v", d)
	}
	if u := want[LinkUp](b); u.Peer != "peer-a" || u.Dialed {
		t.Errorf("got %+v", u)
	}
	want[SignalDown](old)
	for ended := false; !ended; {
		switch e := old.next().(type) {
		case LinkDown:
			if ended = true; e.Leaving {
				t.Errorf("got %+v", e)
			}
		case SignalDown: // with its next attempt it learns that its id is another's now
			if !errors.Is(e.Err, signal.ErrIDTaken) {
				t.Errorf("got %+v", e)
			}
		case RTT:
		default:
			t.Fatalf("got %#v", e)
		}
	}
	b.send("peer-a", map[string]any{"t": "to the new one"})
	want[Message](fresh)
}

func TestCloseAndRunOnce(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	m, err := Open(n.ctx, Config{Servers: []signal.Server{n.server}, Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := m.Close(n.ctx); err != nil {
			t.Errorf("close without run: %v", err)
		}
	}
	if err := m.Run(n.ctx); err == nil {
		t.Error("run after close: got no error")
	}
	a := n.join("peer-a")
	if err := a.Run(n.ctx); err == nil {
		t.Error("second run: got no error")
	}
	for range 2 {
		if err := a.Close(n.ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	a.Dial("peer-b")
	a.Hang("peer-b", "")
	if err := a.Send("peer-b", map[string]any{"t": "x"}); !errors.Is(err, ErrClosed) {
		t.Errorf("send after close: got %v, want ErrClosed", err)
	}
}

// TestCloseIsBounded: a peer that takes nothing does not hold Close up.
func TestCloseIsBounded(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	h := newHole(t)
	a, b := n.join("peer-a", h.use), n.join("peer-b")
	n.link(a, b)
	h.off.Store(true)
	begin := time.Now()
	if err := a.Close(n.ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("close took %v", took)
	}
	h2 := newHole(t)
	c := n.join("peer-c", h2.use)
	n.link(c, b)
	h2.off.Store(true)
	ctx, cancel := context.WithCancel(n.ctx)
	cancel()
	if err := c.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("close without time: got %v", err)
	}
}

func TestKilledPeerIsNoticed(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, b := n.pair()
	begin := time.Now()
	a.kill()
	if d := want[LinkDown](b); d.Peer != a.ID() || d.Leaving {
		t.Errorf("got %+v, want down without leaving", d)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("noticed after %v", took)
	}
}
