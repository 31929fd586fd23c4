package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pooled/netmesh"
	"pooled/netmesh/wire"
	"pooled/session"
	"pooled/session/sessiontest"
)

func TestFramesFromTheWrongDeviceAreIgnored(t *testing.T) {
	want := alone(t)[0]
	bubble(t, func(p *party) {
		h := p.host(4)
		a, b := p.worker("worker-a", 4), p.worker("worker-b", 4)
		mallory := sessiontest.NewPeer(p.net, "zz-mallory")
		for _, to := range []session.PeerID{hostID, a.id, b.id} {
			mallory.Dial(to)
			p.must(mallory.Hello(to, "mallory", 0.01))
		}
		p.start(h)
		h.engine.Hook(slow(time.Millisecond))
		p.must(h.Ask(question))
		h.rec.Wait(sessiontest.Is[text]())
		for pos := range uint32(120) {
			data := make([]byte, 2*sessiontest.Width)
			for _, to := range []session.PeerID{hostID, a.id, b.id} {
				for kind := range wire.Kind(4) {
					p.must(mallory.SendFrame(to, &wire.Frame{Kind: kind, Pos: pos, N: 1, Data: data}))
				}
			}
			// The first device of the chain may send frames, but not to the host.
			p.must(netSend(p, a.id, hostID, &wire.Frame{Kind: wire.HiddenRet, Pos: pos, N: 1, Data: data}))
		}
		if got, end := p.answer(h); got != want {
			t.Errorf("got %q, want %q (%+v)", got, want, end)
		}
	})
}

// netSend sends a frame in a device's name.
func netSend(p *party, from, to session.PeerID, f *wire.Frame) error {
	p.t.Helper()
	for _, g := range p.guests {
		if g.id == from {
			return g.mesh.SendFrame(to, f)
		}
	}
	return netmesh.ErrNoPeer
}

func TestBadFramesFromTheDeviceBeforeAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		frame wire.Frame
		want  string
	}{
		{"too short", wire.Frame{Kind: wire.Hidden, N: 1, Data: make([]byte, 3)}, "a frame of 3 bytes for 1 positions of 8 values"},
		{"empty", wire.Frame{Kind: wire.HiddenB, N: 4}, "a frame of 0 bytes for 4 positions of 8 values"},
		{"two columns as one", wire.Frame{Kind: wire.Hidden, N: 2, Data: make([]byte, 32)}, "a frame of 32 bytes for 2 positions of 8 values"},
		{"past the context", wire.Frame{Kind: wire.HiddenB, N: 600, Data: make([]byte, 9600)}, "a frame at position 0, the caches hold 0 of 512"},
		{"far ahead", wire.Frame{Kind: wire.Hidden, Pos: 1 << 31, N: 1, Data: make([]byte, 16)}, "a frame at position 2147483648, the caches hold 0 of 512"},
		{"a checkpoint", wire.Frame{Kind: wire.Hidden, N: 1, Load: 3, Data: make([]byte, 16)}, "this device keeps no checkpoints"},
		{"NaN", wire.Frame{Kind: wire.Hidden, N: 1, Data: append([]byte{1, 0x7e}, make([]byte, 14)...)},
			"NaN or infinity in a result: a hidden state from another device"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				host := sessiontest.NewPeer(p.net, hostID)
				w := orderedWorker(p, host, 4)
				p.must(host.SendFrame(w.id, &c.frame))
				synctest.Wait()
				errs := host.Messages("ai-error")
				if len(errs) != 1 || errs[0]["message"] != c.want || errs[0]["load"] != nil {
					t.Errorf("the host heard %v, want %q", errs, c.want)
				}
				p.must(host.SendFrame(w.id, &wire.Frame{Kind: wire.Hidden, Reset: true, N: 1, Data: make([]byte, 16)}))
				synctest.Wait()
				if n := len(host.Messages("ai-error")); n != 1 || w.Snapshot().Passes != 1 {
					t.Errorf("a good frame after it: %d errors, %d passes", n, w.Snapshot().Passes)
				}
			})
		})
	}
}

