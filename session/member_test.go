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
