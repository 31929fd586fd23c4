package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pooled/session"
	"pooled/session/sessiontest"
)

func TestStartingByItself(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   func(*session.Options)
		host  int
		after []int // pledges of those who join, in layers
		want  int   // devices in the room when it starts, the host included
	}{
		{"alone, as soon as it fits", func(o *session.Options) { o.AutoStart = true }, 12, nil, 1},
		{"as soon as the pledges hold it", func(o *session.Options) { o.AutoStart = true }, 4, []int{3, 3, 3}, 4},
		{"with two devices", func(o *session.Options) { o.StartWith = 2 }, 12, []int{4}, 2},
		{"with two devices that don't hold it", func(o *session.Options) { o.StartWith = 2 }, 4, []int{4, 4}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				h := p.host(c.host, c.set)
				synctest.Wait()
				for i, n := range c.after {
					if h.Snapshot().Deal != nil {
						t.Fatalf("it started with %d devices", len(h.Snapshot().Peers))
					}
					p.worker(session.PeerID("worker-"+string(rune('a'+i))), n)
					synctest.Wait()
				}
				if st := h.Snapshot(); st.Phase != session.Online || len(st.Peers) != c.want {
					t.Errorf("%s with %d devices, want %d", st.Phase, len(st.Peers), c.want)
				}
			})
		})
	}
}

func TestSpreadDealsOverEveryDevice(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(12, func(o *session.Options) { o.SplitEvery = true })
		p.worker("worker-a", 12)
		p.worker("worker-b", 12)
		p.start(h)
		if got := spans(h.Snapshot()); got != "0-3 4-7 8-11" {
			t.Errorf("dealt %s", got)
		}
	})
}

func TestShortRoomSaysByHowMuch(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(4, func(o *session.Options) { o.AutoStart = true })
		synctest.Wait()
		var problem *session.Problem
		if err := h.Start(); !errors.As(err, &problem) || problem.Code != "short" {
			t.Fatalf("got %v", err)
		}
		// 8 layers of 100.5 MiB are missing.
		if want := "this room is 0.8 GB short for Toy 1M"; problem.What != want {
			t.Errorf("got %q, want %q", problem.What, want)
		}
		if problem.Why == "" || problem.Do == "" {
			t.Errorf("got %+v", problem)
		}
		sessiontest.InOrder(p.t, h.rec.Seen(), sessiontest.Is(func(n session.Notice) bool {
			return n.Code == "short" && strings.Contains(n.Text, "0.8 GB short")
		}))
	})
}

func TestDealEventsAndStates(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		w := p.worker("linux-abc", 7)
		tiny := p.enter("tiny", session.Options{Role: session.Worker, PledgeBytes: 1 << 20}, &sessiontest.Engine{})
		api := p.asker("client")
		synctest.Wait()
		if got := w.Snapshot(); got.Phase != session.Waiting || got.HostName != "anna" || len(got.Peers) != 4 {
			t.Errorf("before the start: %s, host %q, %d peers", got.Phase, got.HostName, len(got.Peers))
		}
		w.engine.Hook(slow(time.Millisecond)) // the deal is told while it loads
		p.start(h)
		made := session.DealMade{Epoch: 1, Model: sessiontest.Key, Ctx: sessiontest.CtxDefault}
		deal := sessiontest.Is(func(e session.DealMade) bool {
			return e.Epoch == made.Epoch && e.Model == made.Model && e.Ctx == made.Ctx && len(e.Shares) == 2 &&
				e.Shares[0].Peer == hostID && e.Shares[1] == session.Share{Peer: w.id, Name: "linux-abc", Lo: 5, Hi: 12, Held: pledge(7)} &&
				e.LeftOut[tiny.id] == session.OutSmall
		})
		for _, g := range []*guest{h, w, tiny} {
			if g == tiny {
				made.Ctx = 0 // who holds nothing isn't told before the room is online
			}
			sessiontest.InOrder(p.t, g.rec.Seen(), sessiontest.Is[session.PeerJoined](), deal, sessiontest.Is[session.RoomOnline]())
		}
		made.Ctx = sessiontest.CtxDefault
		sessiontest.InOrder(p.t, w.rec.Seen(), deal, sessiontest.Is(func(e session.LoadProgress) bool {
			return e.Peer == w.id && e.Percent == 100
		}), sessiontest.Is(func(e session.PeerReady) bool { return e.Peer == w.id }), sessiontest.Is[session.RoomOnline]())
		for _, c := range []struct {
			g    *guest
			want session.Phase
		}{{h, session.Online}, {w, session.Online}, {tiny, session.Guest}, {api, session.Online}} {
			st := c.g.Snapshot()
			if st.Phase != c.want || st.OnlineAt.IsZero() || st.Model.Key != sessiontest.Key || st.Deal == nil {
				t.Errorf("%s: %s (want %s), model %+v, deal %v", c.g.id, st.Phase, c.want, st.Model, st.Deal)
			}
			peer := st.Peers[0]
			if !peer.Host || peer.Name != "anna" || peer.Lo != 0 || peer.Hi != 5 {
				t.Errorf("%s sees the host as %+v", c.g.id, peer)
			}
		}
		late := p.worker("late", 7)
		synctest.Wait()
		if st := late.Snapshot(); st.Phase != session.Guest || st.Deal == nil || st.Model.Label != "Toy 1M \u00b7 F32" {
			t.Errorf("who comes late: %s, %v, %+v", st.Phase, st.Deal, st.Model)
		}
		for _, g := range []*guest{h, late} {
			for _, peer := range g.Snapshot().Peers {
				if peer.ID == late.id && peer.Out != session.OutLate {
					t.Errorf("%s sees it as %+v", g.id, peer)
				}
			}
		}
		if text, end := p.ask(h, question); end.Reason == session.DoneFailed {
			t.Fatalf("%q, %+v", text, end)
		}
		if st := w.Snapshot(); st.Passes == 0 || len(st.Chat) != 1 || st.Chat[0].Text != h.Snapshot().Chat[0].Text {
			t.Errorf("the device ran %d frames and shows %+v", st.Passes, st.Chat)
		}
		p.must(h.Redeal())
		synctest.Wait()
		if n := w.engine.Loads(); n != 1 {
			t.Errorf("the same layers were loaded %d times", n)
		}
		if text, end := p.ask(h, "again"); end.Reason == session.DoneFailed || end.Stats.ReusedTokens != 0 {
			t.Errorf("after a re-deal: %q, %+v", text, end)
		}
	})
}

