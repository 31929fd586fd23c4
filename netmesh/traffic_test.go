package netmesh

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"pooled/netmesh/pack"
	"pooled/netmesh/signal"
	"pooled/netmesh/wire"
)

// noise is what frames are cut from.
var noise = sync.OnceValue(func() []byte {
	b := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
})

// frameOf is a frame of n columns of width values, different for every i below 1000.
func frameOf(i, n, width int) *wire.Frame {
	return &wire.Frame{Kind: wire.HiddenB, Pos: uint32(i * n), N: n, Reset: i == 0, Data: noise()[2*i:][:2*n*width]}
}

// TestFramesInOrder sends a thousand prompt frames with messages between them.
func TestFramesInOrder(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, b := n.pair()
	const count, window = 1000, 100
	frames, messages := 0, 0
	take := func() {
		switch e := b.next().(type) {
		case FrameIn:
			want := frameOf(frames, 16, 2048)
			if e.Peer != a.ID() || e.Frame.Pos != want.Pos || e.Frame.N != 16 || e.Frame.Reset != want.Reset || !bytes.Equal(e.Frame.Data, want.Data) {
				t.Fatalf("frame %d: got pos %d, %d columns, %d bytes", frames, e.Frame.Pos, e.Frame.N, len(e.Frame.Data))
			}
			frames++
		case Message:
			if e.Msg["i"] != int64(messages) {
				t.Fatalf("got %v, want message %d", e, messages)
			}
			messages++
		case RTT:
		default:
			t.Fatalf("got %#v", e)
		}
	}
	for i := range count {
		if err := a.SendFrame(b.ID(), frameOf(i, 16, 2048)); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			a.send(b.ID(), map[string]any{"t": "between", "i": i / 5, "text": strings.Repeat("x", i)})
		}
		for i-frames >= window {
			take()
		}
	}
	for frames < count || messages < count/5 {
		take()
	}
}

func TestFramesBothWays(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, b := n.pair()
	full := &wire.Frame{Kind: wire.HiddenRet, Pos: 4e9, N: 1, Spec: true, Reset: true, Rollback: 63, Save: 1, Load: 65535,
		Drop: []uint16{2, 3}, Data: []byte{1, 2}}
	for _, f := range []*wire.Frame{full, {Kind: wire.Hidden, N: 1}, frameOf(3, 1, 2284), frameOf(4, 1, 2285)} {
		if err := b.SendFrame(a.ID(), f); err != nil {
			t.Fatal(err)
		}
		if got := want[FrameIn](a); fmt.Sprint(got.Frame) != fmt.Sprint(*f) || got.Peer != b.ID() {
			t.Errorf("got %v, want %v", got.Frame, *f)
		}
	}
	if err := b.SendFrame(a.ID(), &wire.Frame{Kind: 9, N: 1}); !errors.Is(err, wire.ErrFrame) {
		t.Errorf("frame that cannot be sent: got %v, want wire.ErrFrame", err)
	}
	if err := b.SendFrame("peer-c", full); !errors.Is(err, ErrClosed) {
		t.Errorf("frame to nobody: got %v, want ErrClosed", err)
	}
}

func TestLongMessages(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, b := n.pair()
	for _, size := range []int{16000, 16300, 70000, 1 << 20, pack.MaxMessage - 100} {
		text := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		for _, way := range [][2]*node{{a, b}, {b, a}} {
			way[0].send(way[1].ID(), map[string]any{"t": "long", "text": text})
			if m := want[Message](way[1]); m.Msg["text"] != text {
				t.Errorf("%d bytes: the text differs", size)
			}
		}
	}
	err := a.Send(b.ID(), map[string]any{"t": "long", "data": make([]byte, pack.MaxMessage)})
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
	if err := a.Send(b.ID(), map[string]any{"t": "x", "f": func() {}}); err == nil {
		t.Error("a function in a message: got no error")
	}
	a.send(b.ID(), map[string]any{"t": "after"})
	if m := want[Message](b); m.Msg["t"] != "after" {
		t.Errorf("got %v", m)
	}
}

func TestFrameLimit(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, b := n.pair()
	send := func(bytes int) {
		t.Helper()
		if err := a.SendFrame(b.ID(), &wire.Frame{Kind: wire.Hidden, N: 1, Data: make([]byte, bytes)}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(sizes ...int) {
		t.Helper()
		for _, s := range sizes {
			if f := want[FrameIn](b); len(f.Frame.Data) != s {
				t.Errorf("got %d bytes, want %d", len(f.Frame.Data), s)
			}
		}
	}
	b.SetFrameLimit("", 10000)
	send(10002)
	send(10000)
	expect(10000)
	b.SetFrameLimit(a.ID(), 20000)
	send(20000)
	expect(20000)
	b.SetFrameLimit("", 100) // a has a limit of its own
	send(20002)
	send(8)
	expect(8)
}

func TestRTT(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, b := n.pair(func(_ *Config, t *tuning) { t.ping = 30 * time.Millisecond })
	for range 3 {
		for {
			r, ok := a.next().(RTT)
			if !ok {
				continue
			}
			if r.Peer != b.ID() || r.D <= 0 || r.D > 5*time.Second || r.Path != "direct" {
				t.Errorf("got %+v", r)
			}
			break
		}
	}
}

func TestHangSendsWhatIsQueued(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, b := n.pair()
	for i := range 200 {
		a.send(b.ID(), map[string]any{"t": "n", "i": i, "text": strings.Repeat("x", 1000)})
	}
	a.Hang(b.ID(), "enough")
	if d := want[LinkDown](a); d != (LinkDown{Peer: b.ID(), Why: "enough"}) {
		t.Errorf("got %+v", d)
	}
	for i := range 200 {
		if m := want[Message](b); m.Msg["i"] != int64(i) {
			t.Fatalf("got %v, want message %d", m, i)
		}
	}
	if d := want[LinkDown](b); d.Leaving {
		t.Errorf("got %+v", d)
	}
	n.link(b, a) // and the way back is open
}

// TestOverflow: a peer that takes nothing costs its link, not memory without end, and nobody waits for it.
func TestOverflow(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	h := newHole(t)
	a, b := n.join("peer-a"), n.join("peer-b", h.use)
	n.link(a, b)
	h.off.Store(true)
	f := frameOf(1, 64, 4096)
	var err error
	sent := 0
	for ; err == nil && sent < 200<<20; sent += len(f.Data) {
		begin := time.Now()
		err = a.SendFrame(b.ID(), f)
		if took := time.Since(begin); took > 2*time.Second {
			t.Fatalf("a send took %v", took)
		}
	}
	if !errors.Is(err, errOverflow) || sent < queueBudget || sent > queueBudget+8<<20 {
		t.Errorf("got %v after %d bytes, want an overflow after about %d", err, sent, queueBudget)
	}
	if d := want[LinkDown](a); !strings.Contains(d.Why, errOverflow.Error()) {
		t.Errorf("got %+v", d)
	}
}
