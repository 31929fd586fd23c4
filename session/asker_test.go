package session_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pooled/session"
	"pooled/session/sessiontest"
)

func TestClientConversation(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		w := p.worker("linux-abc", 7)
		a := p.asker("client", func(o *session.Options) { o.System = "Be brief." })
		p.start(h)
		first, end := p.ask(a, question)
		if first == "" || end.Stats.Tokens == 0 || end.Stats.PromptTokens == 0 {
			t.Fatalf("got %q, %+v", first, end)
		}
		second, end := p.ask(a, "And the smallest?")
		if second == "" || end.Stats.ReusedTokens == 0 {
			t.Errorf("the second question: %q, %+v", second, end)
		}
		for _, g := range []*guest{h, w, a} {
			chat := g.Snapshot().Chat
			if len(chat) != 2 || chat[0].Text != first || chat[1].Text != second || !chat[0].API ||
				chat[0].Question != question || !chat[0].Done {
				t.Errorf("%s shows %+v", g.id, chat)
			}
		}
		if got := h.Snapshot().Chat[0].Name; got != "client \u00b7 pooled (API)" {
			t.Errorf("the host shows it as from %q", got)
		}
		p.must(a.Clear())
		if again, end := p.ask(a, question); again != first || end.Stats.ReusedTokens != 0 {
			t.Errorf("after clear: %q, want %q (%+v)", again, first, end)
		}
		if own, end := p.ask(h, question); end.Stats.PromptTokens == 0 || own == "" {
			t.Errorf("the room's own chat: %q, %+v", own, end)
		}
		p.must(h.Clear())
		synctest.Wait()
		if n := len(a.Snapshot().Chat); n != 1 {
			t.Errorf("the client sees %d exchanges, want its own one only", n)
		}
		if own, here := len(w.Snapshot().Chat), len(h.Snapshot().Chat); own != 0 || here != 0 {
			t.Errorf("after the host cleared: %d exchanges there, %d here", own, here)
		}
		p.must(a.Close())
		<-a.ended
		synctest.Wait()
		if n := len(h.Snapshot().Peers); n != 2 || a.err != nil {
			t.Errorf("after it left: %d devices, %v", n, a.err)
		}
		once(t, a.rec.All())
	})
}

func TestClientStopAndSilence(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		p.worker("linux-abc", 7)
		a := p.asker("client", func(o *session.Options) { o.MaxTokens = 400 })
		p.start(h)
		h.engine.Hook(slow(time.Millisecond))
		h.engine.Say(script(300))
		p.must(a.Ask(question))
		a.rec.Wait(sessiontest.Is[text]())
		p.must(a.Stop())
		got, end := p.answer(a)
		if end.Reason != session.DoneStopped || got == "" || len(got) > 3 {
			t.Errorf("stopped: %q, %+v", got, end)
		}
		h.engine.Say([]int32{})
		if quiet, end := p.ask(a, "say nothing"); quiet != "" || end.Reason != session.DoneStop {
			t.Errorf("silence: %q, %+v", quiet, end)
		}
		var sent []string
		p.net.Tap(func(_, to session.PeerID, v any) bool {
			if m, ok := v.(map[string]any); ok && m["t"] == "ai-ask" {
				for _, e := range m["messages"].([]any) {
					sent = append(sent, e.(map[string]any)["text"].(string))
				}
			}
			return true
		})
		h.engine.Say(script(3))
		p.ask(a, "and now?")
		// The stopped exchange is in the conversation, the silent one took its question out.
		if want := []string{question, got, "and now?"}; !slices.Equal(sent, want) {
			t.Errorf("sent %q, want %q", sent, want)
		}
		once(t, h.rec.Seen())
	})
}

func TestClientGoneStopsItsAnswer(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		p.worker("linux-abc", 7)
		a := p.asker("client")
		p.start(h)
		h.engine.Hook(slow(time.Millisecond))
		p.must(a.Ask(question))
		a.rec.Wait(sessiontest.Is[text]())
		p.net.Kill(a.id)
		if _, end := p.answer(h); end.Reason != session.DoneStopped {
			t.Errorf("got %+v", end)
		}
		if got, end := p.ask(h, question); end.Reason == session.DoneFailed {
			t.Errorf("the room after it: %q, %+v", got, end)
		}
	})
}

