package sessiontest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pooled/compute/op"
	"pooled/netmesh"
	"pooled/netmesh/wire"
	"pooled/session"
)

// part loads layers lo..hi-1.
func part(t *testing.T, lo, hi int) *Engine {
	t.Helper()
	e := &Engine{}
	spec := session.LoadSpec{ModelKey: Key, Lo: lo, Hi: hi, Head: lo == 0, Ctx: CtxDefault, KV: op.KVF16}
	if err := e.Load(t.Context(), spec, func(int) {}); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestTheModelTellsMistakesApart(t *testing.T) {
	tokens := []int32{10, 20, 30, 40}
	// run feeds tokens one by one through the parts in order, and returns the last hidden state.
	run := func(positions []int, parts ...*Engine) []float32 {
		var h []float32
		for i, id := range tokens {
			var err error
			if h, err = parts[0].Embed(t.Context(), positions[i], []int32{id}); err != nil {
				t.Fatal(err)
			}
			h = slices.Clone(h)
			for _, e := range parts[1:] {
				if h, err = e.Hidden(t.Context(), positions[i], 1, h); err != nil {
					t.Fatal(err)
				}
			}
		}
		return h
	}
	order := []int{0, 1, 2, 3}
	want := run(order, part(t, 0, Layers))
	if all, err := part(t, 0, Layers).Embed(t.Context(), 0, tokens); err != nil || !slices.Equal(all[3*Width:], want) {
		t.Errorf("four at once: %v (%v), one by one: %v", all[3*Width:], err, want)
	}
	for _, c := range []struct {
		name string
		got  []float32
		same bool
	}{
		{"split in three", run(order, part(t, 0, 3), part(t, 3, 4), part(t, 4, Layers)), true},
		{"a layer left out", run(order, part(t, 0, 3), part(t, 4, Layers)), false},
		{"a layer twice", run(order, part(t, 0, 4), part(t, 3, Layers)), false},
		{"parts in the wrong order", run(order, part(t, 0, 3), part(t, 7, Layers), part(t, 3, 7)), false},
		{"a position left out", run([]int{0, 1, 3, 4}, part(t, 0, Layers)), false},
		{"positions swapped", run([]int{0, 2, 1, 3}, part(t, 0, Layers)), false},
	} {
		if slices.Equal(c.got, want) != c.same {
			t.Errorf("%s: the same %v, want %v", c.name, !c.same, c.same)
		}
	}
}

// verdict is a testing.TB that remembers a failure instead of failing.
type verdict struct {
	testing.TB
	failed bool
}

func (v *verdict) Helper() {}
func (v *verdict) Fatalf(string, ...any) {
	v.failed = true
	panic(v)
}

// fails runs an expectation.
func fails(t *testing.T, expect func(testing.TB)) (failed bool) {
	t.Helper()
	v := &verdict{TB: t}
	defer func() {
		if r := recover(); r != nil && r != any(v) {
			panic(r)
		}
		failed = v.failed
	}()
	expect(v)
	return v.failed
}

func TestExpectations(t *testing.T) {
	got := []session.Envelope{{Seq: 1, Event: session.RoomOnline{Epoch: 1}}, {Seq: 2, Event: session.Notice{Text: "x"}},
		{Seq: 3, Event: session.RoomClosed{}}}
	online, notice, closed := Is[session.RoomOnline](), Is[session.Notice](), Is[session.RoomClosed]()
	other := Is(func(n session.Notice) bool { return n.Text == "y" })
	for _, c := range []struct {
		name   string
		expect func(testing.TB)
		fails  bool
	}{
		{"in order", func(t testing.TB) { InOrder(t, got, online, closed) }, false},
		{"out of order", func(t testing.TB) { InOrder(t, got, closed, online) }, true},
		{"twice what came once", func(t testing.TB) { InOrder(t, got, online, online) }, true},
		{"another text", func(t testing.TB) { InOrder(t, got, other) }, true},
		{"exactly", func(t testing.TB) { Exactly(t, got, online, notice, closed) }, false},
		{"exactly, one too few", func(t testing.TB) { Exactly(t, got, online, notice) }, true},
		{"exactly, one too many", func(t testing.TB) { Exactly(t, got, online, notice, closed, closed) }, true},
		{"none", func(t testing.TB) { None(t, got, other) }, false},
		{"none, but there is", func(t testing.TB) { None(t, got, notice) }, true},
	} {
		if got := fails(t, c.expect); got != c.fails {
			t.Errorf("%s: fails %v, want %v", c.name, got, c.fails)
		}
	}
	if n := Count(got, notice); n != 1 {
		t.Errorf("counted %d", n)
	}
}

func TestNetDeliversInOrderAndAsTheWireDoes(t *testing.T) {
	n := NewNet()
	a, b := NewPeer(n, "a"), NewPeer(n, "b")
	a.Dial("nobody")
	a.Dial("b")
	a.Dial("b")
	if err := a.Send("b", map[string]any{"t": "x", "n": 3, "f": 2.0, "g": 2.5, "l": []any{1, nil, true}}); err != nil {
		t.Fatal(err)
	}
	f := &wire.Frame{N: 1, Data: []byte{1, 2}}
	if err := a.SendFrame("b", f); err != nil {
		t.Fatal(err)
	}
	f.Data[0] = 9
	n.Tap(func(_, _ session.PeerID, v any) bool { _, frame := v.(*wire.Frame); return !frame })
	if err := a.SendFrame("b", f); err != nil {
		t.Fatal(err)
	}
	a.Hang("b", "enough")
	if err := a.Send("b", nil); !errors.Is(err, netmesh.ErrClosed) {
		t.Errorf("after hanging up: %v", err)
	}
	want := fmt.Sprint([]netmesh.Event{netmesh.SignalUp{Server: "test:9000"}, netmesh.LinkUp{Peer: "a"},
		netmesh.Message{Peer: "a", Msg: map[string]any{"t": "x", "n": int64(3), "f": int64(2), "g": 2.5, "l": []any{int64(1), nil, true}}},
		netmesh.FrameIn{Peer: "a", Frame: wire.Frame{N: 1, Data: []byte{1, 2}}}, netmesh.LinkDown{Peer: "a", Why: "enough"}})
	if got := fmt.Sprint(b.Heard()); got != want {
		t.Errorf("b heard\n%s, want\n%s", got, want)
	}
	want = fmt.Sprint([]netmesh.Event{netmesh.SignalUp{Server: "test:9000"}, netmesh.DialFailed{Peer: "nobody", Err: netmesh.ErrNoPeer},
		netmesh.LinkUp{Peer: "b", Dialed: true}, netmesh.LinkDown{Peer: "b", Why: "enough"}})
	if got := fmt.Sprint(a.Heard()); got != want {
		t.Errorf("a heard\n%s, want\n%s", got, want)
	}
}
