package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pooled/compute/op"
	"pooled/netmesh/wire"
	"pooled/session"
	"pooled/session/sessiontest"
)

type (
	started = session.AnswerStarted
	text    = session.AnswerText
	done    = session.AnswerDone
)

// once fails unless every answer of a recording ended exactly once.
func once(t *testing.T, got []session.Envelope) {
	t.Helper()
	open := map[int]int{}
	for _, e := range got {
		switch ev := e.Event.(type) {
		case started:
			open[ev.ID]++
		case text:
			if open[ev.ID] != 1 {
				t.Errorf("text of answer %d outside of it", ev.ID)
			}
		case done:
			if open[ev.ID]++; open[ev.ID] != 2 {
				t.Errorf("answer %d ended out of turn", ev.ID)
			}
		}
	}
	for id, n := range open {
		if n != 2 {
			t.Errorf("answer %d: %d of start and end", id, n)
		}
	}
}

func TestLostWorkerFailsTheAnswerAndTheRoomLives(t *testing.T) {
	want := alone(t)[0]
	bubble(t, func(p *party) {
		h := p.host(5)
		w := p.worker("linux-abc", 7)
		spare := p.worker("linux-xyz", 7)
		p.start(h)
		h.engine.Hook(slow(time.Millisecond))
		p.must(h.Ask(question))
		h.rec.Wait(sessiontest.Is[text]())
		p.net.Kill(w.id)
		_, end := p.answer(h)
		if end.Reason != session.DoneFailed || end.Err != "linux-abc left (layers 5-11)" {
			t.Errorf("got %q, %q", end.Reason, end.Err)
		}
		st := h.Snapshot()
		if st.Phase != session.Degraded || st.Answering || st.Answer != nil {
			t.Errorf("phase %s, answering %v", st.Phase, st.Answering)
		}
		if got := st.Chat[len(st.Chat)-1]; got.Reason != session.DoneFailed || got.Err == "" {
			t.Errorf("the transcript has %+v", got)
		}
		if err := h.Ask("again?"); !errors.Is(err, session.ErrDegraded) {
			t.Errorf("ask while degraded: %v", err)
		}
		if got := spare.Snapshot().Phase; got != session.Degraded {
			t.Errorf("the other device shows %s", got)
		}
		p.must(h.Redeal())
		h.rec.Wait(sessiontest.Is(func(e session.RoomOnline) bool { return e.Epoch == 2 }))
		if got := spans(h.Snapshot()); got != "0-4 5-11" {
			t.Errorf("dealt again as %s", got)
		}
		p.must(h.Clear())
		if got, end := p.ask(h, question); got != want {
			t.Errorf("after the re-deal: got %q, want %q (%+v)", got, want, end)
		}
		p.must(h.Close())
		seen := h.rec.All()
		once(t, seen)
		sessiontest.InOrder(p.t, seen, sessiontest.Is[started](), sessiontest.Is[text](),
			sessiontest.Is(func(e session.PeerLeft) bool { return e.Peer == w.id }), sessiontest.Is[done](),
			sessiontest.Is(func(e session.RoomDegraded) bool { return e.Peer == w.id && e.Why != "" }),
			sessiontest.Is(func(e session.DealMade) bool { return e.Epoch == 2 }), sessiontest.Is[session.RoomOnline](),
			sessiontest.Is[started](), sessiontest.Is[done](), sessiontest.Is[session.RoomClosed]())
		once(t, spare.rec.All())
	})
}

func TestOneQuestionAtATime(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		p.worker("linux-abc", 7)
		a := p.asker("client")
		p.start(h)
		h.engine.Hook(slow(time.Millisecond))
		a.rec.Wait(sessiontest.Is[session.RoomOnline]())
		p.must(h.Ask(question))
		if err := h.Ask("and another"); !errors.Is(err, session.ErrAnswering) {
			t.Errorf("a second question here: %v", err)
		}
		p.must(a.Ask("me too"))
		refused := a.rec.Wait(sessiontest.Is[session.AskRefused]()).(session.AskRefused)
		if refused.Code != "queue" || refused.Why == "" {
			t.Errorf("the client was told %+v", refused)
		}
		p.answer(h)
		if got, end := p.ask(a, "me too"); got == "" || end.Reason == session.DoneFailed {
			t.Errorf("after it: %q, %+v", got, end)
		}
		p.must(h.Close())
		once(t, h.rec.All())
	})
}