func TestHostGoneFailsTheClientsAnswer(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(sessiontest.Layers)
		a := p.asker("client")
		p.start(h)
		h.engine.Hook(slow(time.Millisecond))
		p.must(a.Ask(question))
		a.rec.Wait(sessiontest.Is[text]())
		p.net.Kill(h.id)
		<-a.ended
		problem(t, a.err, "host-gone", session.ExitNoRoom, "no sign of life", "join again")
		seen := a.rec.All()
		once(t, seen)
		sessiontest.InOrder(p.t, seen, sessiontest.Is(func(d done) bool { return d.Reason == session.DoneFailed }),
			sessiontest.Is[session.RoomClosed]())
	})
}

func TestThinkingIsToldApart(t *testing.T) {
	say := func(t *testing.T) []int32 {
		s := []int32{sessiontest.Think}
		for _, b := range []byte("\nhm, well\n") {
			s = append(s, int32(b))
		}
		s = append(s, sessiontest.ThinkEnd)
		for _, b := range []byte("\n\nJupiter.") {
			s = append(s, int32(b))
		}
		return s
	}
	for _, c := range []struct {
		name            string
		thinking        bool
		reasoning, text string
	}{
		{"on", true, "hm, well", "Jupiter."},
		{"off", false, "", "\nhm, well\n\n\nJupiter."},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				h := p.host(sessiontest.Layers)
				a := p.asker("client")
				p.start(h)
				for _, g := range []*guest{h, a} {
					p.must(g.SetThinking(c.thinking))
					h.engine.Say(say(t))
					if _, end := p.ask(g, question); end.Reason != session.DoneStop {
						t.Errorf("%s: %+v", g.id, end)
					}
					chat := g.Snapshot().Chat
					if x := chat[len(chat)-1]; x.Thinking != c.reasoning || x.Text != c.text {
						t.Errorf("%s: thinking %q, text %q", g.id, x.Thinking, x.Text)
					}
				}
			})
		})
	}
}

// apiAsk is a request of version 1, changed.
func apiAsk(rid string, change map[string]any) map[string]any {
	m := map[string]any{"t": "ai-ask", "api": 1, "rid": rid,
		"messages": []any{map[string]any{"role": "user", "text": "hello"}}, "params": map[string]any{"maxTokens": 20}}
	for k, v := range change {
		m[k] = v
	}
	return m
}

// client is an API client played by the test.
func client(p *party) *sessiontest.Peer {
	c := sessiontest.NewPeer(p.net, "played")
	c.Dial(hostID)
	p.must(c.Send(hostID, map[string]any{"t": "hello", "v": 4, "name": "played", "meta": map[string]any{"api": 1,
		"client": "curl", "webgpu": false, "ua": "API"}}))
	synctest.Wait()
	return c
}

func TestAPIRequestsAreChecked(t *testing.T) {
	params := func(k string, v any) map[string]any { return map[string]any{"params": map[string]any{k: v}} }
	many := make([]any, 201)
	for i := range many {
		many[i] = map[string]any{"role": "user", "text": "x"}
	}
	for _, c := range []struct {
		name   string
		change map[string]any
		code   string // "" for an answer
	}{
		{"fine", nil, ""},
		{"version 2", map[string]any{"api": 2}, "bad"},
		{"system as a number", map[string]any{"system": 3}, "bad"},
		{"no messages", map[string]any{"messages": nil}, "bad"},
		{"too many messages", map[string]any{"messages": many}, "bad"},
		{"a tool's message", map[string]any{"messages": []any{map[string]any{"role": "tool", "text": "x"}}}, "bad"},
		{"last one not the user's", map[string]any{"messages": []any{map[string]any{"role": "assistant", "text": "x"}}}, "bad"},
		{"message as text", map[string]any{"messages": []any{"x"}}, "bad"},
		{"too much text", map[string]any{"system": strings.Repeat("x", 400_001)}, "bad"},
		{"more than the context", map[string]any{"system": strings.Repeat("x", 600)}, "ctx"},
		{"no tokens", params("maxTokens", 0), "bad"},
		{"too many tokens", params("maxTokens", 65537), "bad"},
		{"tokens as text", params("maxTokens", "5"), "bad"},
		{"hot", params("temperature", 2.5), "bad"},
		{"top-k of nothing", params("topK", 0), "bad"},
		{"five stops", params("stop", []any{"a", "b", "c", "d", "e"}), "bad"},
		{"an empty stop", params("stop", []any{""}), "bad"},
		{"a stop that isn't text", params("stop", "x"), "bad"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				h := p.host(sessiontest.Layers)
				p.start(h)
				peer := client(p)
				p.must(peer.Send(hostID, apiAsk("r-1", c.change)))
				synctest.Wait()
				busy, over := peer.Messages("ai-busy"), peer.Messages("ai-gendone")
				if c.code == "" {
					if len(busy) != 0 || len(over) != 1 || over[0]["rid"] != "r-1" || over[0]["failed"] != int64(0) {
						t.Errorf("refused %v, done %v", busy, over)
					}
					return
				}
				if len(over) != 0 || len(busy) != 1 || busy[0]["code"] != c.code || busy[0]["rid"] != "r-1" || busy[0]["why"] == "" {
					t.Errorf("refused %v, done %v, want code %s", busy, over, c.code)
				}
			})
		})
	}
}

