package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pooled/netmesh"
	"pooled/netmesh/wire"
	"pooled/session"
	"pooled/session/sessiontest"
)

func TestOtherProtocolVersions(t *testing.T) {
	for _, c := range []struct {
		name     string
		v        any
		saw, do  string // of a joiner whose host has this version
		refusal  string // of a host whose joiner has this version
		byeWords string
	}{
		{"older", 3, "the host speaks room protocol 3, this device 4", "ask the host to update or reload",
			"it speaks room protocol 3, this device 4", "the host speaks room protocol 4, this device 3"},
		{"newer", 5, "the host speaks room protocol 5, this device 4", "update this program",
			"it speaks room protocol 5, this device 4", "the host speaks room protocol 4, this device 5"},
		{"none", nil, "the host speaks room protocol 1, this device 4", "ask the host to update or reload",
			"it speaks room protocol 1, this device 4", "the host speaks room protocol 4, this device 1"},
		{"not a number", "4", "the host speaks room protocol ?, this device 4", "ask the host to update or reload",
			"it speaks room protocol ?, this device 4", "the host speaks room protocol 4, this device ?"},
	} {
		hello := map[string]any{"t": "hello", "name": "other", "v": c.v, "meta": map[string]any{"webgpu": true}}
		t.Run(c.name+" joiner", func(t *testing.T) {
			bubble(t, func(p *party) {
				h := p.host(5)
				peer := sessiontest.NewPeer(p.net, "stranger")
				peer.Dial(hostID)
				p.must(peer.Send(hostID, hello))
				got := h.rec.Wait(sessiontest.Is[session.PeerRefused]()).(session.PeerRefused)
				if got.Why != c.refusal {
					t.Errorf("refused with %q, want %q", got.Why, c.refusal)
				}
				synctest.Wait()
				byes := peer.Messages("bye")
				if len(byes) != 1 || byes[0]["reason"] != c.byeWords {
					t.Errorf("the joiner heard %v, want %q", byes, c.byeWords)
				}
				if n := len(h.Snapshot().Peers); n != 1 {
					t.Errorf("%d devices in the room", n)
				}
			})
		})
		t.Run(c.name+" host", func(t *testing.T) {
			bubble(t, func(p *party) {
				host := sessiontest.NewPeer(p.net, hostID)
				w := p.enter("linux-abc", session.Options{Role: session.Worker, PledgeBytes: gb}, &sessiontest.Engine{})
				synctest.Wait()
				p.must(host.Send("linux-abc", hello))
				<-w.ended
				problem(t, w.err, "version", session.ExitFailed, c.saw, c.do)
			})
		})
	}
}

// problem checks why a room ended.
func problem(t *testing.T, err error, code string, exit int, why, do string) {
	t.Helper()
	var p *session.Problem
	if !errors.As(err, &p) {
		t.Errorf("ended with %v, want a problem %q", err, code)
		return
	}
	if p.Code != code || p.Exit != exit || !strings.Contains(p.Why, why) || !strings.Contains(p.Do, do) || p.What == "" {
		t.Errorf("ended with %+v, want %s, exit %d, %q, %q", p, code, exit, why, do)
	}
}

