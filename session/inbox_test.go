package session

import (
	"context"
	"strings"
	"testing"
	"time"

	"pooled/compute/token"
	"pooled/netmesh"
	"pooled/netmesh/wire"
)

func toyTokenizer(t *testing.T) *token.Tokenizer {
	t.Helper()
	v := token.Vocab{Pre: "qwen2", EOS: 257, Pad: -1, BOS: -1}
	next := rune(256)
	for b := range rune(256) {
		r := b
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			r, next = next, next+1
		}
		v.Tokens, v.Types = append(v.Tokens, string(r)), append(v.Types, 1)
	}
	v.Tokens, v.Types = append(v.Tokens, "<|im_start|>", "<|im_end|>"), append(v.Types, 3, 3)
	tok, err := token.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestInboxBoundsEachPeer(t *testing.T) {
	for _, c := range []struct {
		name  string
		event func() netmesh.Event
		fits  int
	}{
		{"many messages", func() netmesh.Event { return netmesh.Message{Peer: "p", Msg: map[string]any{"t": "x"}} }, peerItems},
		{"large messages", func() netmesh.Event {
			return netmesh.Message{Peer: "p", Msg: map[string]any{"t": strings.Repeat("x", 1<<20)}}
		}, 31},
		{"large frames", func() netmesh.Event {
			return netmesh.FrameIn{Peer: "p", Frame: wire.Frame{Data: make([]byte, 4<<20)}}
		}, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newInbox()
			b.deliver(netmesh.Message{Peer: "q", Msg: map[string]any{"t": "y"}})
			for range c.fits {
				b.deliver(c.event())
			}
			if n := len(b.items); n != c.fits+1 {
				t.Fatalf("%d items wait, want %d", n, c.fits+1)
			}
			for range 3 {
				b.deliver(c.event())
			}
			b.put(alarm{"z"})
			var got []any
			for {
				it, ok := b.take()
				if !ok {
					break
				}
				got = append(got, it)
			}
			if len(got) != 3 || got[1] != (flooded{"p"}) || got[2] != (alarm{"z"}) {
				t.Fatalf("got %v, want the other peer's message, one word of the flood, and the alarm", got)
			}
			b.deliver(c.event())
			if _, ok := b.take(); ok {
				t.Error("the peer is heard again without a new link")
			}
			b.deliver(netmesh.LinkDown{Peer: "p"})
			b.deliver(netmesh.LinkUp{Peer: "p"})
			b.deliver(c.event())
			if n := len(b.items); n != 3 {
				t.Errorf("after a new link %d items wait, want 3", n)
			}
		})
	}
}

func TestInboxForgetsWhatWasTaken(t *testing.T) {
	b := newInbox()
	for range 10 * peerItems {
		b.deliver(netmesh.Message{Peer: "p", Msg: map[string]any{"t": "x"}})
		if it, ok := b.take(); !ok || it == (flooded{"p"}) {
			t.Fatalf("got %v, %v", it, ok)
		}
	}
	if len(b.load) != 0 {
		t.Errorf("accounts of %d peers are kept", len(b.load))
	}
	b.close()
	b.put(alarm{"z"})
	if _, ok := b.take(); ok {
		t.Error("the closed inbox took something")
	}
}

func TestFloodedPeerIsHungUpOn(t *testing.T) {
	s := onlineHost(t)
	s.expect("flooded", flooded{"w"}, "hang w", "peer.refused", "notice")
	s.expect("flooded, already gone", flooded{"nobody"})
}

func TestEngineLoopCancels(t *testing.T) {
	results := make(chan result, 8)
	l := newEngineLoop(stuckEngine{}, func(v any) {
		if r, ok := v.(result); ok {
			results <- r
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	done := make(chan struct{})
	go func() { l.run(ctx); close(done) }()
	l.add(start{1, loadWork{}})
	l.add(start{2, loadWork{}})
	l.add(start{3, freeWork{}})
	l.abort(2)
	l.abort(1)
	for _, want := range []uint64{1, 2} {
		if r := <-results; r.id != want || r.err == nil {
			t.Errorf("got %+v, want job %d cancelled", r, want)
		}
	}
	if r := <-results; r.id != 3 || r.err != nil {
		t.Errorf("got %+v", r)
	}
	l.abort(99)
	cancel()
	<-done
	if len(l.aborted) != 0 {
		t.Errorf("%d cancelled jobs are remembered", len(l.aborted))
	}
}

// stuckEngine loads until it is cancelled.
type stuckEngine struct{ Engine }

func (stuckEngine) Model(ctx context.Context, _ string) (ModelInfo, error) {
	return ModelInfo{}, ctx.Err()
}
func (stuckEngine) Load(ctx context.Context, _ LoadSpec, _ func(int)) error {
	<-ctx.Done()
	return ctx.Err()
}
func (stuckEngine) Free() {}