func TestStopEndsAfterTheLapInFlight(t *testing.T) {
	for _, c := range []struct {
		name   string
		layers int
		during string
	}{
		{"split, while decoding", 5, "text"},
		{"split, while reading", 5, "started"},
		{"one device, while decoding", sessiontest.Layers, "text"},
		{"one device, while reading", sessiontest.Layers, "started"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				h := p.host(c.layers, func(o *session.Options) { o.MaxTokens = 300 })
				if c.layers < sessiontest.Layers {
					p.worker("linux-abc", sessiontest.Layers-c.layers)
				}
				p.start(h)
				h.engine.Hook(slow(time.Millisecond))
				h.engine.Say(script(300))
				p.must(h.Ask(question))
				if c.during == "text" {
					h.rec.Wait(sessiontest.Is[text]())
				} else {
					h.rec.Wait(sessiontest.Is[started]())
				}
				p.must(h.Stop())
				got, end := p.answer(h)
				if end.Reason != session.DoneStopped || len(got) > 3 || c.during == "text" && got == "" {
					t.Errorf("got %q, %+v", got, end)
				}
				if err := h.Stop(); !errors.Is(err, session.ErrNothingRunning) {
					t.Errorf("stop again: %v", err)
				}
				h.engine.Say(nil)
				if got, end := p.ask(h, "go on"); end.Reason == session.DoneFailed {
					t.Errorf("next answer: %q, %+v", got, end)
				}
				p.must(h.Close())
				once(t, h.rec.All())
			})
		})
	}
}

// script is n letters.
func script(n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = int32('a' + i%26)
	}
	return s
}

func TestAnswersEndForTheRightReason(t *testing.T) {
	for _, c := range []struct {
		name   string
		layers int
		most   int
		say    int
		want   session.DoneReason
		tokens int
	}{
		{"the model stops", 5, 40, 10, session.DoneStop, 10},
		{"the most tokens", 5, 10, 40, session.DoneLength, 10},
		{"one device, the most tokens", 12, 10, 40, session.DoneLength, 10},
		{"one token", 5, 1, 40, session.DoneLength, 1},
		{"context full", 5, 5000, 1000, session.DoneContext, 0},
		{"one device, context full", 12, 5000, 1000, session.DoneContext, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				h := p.host(c.layers, func(o *session.Options) { o.MaxTokens = c.most })
				h.engine.Say(script(c.say))
				if c.layers < sessiontest.Layers {
					p.worker("linux-abc", sessiontest.Layers-c.layers)
				}
				p.start(h)
				got, end := p.ask(h, question)
				if end.Reason != c.want || c.tokens > 0 && end.Stats.Tokens != c.tokens {
					t.Errorf("got %q after %d tokens, want %q after %d", end.Reason, end.Stats.Tokens, c.want, c.tokens)
				}
				if len(got) != end.Stats.Tokens {
					t.Errorf("%d letters of %d tokens", len(got), end.Stats.Tokens)
				}
				if c.want == session.DoneContext {
					if used := h.Snapshot().Context; used.Used != used.Max-1 {
						t.Errorf("context %+v", used)
					}
				}
				p.must(h.Close())
			})
		})
	}
}