func TestHowAJoinEnds(t *testing.T) {
	greet := func(p *party, host *sessiontest.Peer, api int) {
		synctest.Wait()
		meta := map[string]any{"ua": "Device", "webgpu": true}
		if api > 0 {
			meta["api"] = api
		}
		p.must(host.Send("guest", map[string]any{"t": "hello", "v": 4, "name": "anna", "meta": meta}))
		synctest.Wait()
	}
	for _, c := range []struct {
		name string
		role session.Role
		do   func(p *party, host *sessiontest.Peer)
		code string // "" for a wanted end
		exit int
		why  string
	}{
		{"no such room", session.Worker, nil, "no-room", session.ExitNoRoom, "nobody answers"},
		{"a host that never greets", session.Worker, func(*party, *sessiontest.Peer) {}, "no-answer", session.ExitNoRoom,
			"no greeting"},
		{"the same, asking", session.Asker, func(*party, *sessiontest.Peer) {}, "no-answer", session.ExitNoRoom, "no greeting"},
		{"turned away before the greeting", session.Worker, func(p *party, host *sessiontest.Peer) {
			synctest.Wait()
			p.must(host.Send("guest", map[string]any{"t": "bye", "reason": "not today\x1b[31m"}))
		}, "refused", session.ExitNotLetIn, "not today[31m"},
		{"a bye with versions", session.Worker, func(p *party, host *sessiontest.Peer) {
			synctest.Wait()
			p.must(host.Send("guest", map[string]any{"t": "bye", "reason": "the host speaks room protocol 6, this device 4"}))
		}, "version", session.ExitFailed, "the host speaks room protocol 6, this device 4"},
		{"the host closed the room", session.Worker, func(p *party, host *sessiontest.Peer) {
			greet(p, host, 0)
			p.must(host.Send("guest", map[string]any{"t": "bye", "reason": "over", "closed": 1}))
		}, "", 0, ""},
		{"the host vanished", session.Worker, func(p *party, host *sessiontest.Peer) {
			greet(p, host, 0)
			p.net.Kill(hostID)
		}, "host-gone", session.ExitNoRoom, "no sign of life"},
		{"the host vanished, asking", session.Asker, func(p *party, host *sessiontest.Peer) {
			greet(p, host, 1)
			p.net.Kill(hostID)
		}, "host-gone", session.ExitNoRoom, "no sign of life"},
		{"the host left", session.Worker, func(p *party, host *sessiontest.Peer) {
			greet(p, host, 0)
			p.must(host.Close(context.Background()))
		}, "host-gone", session.ExitNoRoom, "the host left"},
		{"a host from before API clients", session.Asker, func(p *party, host *sessiontest.Peer) { greet(p, host, 0) },
			"host-old", session.ExitFailed, "before"},
		{"no model in time", session.Asker, func(p *party, host *sessiontest.Peer) { greet(p, host, 1) },
			"no-model", session.ExitFailed, "waited 2m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				var host *sessiontest.Peer
				if c.do != nil {
					host = sessiontest.NewPeer(p.net, hostID)
				}
				o := session.Options{Role: c.role, Temp: -1, WaitModel: 2 * time.Minute}
				var e *sessiontest.Engine
				if c.role == session.Worker {
					e = &sessiontest.Engine{}
				}
				g := p.enter("guest", o, e)
				if c.do != nil {
					c.do(p, host)
				}
				<-g.ended
				seen := g.rec.All()
				last, ok := seen[len(seen)-1].Event.(session.RoomClosed)
				if !ok {
					t.Fatalf("last event %+v", seen[len(seen)-1])
				}
				if c.code == "" {
					if g.err != nil || last.Problem != nil {
						t.Errorf("ended with %v, %v", g.err, last.Problem)
					}
					return
				}
				problem(t, g.err, c.code, c.exit, c.why, "")
				if last.Problem == nil || g.Snapshot().Problem != last.Problem {
					t.Error("the last event and the last state don't agree on the problem")
				}
			})
		})
	}
}

func TestNamesAreUniqueAndClean(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		for _, c := range []struct{ id, name, want string }{
			{"p1", "otter", "otter"}, {"p2", "otter", "otter 2"}, {"p3", "anna", "anna 2"},
			{"peer-without-name", "\x1b\x07", "peer-wit"}, {"p5", "<b>\u202ebo\nb</b>", "b\u202ebob/b"},
		} {
			peer := sessiontest.NewPeer(p.net, session.PeerID(c.id))
			peer.Dial(hostID)
			p.must(peer.Hello(hostID, c.name, 1))
			got := h.rec.Wait(sessiontest.Is[session.PeerJoined]()).(session.PeerJoined)
			if got.Name != c.want {
				t.Errorf("%q joined as %q, want %q", c.name, got.Name, c.want)
			}
		}
		// A device takes the name that it is listed under.
		w := p.enter("late", session.Options{Role: session.Worker, Name: "otter"}, &sessiontest.Engine{})
		synctest.Wait()
		if got := w.Snapshot().SelfName; got != "otter 3" {
			t.Errorf("the device calls itself %q", got)
		}
	})
}

