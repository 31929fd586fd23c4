package session_test

import (
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

// played links a device of the test to a host and greets it.
func (p *party) played(id session.PeerID, gb float64) *sessiontest.Peer {
	p.t.Helper()
	x := sessiontest.NewPeer(p.net, id)
	x.Dial(hostID)
	synctest.Wait()
	p.must(x.Hello(hostID, string(id), gb))
	synctest.Wait()
	return x
}

// count is how many events of a type a recorder saw.
func count[E session.Event](r *sessiontest.Recorder) int {
	n := 0
	for _, e := range r.Seen() {
		if _, is := e.Event.(E); is {
			n++
		}
	}
	return n
}

// lateHang makes hanging up take as long as it does on a network: what the peer sent meanwhile still comes.
type lateHang struct{ *sessiontest.Mesh }

// Hang closes the link a little later.
func (m lateHang) Hang(peer session.PeerID, why string) {
	go func() {
		time.Sleep(100 * time.Millisecond)
		m.Mesh.Hang(peer, why)
	}()
}

func TestPeerThatIsHungUpOnIsHeardNoMore(t *testing.T) {
	cases := []struct {
		name string
		msg  map[string]any
	}{
		{"another protocol", map[string]any{"t": "hello", "v": 3}},
		{"bye", map[string]any{"t": "bye", "reason": "no"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				p.late = true
				h := p.host(20)
				x := sessiontest.NewPeer(p.net, "x")
				x.Dial(hostID)
				for range 500 {
					p.must(x.Send(hostID, c.msg))
				}
				p.must(x.Hello(hostID, "x", 1))
				synctest.Wait()
				if refused, notices := count[session.PeerRefused](h.rec), count[session.Notice](h.rec); refused > 1 || notices > 1 {
					t.Errorf("%d refusals and %d lines, want one", refused, notices)
				}
				if n := len(x.Messages("bye")); n > 1 {
					t.Errorf("%d answers, want one", n)
				}
				if n := count[session.PeerJoined](h.rec); n != 0 {
					t.Error("it joined afterwards")
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if n := len(heard[netmesh.LinkDown](x)); n != 1 {
					t.Errorf("%d links closed, want one", n)
				}
			})
		})
	}
}

// heard returns what a played peer heard of one type.
func heard[E netmesh.Event](x *sessiontest.Peer) []E {
	var es []E
	for _, ev := range x.Heard() {
		if e, is := ev.(E); is {
			es = append(es, e)
		}
	}
	return es
}

func TestStrangerAtAWorkerIsHungUpOn(t *testing.T) {
	bubble(t, func(p *party) {
		p.host(20)
		w := p.worker("w", 5)
		member := p.played("m", 1)
		for _, x := range []*sessiontest.Peer{member, sessiontest.NewPeer(p.net, "x")} {
			x.Dial("w")
			p.must(x.Hello("w", "some name", 1))
			for range 20 {
				time.Sleep(time.Second)
				_ = x.Send("w", map[string]any{"t": "hello", "v": 4}) // saying it again doesn't help
			}
			synctest.Wait()
			downs := 0
			for _, d := range heard[netmesh.LinkDown](x) {
				if d.Peer == "w" {
					downs++
				}
			}
			if want := map[bool]int{true: 0, false: 1}[x == member]; downs != want {
				t.Errorf("%s: %d links closed, want %d", x.ID(), downs, want)
			}
		}
		if n := count[session.PeerRefused](w.rec); n != 1 {
			t.Errorf("%d refused, want the stranger", n)
		}
	})
}

func TestMembersCantMakeTheHostShout(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(2, func(o *session.Options) { o.AutoStart = true }) // a room that is short
		watcher, x := p.played("m", 0.1), p.played("x", 0.1)
		before, lines := len(watcher.Messages("roster")), count[session.Notice](h.rec)
		for i := range 1000 {
			p.must(x.Send(hostID, map[string]any{"t": "pledge", "gb": 0.1 + float64(i%2)/100}))
			p.must(x.Hello(hostID, fmt.Sprint("name ", i), 0.1))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		rosters := watcher.Messages("roster")
		if n := len(rosters) - before; n < 1 || n > 2 {
			t.Errorf("%d rosters for 2000 messages, want one or two", n)
		}
		if last := fmt.Sprint(rosters[len(rosters)-1]); !strings.Contains(last, "name 999") {
			t.Errorf("the last roster lacks the last change: %s", last)
		}
		if n := count[session.Notice](h.rec) - lines; n > 2 {
			t.Errorf("%d lines in the log, want two at most", n)
		}
	})
}

// playedHost registers the room's host as a device of the test. Guests that join find it.
func (p *party) playedHost() *sessiontest.Peer { return sessiontest.NewPeer(p.net, hostID) }