func TestWorkerTroubleFailsTheAnswer(t *testing.T) {
	for _, c := range []struct {
		name string
		hook func(context.Context, string) error
		tap  func(from, to session.PeerID, v any) bool
		want string
	}{
		{"NaN", func(_ context.Context, call string) error {
			if call == "hidden" {
				return fmt.Errorf("layer 7: %w", op.ErrNotFinite)
			}
			return nil
		}, nil, "linux-abc: layer 7: NaN or infinity in a result"},
		{"silence", nil, func(_, to session.PeerID, v any) bool {
			_, frame := v.(*wire.Frame)
			return !frame || to != hostID
		}, "pipeline timeout (batch): a device in the room stopped answering"},
		{"a lost frame", nil, dropNth(2, "linux-abc"), "linux-abc: a frame at position 32, the caches hold 16 of 512"},
		{"a lost return", nil, dropNth(2, hostID), "pipeline timeout (batch): a device in the room stopped answering"},
		{"a short return", nil, func(_, to session.PeerID, v any) bool {
			if f, ok := v.(*wire.Frame); ok && to == hostID {
				f.Data = f.Data[:len(f.Data)-2]
			}
			return true
		}, "linux-abc sent 254 bytes for 16 positions, want 256"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				h := p.host(5)
				w := p.worker("linux-abc", 7)
				p.start(h)
				w.engine.Hook(c.hook)
				p.net.Tap(c.tap)
				_, end := p.ask(h, question)
				if end.Reason != session.DoneFailed || end.Err != c.want {
					t.Errorf("got %q, %q, want %q", end.Reason, end.Err, c.want)
				}
				w.engine.Hook(nil)
				p.net.Tap(nil)
				if got, end := p.ask(h, question); end.Reason == session.DoneFailed || end.Stats.ReusedTokens != 0 {
					t.Errorf("next answer: %q, %+v", got, end)
				}
				p.must(h.Close())
				once(t, h.rec.All())
			})
		})
	}
}

// dropNth loses the n-th frame to a device.
func dropNth(n int, at session.PeerID) func(from, to session.PeerID, v any) bool {
	return func(_, to session.PeerID, v any) bool {
		if _, frame := v.(*wire.Frame); frame && to == at {
			n--
			return n != 0
		}
		return true
	}
}

func TestPromptFramesOverlap(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		w := p.worker("linux-abc", 7)
		p.start(h)
		w.engine.Hook(slow(time.Second))
		away, most := 0, 0
		p.net.Tap(func(_, to session.PeerID, v any) bool {
			if f, ok := v.(*wire.Frame); ok {
				if to == hostID {
					away--
				} else if away++; f.Kind == wire.HiddenB {
					most = max(most, away)
				}
			}
			return true
		})
		p.ask(h, strings.Repeat("many words ", 30))
		if most != 6 {
			t.Errorf("%d frames on the way at once, want 6", most)
		}
		p.must(h.Close())
	})
}

func TestTooLongAQuestionIsRefusedAndOldTurnsMakeRoom(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(sessiontest.Layers)
		h.engine.Say(script(5))
		p.start(h)
		p.must(h.Ask(strings.Repeat("x", 600)))
		refused := h.rec.Wait(sessiontest.Is[session.AskRefused]()).(session.AskRefused)
		if refused.Code != "ctx" || !strings.Contains(refused.Why, "the room takes 480") {
			t.Errorf("got %+v", refused)
		}
		for range 4 {
			h.engine.Say(script(5))
			if _, end := p.ask(h, strings.Repeat("y", 150)); end.Reason == session.DoneFailed {
				t.Fatalf("got %+v", end)
			}
		}
		sessiontest.InOrder(p.t, h.rec.Seen(), sessiontest.Is(func(n session.Notice) bool { return n.Code == "trimmed" }))
		p.must(h.Close())
	})
}

func TestClosingEndsTheAnswer(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		w := p.worker("linux-abc", 7)
		p.start(h)
		h.engine.Hook(slow(time.Millisecond))
		p.must(h.Ask(question))
		h.rec.Wait(sessiontest.Is[text]())
		p.must(h.Close())
		<-h.ended
		<-w.ended
		if h.err != nil || w.err != nil {
			t.Errorf("host: %v, worker: %v", h.err, w.err)
		}
		for _, g := range []*guest{h, w} {
			seen := g.rec.All()
			once(t, seen)
			if last, ok := seen[len(seen)-1].Event.(session.RoomClosed); !ok || last.Problem != nil {
				t.Errorf("%s: last event %+v", g.id, seen[len(seen)-1])
			}
			if _, held := g.engine.Holds(); held {
				t.Errorf("%s still holds layers", g.id)
			}
			if err := g.Ask("hello?"); !errors.Is(err, session.ErrClosed) {
				t.Errorf("%s: ask after the end: %v", g.id, err)
			}
		}
		synctest.Wait()
	})
}