func TestFailedLoadEndsTheStart(t *testing.T) {
	fail := func(_ context.Context, call string) error {
		if call == "load" {
			return errors.New("out of memory, lent 0.7 GB")
		}
		return nil
	}
	for _, c := range []struct{ name, who string }{{"of a worker", "linux-abc"}, {"of the host", "anna"}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				h := p.host(5, func(o *session.Options) { o.StartWith = 2 })
				e := &sessiontest.Engine{}
				bad := e
				if c.who == "anna" {
					bad = h.engine
				}
				bad.Hook(fail)
				w := p.enter("linux-abc", session.Options{Role: session.Worker, PledgeBytes: pledge(7)}, e)
				failed := h.rec.Wait(sessiontest.Is[session.LoadFailed]()).(session.LoadFailed)
				if !strings.Contains(failed.Err, "lent 0.7 GB") {
					t.Errorf("got %+v", failed)
				}
				synctest.Wait()
				for _, g := range []*guest{h, w} {
					st := g.Snapshot()
					if _, held := g.engine.Holds(); held || st.Phase != session.Waiting || st.Deal != nil {
						t.Errorf("%s holds layers: %v, %s", g.id, held, st.Phase)
					}
				}
				bad.Hook(nil)
				p.start(h)
				if text, end := p.ask(h, question); end.Reason == session.DoneFailed {
					t.Errorf("the next start: %q, %+v", text, end)
				}
			})
		})
	}
}

func TestLeavingDuringTheStart(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		w := p.worker("linux-abc", 7)
		w.engine.Hook(slow(time.Minute))
		synctest.Wait()
		p.must(h.Start())
		time.Sleep(30 * time.Second)
		if err := h.Ask(question); !errors.Is(err, session.ErrNotOnline) {
			t.Errorf("ask while loading: %v", err)
		}
		p.must(w.Close())
		h.rec.Wait(sessiontest.Is(func(e session.LoadFailed) bool {
			return e.Peer == w.id && e.Err == "linux-abc left (layers 5-11)"
		}))
		synctest.Wait()
		if st := h.Snapshot(); st.Phase != session.Waiting || len(st.Peers) != 1 {
			t.Errorf("%s, %d peers", st.Phase, len(st.Peers))
		}
		<-w.ended
		if w.err != nil {
			t.Errorf("the device that left: %v", w.err)
		}
	})
}

// A killed device of the chain was noticed after 15 to 17 seconds, and only then the answer failed.
func TestSilenceOfTheChainIsJudgedSooner(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		w := p.worker("linux-abc", 7)
		spare := p.worker("linux-xyz", 7)
		w.engine.Hook(slow(time.Minute))
		synctest.Wait()
		limits := func(when string, want, wantSpare time.Duration) {
			t.Helper()
			if got, gotSpare := h.mesh.Silence(w.id), h.mesh.Silence(spare.id); got != want || gotSpare != wantSpare {
				t.Errorf("%s: %s and %s, want %s and %s", when, got, gotSpare, want, wantSpare)
			}
		}
		limits("before the start", 0, 0)
		p.must(h.Start())
		synctest.Wait()
		limits("while it starts", 45*time.Second, 0)
		h.rec.Wait(sessiontest.Is[session.RoomOnline]())
		synctest.Wait()
		limits("online", 12*time.Second, 0)
		p.net.Kill(w.id)
		synctest.Wait()
		p.must(h.Redeal())
		h.rec.Wait(sessiontest.Is(func(e session.RoomOnline) bool { return e.Epoch == 2 }))
		synctest.Wait()
		limits("dealt again", 0, 12*time.Second)
	})
}