// joins lets a guest in at a played host.
func (p *party) joins(x *sessiontest.Peer, id session.PeerID, o session.Options, e *sessiontest.Engine) *guest {
	p.t.Helper()
	g := p.enter(id, o, e)
	synctest.Wait()
	p.must(x.Send(id, map[string]any{"t": "hello", "v": 4, "name": "anna", "meta": map[string]any{"api": 1, "webgpu": true}}))
	g.rec.Wait(sessiontest.Is[session.RoomOpened]())
	return g
}

func TestNamesOfADealAreClean(t *testing.T) {
	bubble(t, func(p *party) {
		x := p.playedHost()
		w := p.joins(x, "w", session.Options{Role: session.Worker, PledgeBytes: gb}, &sessiontest.Engine{})
		dirty := "a\x1b[2J\u009b31m<b>" + strings.Repeat("n", 100)
		p.must(x.Send("w", map[string]any{"t": "roster", "members": []any{map[string]any{"id": "m", "name": dirty}}}))
		p.must(x.Send("w", map[string]any{"t": "ai-layers", "by": map[string]any{dirty: "0\u20133"}}))
		d := w.rec.Wait(sessiontest.Is[session.DealMade]()).(session.DealMade)
		if len(d.Shares) != 1 || d.Shares[0].Peer != "m" || len(d.Shares[0].Name) != 40 ||
			strings.ContainsAny(d.Shares[0].Name, "\x1b\u009b<>") {
			t.Errorf("got %q", fmt.Sprint(d.Shares))
		}
	})
}

func TestAnswersWithoutEnd(t *testing.T) {
	text := strings.Repeat("x", 60<<10)
	for _, role := range []session.Role{session.Worker, session.Asker} {
		t.Run(string(role), func(t *testing.T) {
			bubble(t, func(p *party) {
				x := p.playedHost()
				var e *sessiontest.Engine
				if role == session.Worker {
					e = &sessiontest.Engine{}
				}
				g := p.joins(x, "g", session.Options{Role: role, PledgeBytes: gb}, e)
				p.must(x.Send("g", map[string]any{"t": "ai-ready-all", "model": "toy", "label": "Toy", "ctx": 512}))
				synctest.Wait()
				rid := ""
				if role == session.Asker {
					p.must(g.Ask(question))
					synctest.Wait()
					rid = x.Messages("ai-ask")[0]["rid"].(string)
				}
				p.must(x.Send("g", map[string]any{"t": "ai-genstart", "rid": rid, "name": "n", "text": "q", "mid": 1}))
				for range 200 {
					p.must(x.Send("g", map[string]any{"t": "ai-token", "rid": rid, "text": text}))
				}
				p.must(x.Send("g", map[string]any{"t": "ai-gendone", "rid": rid, "reason": "stop"}))
				done := g.rec.Wait(sessiontest.Is[session.AnswerDone]()).(session.AnswerDone)
				synctest.Wait()
				if done.Reason != session.DoneFailed || count[session.AnswerDone](g.rec) != 1 {
					t.Errorf("got %+v, %d ends", done, count[session.AnswerDone](g.rec))
				}
				if n := len(g.Snapshot().Chat[0].Text); n > 2<<20 {
					t.Errorf("%d bytes kept", n)
				}
			})
		})
	}
}

func TestFrameForLayersThatStillLoad(t *testing.T) {
	bubble(t, func(p *party) {
		x := p.playedHost()
		e := &sessiontest.Engine{}
		e.Hook(slow(time.Hour))
		w := p.joins(x, "w", session.Options{Role: session.Worker, PledgeBytes: pledge(6)}, e)
		frame := &wire.Frame{Kind: wire.Hidden, N: 1, Reset: true, Data: make([]byte, 2*sessiontest.Width)}
		p.must(x.SendFrame("w", frame)) // no deal: nothing is said
		p.must(x.Send("w", map[string]any{"t": "ai-load", "v": 4, "model": "toy", "range": []any{6, 12}, "ctx": 512,
			"kv": "f16", "next": "host", "host": string(hostID)}))
		p.must(x.SendFrame("w", frame)) // whose frame this is can't be told yet
		p.must(x.Send("w", map[string]any{"t": "ai-layers", "by": map[string]any{"anna": "0\u20135", "w": "6\u201311"}}))
		synctest.Wait()
		if n := len(x.Messages("ai-error")); n != 0 {
			t.Errorf("%d complaints before the deal was known", n)
		}
		p.must(x.SendFrame("w", frame))
		synctest.Wait()
		if ms := x.Messages("ai-error"); len(ms) != 1 || ms[0]["load"] != nil {
			t.Errorf("got %v, want a complaint that the layers still load", ms)
		}
		_ = w
	})
}