func TestAPIStopStringsAndBudget(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		p.worker("linux-abc", 7)
		p.start(h)
		peer := client(p)
		h.engine.Say(script(30))
		p.must(peer.Send(hostID, apiAsk("r1", map[string]any{"params": map[string]any{"stop": []any{"ghi"}, "maxTokens": 30}})))
		synctest.Wait()
		end := peer.Messages("ai-gendone")[0]
		if got := words(peer, "r1"); got != "abcdef" || end["reason"] != "stop_seq" || end["stopSeq"] != "ghi" {
			t.Errorf("got %q, %v", got, end)
		}
		h.engine.Say(append([]int32{sessiontest.Think}, script(12)...))
		p.must(peer.Send(hostID, apiAsk("r2", map[string]any{"params": map[string]any{"thinking": true, "thinkBudget": 5,
			"maxTokens": 30}})))
		synctest.Wait()
		if got := words(peer, "r2"); got != "[abcde]fghijkl" {
			t.Errorf("with a budget of 5: got %q", got)
		}
		once(t, h.rec.Seen())
	})
}

// words puts a client's answer together, the reasoning in brackets.
func words(peer *sessiontest.Peer, rid string) string {
	var b strings.Builder
	thinking := false
	for _, m := range peer.Messages("ai-token") {
		if m["rid"] != rid {
			continue
		}
		if th := m["th"] != nil; th != thinking {
			b.WriteString(map[bool]string{true: "[", false: "]"}[th])
			thinking = th
		}
		b.WriteString(m["text"].(string))
	}
	return b.String()
}

func TestClientIsToldWhyItCantAsk(t *testing.T) {
	bubble(t, func(p *party) {
		h := p.host(5)
		w := p.worker("linux-abc", 7)
		a := p.asker("client")
		peer := client(p)
		p.must(peer.Send(hostID, apiAsk("r1", nil)))
		synctest.Wait()
		if busy := peer.Messages("ai-busy"); len(busy) != 1 || busy[0]["code"] != "loading" {
			t.Errorf("before the start: %v", busy)
		}
		p.start(h)
		p.must(a.Ask(strings.Repeat("x", 700)))
		refused := a.rec.Wait(sessiontest.Is[session.AskRefused]()).(session.AskRefused)
		if refused.Code != "ctx" || !strings.Contains(refused.Why, "of") && !strings.Contains(refused.Why, "480") {
			t.Errorf("too long: %+v", refused)
		}
		p.net.Kill(w.id)
		synctest.Wait()
		p.must(peer.Send(hostID, apiAsk("r2", nil)))
		synctest.Wait()
		if busy := peer.Messages("ai-busy"); len(busy) != 2 || busy[1]["code"] != "degraded" {
			t.Errorf("degraded: %v", busy)
		}
		if err := a.Ask("?"); !errors.Is(err, session.ErrDegraded) {
			t.Errorf("the client's own: %v", err)
		}
	})
}