// orderedWorker is a worker that holds layers 5-8 for a host the test plays.
func orderedWorker(p *party, host *sessiontest.Peer, layers int) *guest {
	w := p.enter("linux-abc", session.Options{Role: session.Worker, PledgeBytes: pledge(layers)}, &sessiontest.Engine{})
	synctest.Wait()
	p.must(host.Hello(w.id, "anna", 4))
	p.must(host.Send(w.id, map[string]any{"t": "roster", "members": []any{
		map[string]any{"id": string(hostID), "name": "anna"}, map[string]any{"id": string(w.id), "name": "linux-abc"}}}))
	p.must(host.Send(w.id, order(nil)))
	p.must(host.Send(w.id, map[string]any{"t": "ai-layers", "by": map[string]any{"anna": "0\u20134", "linux-abc": "5\u20138"}}))
	synctest.Wait()
	return w
}

// order is an ai-load for layers 5-8, changed.
func order(change map[string]any) map[string]any {
	m := map[string]any{"t": "ai-load", "v": 4, "model": sessiontest.Key, "range": []any{5, 9}, "ctx": 512, "kv": "f16",
		"next": "host", "host": string(hostID)}
	for k, v := range change {
		m[k] = v
	}
	return m
}

func TestOrdersToLoad(t *testing.T) {
	for _, c := range []struct {
		name   string
		change map[string]any
		want   string // the error, "" for ready
		load   bool   // it ends the start
	}{
		{"fine", nil, "", false},
		{"another version", map[string]any{"v": 5}, "this device speaks room protocol 4, the order is of 5", false},
		{"unknown model", map[string]any{"model": "gpt-9"}, `gpt-9: no model "gpt-9"`, true},
		{"more than the pledge", map[string]any{"range": []any{5, 10}}, "asked to hold 0.5 GB, this device lends 0.4", true},
		{"past the model", map[string]any{"range": []any{10, 13}}, "asked for layers 10-12 of toy, it has 12", true},
		{"context too large", map[string]any{"ctx": 4096, "range": []any{5, 6}}, "asked for a context of 4096, toy takes 2048 at most", true},
		{"experts", map[string]any{"offload": map[string]any{"lo": 5}}, "this device lends no memory for experts", true},
		{"range backwards", map[string]any{"range": []any{9, 5}}, "the order to load makes no sense", true},
		{"range of text", map[string]any{"range": "5-9"}, "the order to load makes no sense", true},
		{"context of nothing", map[string]any{"ctx": 0}, "the order to load makes no sense", true},
		{"next with spaces", map[string]any{"next": "a b"}, "the order to load makes no sense", true},
		{"next that isn't there", map[string]any{"next": "ghost"}, "could not connect to the next device in the chain", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				host := sessiontest.NewPeer(p.net, hostID)
				w := p.enter("linux-abc", session.Options{Role: session.Worker, PledgeBytes: pledge(4)}, &sessiontest.Engine{})
				synctest.Wait()
				p.must(host.Hello(w.id, "anna", 4))
				p.must(host.Send(w.id, order(c.change)))
				time.Sleep(2 * time.Minute)
				ready, errs := host.Messages("ai-ready"), host.Messages("ai-error")
				if c.want == "" {
					if len(ready) != 1 || len(errs) != 0 || w.engine.Loads() != 1 {
						t.Errorf("ready %v, errors %v, %d loads", ready, errs, w.engine.Loads())
					}
					return
				}
				if len(errs) != 1 || errs[0]["message"] != c.want || (errs[0]["load"] != nil) != c.load || len(ready) != 0 {
					t.Errorf("errors %v, ready %v, want %q", errs, ready, c.want)
				}
				if _, held := w.engine.Holds(); held {
					t.Error("it holds layers all the same")
				}
			})
		})
	}
}

func TestTheSameOrderAgainKeepsTheLayers(t *testing.T) {
	bubble(t, func(p *party) {
		host := sessiontest.NewPeer(p.net, hostID)
		w := orderedWorker(p, host, 4)
		p.must(host.Send(w.id, order(nil)))
		synctest.Wait()
		if n := len(host.Messages("ai-ready")); n != 2 || w.engine.Loads() != 1 {
			t.Errorf("%d times ready, %d loads", n, w.engine.Loads())
		}
		p.must(host.Send(w.id, order(map[string]any{"ctx": 256})))
		synctest.Wait()
		if n := len(host.Messages("ai-ready")); n != 3 || w.engine.Loads() != 2 {
			t.Errorf("another context: %d times ready, %d loads", n, w.engine.Loads())
		}
		p.must(host.Send(w.id, map[string]any{"t": "ai-start-failed", "why": "enough"}))
		synctest.Wait()
		if _, held := w.engine.Holds(); held || w.Snapshot().Phase != session.Waiting {
			t.Errorf("after the failed start: holds %v, %s", held, w.Snapshot().Phase)
		}
	})
}