// A host without a screen stayed degraded for ever: nobody was there to deal again.
func TestRoomThatStartedByItselfDealsAgainWhenADeviceArrives(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*session.Options)
		again  bool
	}{
		{"with two devices", func(o *session.Options) { o.StartWith = 2 }, true},
		{"with three devices", func(o *session.Options) { o.StartWith = 3 }, false},
		{"as soon as it fits", func(o *session.Options) { o.AutoStart = true }, true},
		{"by hand", func(*session.Options) {}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				h := p.host(5, c.change)
				first := p.worker("linux-abc", 7)
				synctest.Wait()
				if h.Snapshot().Phase == session.Waiting {
					if c.again {
						t.Fatal("it did not start by itself")
					}
					p.must(h.Start())
				}
				h.rec.Wait(sessiontest.Is[session.RoomOnline]())
				p.net.Kill(first.id)
				h.rec.Wait(sessiontest.Is[session.RoomDegraded]())
				p.asker("client")
				synctest.Wait()
				if got := h.Snapshot().Phase; got != session.Degraded {
					t.Errorf("%s after a client came, want degraded", got)
				}
				p.worker("linux-def", 7)
				synctest.Wait()
				want := session.Degraded
				if c.again {
					want = session.Online
				}
				if got := h.Snapshot().Phase; got != want {
					t.Errorf("%s after a device came, want %s", got, want)
				}
			})
		})
	}
}

func TestCommandsThatCantBe(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		w := p.worker("linux-abc", 7)
		a := p.asker("client")
		synctest.Wait()
		for _, c := range []struct {
			name string
			got  error
			want error
		}{
			{"empty question", h.Ask(" \n"), session.ErrEmptyAsk},
			{"long question", h.Ask(strings.Repeat("x", 400_001)), session.ErrLongAsk},
			{"question before the start", h.Ask("?"), session.ErrNotOnline},
			{"client's question before the start", a.Ask("?"), session.ErrNotOnline},
			{"stop of nothing", h.Stop(), session.ErrNothingRunning},
			{"client's stop of nothing", a.Stop(), session.ErrNothingRunning},
			{"re-deal before the start", h.Redeal(), session.ErrNotStarted},
			{"start by a worker", w.Start(), session.ErrNotHost},
			{"start by a client", a.Start(), session.ErrNotHost},
			{"question by a worker", w.Ask("?"), session.ErrNoChat},
		} {
			if !errors.Is(c.got, c.want) {
				t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
			}
		}
		p.start(h)
		if err := h.Start(); !errors.Is(err, session.ErrStarted) {
			t.Errorf("start again: %v", err)
		}
	})
}

func TestNewWantsWhatItNeeds(t *testing.T) {
	e := &sessiontest.Engine{}
	for _, c := range []struct {
		name string
		o    session.Options
		e    session.Engine
		want string
	}{
		{"no code", session.Options{Role: session.Worker, Name: "x"}, e, "no room given"},
		{"no role", session.Options{Code: code, Name: "x"}, e, "no role"},
		{"no engine", session.Options{Role: session.Worker, Code: code, Name: "x"}, nil, "engine"},
		{"no model", session.Options{Role: session.Host, Code: code, Name: "x"}, e, "model"},
		{"no name", session.Options{Role: session.Asker, Code: code, Name: "\x00"}, nil, "name"},
	} {
		if _, err := session.New(c.o, c.e); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want something about %q", c.name, err, c.want)
		}
	}
}

func TestCloseBeforeRunEndsItAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room, err := session.New(session.Options{Role: session.Worker, Code: code, Name: "x"}, &sessiontest.Engine{})
		if err != nil {
			t.Fatal(err)
		}
		if err := room.Stop(); !errors.Is(err, session.ErrClosed) {
			t.Errorf("a command before Run: %v", err)
		}
		if err := room.Close(); err != nil {
			t.Error(err)
		}
		if err := room.Run(t.Context(), sessiontest.NewNet().Mesh("x", room.Deliver)); err != nil {
			t.Errorf("Run: %v", err)
		}
		if st := room.Snapshot(); st.Phase != session.Closed {
			t.Errorf("phase %s", st.Phase)
		}
	})
}