func TestDeviceThatGivesItsLayersUp(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		x := p.played("x", float64(pledge(7))/gb)
		p.must(h.Start())
		synctest.Wait()
		p.must(x.Send(hostID, map[string]any{"t": "ai-ready"}))
		h.rec.Wait(sessiontest.Is[session.RoomOnline]())
		p.must(h.Ask(question))
		h.rec.Wait(sessiontest.Is[session.AnswerStarted]())
		for range 3 {
			p.must(x.Send(hostID, map[string]any{"t": "ai-error", "load": 1, "message": "no memory"}))
		}
		began := time.Now()
		done := h.rec.Wait(sessiontest.Is[session.AnswerDone]()).(session.AnswerDone)
		synctest.Wait()
		if done.Reason != session.DoneFailed || time.Since(began) > time.Second {
			t.Errorf("got %+v after %v", done, time.Since(began))
		}
		if st := h.Snapshot(); st.Phase != session.Degraded || count[session.RoomDegraded](h.rec) != 1 {
			t.Errorf("phase %s, %d times degraded", st.Phase, count[session.RoomDegraded](h.rec))
		}
		p.must(h.Redeal()) // it may do better
		synctest.Wait()
		p.must(x.Send(hostID, map[string]any{"t": "ai-ready"}))
		h.rec.Wait(sessiontest.Is(func(e session.RoomOnline) bool { return e.Epoch == 2 }))
	})
}

// TestLateFramesOfAFailedAnswer: a slow chain gives frames of a failed answer back after the next one began, for a
// prompt that is as long. They must not be taken for its own.
func TestLateFramesOfAFailedAnswer(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		x := p.played("x", float64(pledge(7))/gb)
		p.must(h.Start())
		synctest.Wait()
		p.must(x.Send(hostID, map[string]any{"t": "ai-ready"}))
		h.rec.Wait(sessiontest.Is[session.RoomOnline]())
		back := func(frames []netmesh.FrameIn) {
			for _, in := range frames {
				f := in.Frame
				if f.Kind += 2; f.Kind > wire.HiddenRetB {
					t.Fatalf("the host sent a frame of kind %v", in.Frame.Kind)
				}
				p.must(x.SendFrame(hostID, &f))
				synctest.Wait()
			}
		}
		p.must(h.Ask("abc"))
		synctest.Wait()
		for range 2 { // twice the same way
			p.must(x.Send(hostID, map[string]any{"t": "ai-error", "message": "trouble"}))
			synctest.Wait()
			old := len(heard[netmesh.FrameIn](x))
			p.must(h.Ask("xyz"))
			time.Sleep(10 * time.Second) // longer than the host waits for them
			synctest.Wait()
			if n := len(heard[netmesh.FrameIn](x)); n <= old {
				t.Fatal("no frames of the next answer")
			}
		}
		sent := heard[netmesh.FrameIn](x)
		third := 0
		for i, in := range sent {
			if in.Frame.Reset {
				third = i // where the last answer's frames begin
			}
		}
		back(sent[:third])
		if n := count[session.AnswerText](h.rec); n != 0 {
			t.Fatalf("%d pieces of an answer came out of late frames", n)
		}
		if n := len(heard[netmesh.FrameIn](x)); n != len(sent) {
			t.Fatalf("the host sent %d more frames", n-len(sent))
		}
		for at := third; at < len(heard[netmesh.FrameIn](x)); {
			frames := heard[netmesh.FrameIn](x)[at:]
			at += len(frames)
			back(frames)
		}
		done := h.rec.Wait(sessiontest.Is(func(e session.AnswerDone) bool { return e.Reason != session.DoneFailed })).(session.AnswerDone)
		if done.Stats.Tokens == 0 {
			t.Errorf("got %+v out of its own frames", done)
		}
		if s, d := count[session.AnswerStarted](h.rec), count[session.AnswerDone](h.rec); s != 3 || d != 3 {
			t.Errorf("%d answers started, %d done", s, d)
		}
	})
}

func TestComplaintsWithoutEnd(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		x := p.played("x", float64(pledge(7))/gb)
		p.must(h.Start())
		synctest.Wait()
		p.must(x.Send(hostID, map[string]any{"t": "ai-ready"}))
		h.rec.Wait(sessiontest.Is[session.RoomOnline]())
		before := count[session.Notice](h.rec)
		for range 1000 {
			p.must(x.Send(hostID, map[string]any{"t": "ai-error", "message": "trouble"}))
		}
		synctest.Wait()
		if n := count[session.Notice](h.rec) - before; n < 1 || n > 20 {
			t.Errorf("%d lines for 1000 complaints", n)
		}
		time.Sleep(time.Minute)
		p.must(x.Send(hostID, map[string]any{"t": "ai-error", "message": "the last one"}))
		h.rec.Wait(sessiontest.Is(func(n session.Notice) bool { return strings.Contains(n.Text, "the last one") }))
	})
}