func TestLinksWithoutHelloAreHungUpOn(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		mute := sessiontest.NewPeer(p.net, "mute")
		mute.Dial(hostID)
		got := h.rec.Wait(sessiontest.Is[session.PeerRefused]()).(session.PeerRefused)
		if got.Peer != "mute" || !strings.Contains(got.Why, "hello") {
			t.Errorf("got %+v", got)
		}
		synctest.Wait()
		if heard := mute.Heard(); len(heard) == 0 {
			t.Error("nothing was said to it")
		} else if _, down := heard[len(heard)-1].(netmesh.LinkDown); !down {
			t.Errorf("the link is still up: %+v", heard)
		}
	})
}

func TestHostileMessagesChangeNothing(t *testing.T) {
	giant := strings.Repeat("A", 1<<20)
	deep := any("x")
	for range 100 {
		deep = []any{deep}
	}
	load := map[string]any{"t": "ai-load", "v": 4, "model": sessiontest.Key, "range": []any{0, 3}, "ctx": 512, "kv": "f16",
		"next": "host", "host": "mallory"}
	for _, c := range []struct {
		name string
		at   session.PeerID
		msg  map[string]any
	}{
		{"no type", hostID, map[string]any{"x": 1}},
		{"type of another type", hostID, map[string]any{"t": 7}},
		{"unknown type", hostID, map[string]any{"t": "ai-selfdestruct"}},
		{"giant type", hostID, map[string]any{"t": giant}},
		{"a load order to the host", hostID, load},
		{"a roster to the host", hostID, map[string]any{"t": "roster", "members": []any{}}},
		{"ready, not in the chain", hostID, map[string]any{"t": "ai-ready"}},
		{"error, not in the chain", hostID, map[string]any{"t": "ai-error", "message": giant, "load": 1}},
		{"progress of nonsense", hostID, map[string]any{"t": "ai-progress", "pct": 1e300}},
		{"pledge as a map", hostID, map[string]any{"t": "pledge", "gb": map[string]any{}}},
		{"negative pledge", hostID, map[string]any{"t": "pledge", "gb": -5}},
		{"hello with lists", hostID, map[string]any{"t": "hello", "v": 4, "name": []any{1}, "meta": []any{giant}}},
		{"hello with deep meta", hostID, map[string]any{"t": "hello", "v": 4, "name": giant, "meta": map[string]any{"gpu": deep}}},
		{"empty question", hostID, map[string]any{"t": "ai-ask", "text": "  "}},
		{"API question from a device", hostID, map[string]any{"t": "ai-ask", "api": 1, "rid": "r", "messages": []any{}}},
		{"stop of nobody's answer", hostID, map[string]any{"t": "ai-stop", "rid": giant}},
		{"a load order not from the host", "linux-abc", load},
		{"layers not from the host", "linux-abc", map[string]any{"t": "ai-layers", "by": map[string]any{"mallory": "0\u201311"}}},
		{"a failed start not from the host", "linux-abc", map[string]any{"t": "ai-start-failed", "why": "ha"}},
		{"degraded not from the host", "linux-abc", map[string]any{"t": "ai-degraded", "why": "ha"}},
		{"closed not by the host", "linux-abc", map[string]any{"t": "bye", "closed": 1}},
		{"text of an answer not from the host", "linux-abc", map[string]any{"t": "ai-genstart", "text": giant, "mid": 9}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				h := p.host(5)
				w := p.worker("linux-abc", 7)
				p.start(h)
				mallory := sessiontest.NewPeer(p.net, "mallory")
				for _, to := range []session.PeerID{hostID, w.id} {
					mallory.Dial(to)
					p.must(mallory.Hello(to, "mallory", 1))
				}
				synctest.Wait()
				before := [2]*session.State{h.Snapshot(), w.Snapshot()}
				p.must(mallory.Send(c.at, c.msg))
				synctest.Wait()
				after := [2]*session.State{h.Snapshot(), w.Snapshot()}
				for i := range before {
					if a, b := essence(before[i]), essence(after[i]); a != b {
						t.Errorf("before:\n%s\nafter:\n%s", a, b)
					}
				}
				if text, end := p.ask(h, question); end.Reason == session.DoneFailed {
					t.Errorf("the next answer: %q, %+v", text, end)
				}
			})
		})
	}
}

// essence is what a hostile message must not change.
func essence(s *session.State) string {
	return fmt.Sprint(s.Phase, s.Model, s.Deal, s.Deal.Shares, s.Answering, len(s.Chat), s.LoadPct, s.SelfName, s.HostName)
}

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
