package session

import (
	"fmt"
	"strings"
	"time"

	"pooled/compute/token"
)

// answerText collects what a screen shows of the running answer.
type answerText struct{ text, think strings.Builder }

// writer turns an answer's tokens into text: bytes to characters, reasoning apart from content, stop strings out.
type writer struct {
	stream             *token.Stream
	split              *thinkSplitter
	stops              stopFilter
	open, close        int32 // ids of the think tags
	hasOpen, hasClose  bool
	content, reasoning strings.Builder
	pieces             []piece // memory for push
}

func (w *writer) init(t *token.Tokenizer, a *answer) {
	w.stream = t.Stream()
	w.split = newThinkSplitter(a.think, false, false)
	if a.api != nil {
		w.stops.stops = a.api.params.stops
	}
	if a.think {
		w.open, w.hasOpen = t.Special(openThink)
		w.close, w.hasClose = t.Special(closeThink)
	}
}

// push takes a token. The pieces are valid until the next call.
func (w *writer) push(id int32) []piece {
	text := w.stream.Push(id)
	switch {
	case w.hasOpen && id == w.open:
		text += openThink
	case w.hasClose && id == w.close:
		text += closeThink
	}
	w.pieces = w.split.push(w.pieces[:0], text)
	return w.filter(w.pieces)
}

// flush ends the answer.
func (w *writer) flush() []piece {
	ps := w.filter(w.split.flush(w.split.push(nil, w.stream.Flush())))
	if w.stops.hit == "" {
		if held := w.stops.flush(); held != "" {
			w.content.WriteString(held)
			ps = append(ps, piece{false, held})
		}
	}
	return ps
}

// filter cuts content at stop strings and keeps count of what is let through.
func (w *writer) filter(ps []piece) []piece {
	kept := ps[:0]
	for _, p := range ps {
		if p.reasoning {
			w.reasoning.WriteString(p.text)
		} else {
			p.text = w.stops.push(p.text)
			w.content.WriteString(p.text)
		}
		if p.text != "" {
			kept = append(kept, p)
		}
	}
	return kept
}

// screens are the members that watch: everyone but API clients.
func (h *host) screens() []*peer {
	var ps []*peer
	for _, p := range h.peers() {
		if !p.meta.isAPI() {
			ps = append(ps, p)
		}
	}
	return ps
}

// announce publishes the start of an answer, here and to the others (spec room.md 6.5).
func (g *generator) announce(h *host, a *answer) {
	a.started = true
	question := cleanText(a.question)
	h.progress = answerText{}
	h.st.Answering = true
	h.st.Answer = &Exchange{ID: a.id, Asker: a.asker, Name: a.name, Question: question, API: a.api != nil, Started: h.now}
	h.emit(AnswerStarted{ID: a.id, Asker: a.asker, Name: a.name, Text: question, API: a.api != nil,
		PromptTokens: a.asked, ReusedTokens: a.reused})
	for _, p := range h.screens() {
		m := map[string]any{"name": a.name, "text": question, "asker": string(a.asker), "cont": 0, "mid": a.id}
		if a.api != nil {
			m["api"] = 1
		}
		h.send(p.id, "ai-genstart", m)
	}
	if a.api != nil {
		h.send(a.asker, "ai-genstart", map[string]any{"rid": a.api.rid, "api": 1, "client": a.api.client,
			"promptTokens": a.asked, "reused": a.reused, "model": h.info.Key, "name": a.name,
			"asker": string(a.asker), "mid": a.id})
	}
}

// emitText publishes pieces of an answer. The asker of an API answer gets the model's own text, screens a clean copy.
func (g *generator) emitText(h *host, a *answer, pieces []piece) {
	for _, p := range pieces {
		if a.api != nil {
			m := map[string]any{"rid": a.api.rid, "text": p.text, "d": 0}
			if p.reasoning {
				m["th"] = 1
			}
			h.send(a.asker, "ai-token", m)
		}
		text := cleanText(p.text)
		if text == "" {
			continue
		}
		h.say(a.id, text, p.reasoning)
		if a.api != nil && p.reasoning {
			continue
		}
		for _, s := range h.screens() {
			m := map[string]any{"text": text, "d": 0}
			if p.reasoning {
				m["th"] = 1
			}
			h.send(s.id, "ai-token", m)
		}
	}
}

// say publishes text of the running answer.
func (c *core) say(id int, text string, reasoning bool) {
	if reasoning {
		c.progress.think.WriteString(text)
	} else {
		c.progress.text.WriteString(text)
	}
	c.emit(AnswerText{ID: id, Text: text, Reasoning: reasoning})
}

// answered publishes the end of the running answer and files the exchange.
func (c *core) answered(done AnswerDone) {
	x := *c.st.Answer
	x.Text, x.Thinking = c.progress.text.String(), c.progress.think.String()
	x.Done, x.Reason, x.Err, x.Stats = true, done.Reason, done.Err, done.Stats
	c.st.Answering, c.st.Answer = false, nil
	c.st.Chat = pushed(c.st.Chat, x, MaxChat)
	if done.Stats.PerSec > 0 {
		c.st.TokPerSec = done.Stats.PerSec
	}
	c.emit(done)
}

// wireReason words a reason for API clients (spec room.md 6.5).
var wireReason = map[DoneReason]string{DoneStop: "stop", DoneLength: "max", DoneContext: "ctx", DoneStopped: "abort",
	DoneFailed: "error"}

// end finishes the running answer, exactly once: it is gone afterwards.
func (g *generator) end(h *host, reason DoneReason, why string) {
	a := g.cur
	if a == nil {
		return
	}
	if !a.started { // its prompt was still being made
		g.cur = nil
		if why == "" {
			why = "the room closed"
		}
		g.busy(h, a, "degraded", why, nil)
		return
	}
	g.emitText(h, a, a.writer.flush())
	g.cur = nil
	stats := a.stats()
	h.st.Context = Context{Used: len(g.fed), Max: h.ctx}
	h.answered(AnswerDone{ID: a.id, Reason: reason, Err: why, Stats: stats})
	if a.api == nil {
		h.chat.remember(a)
	} else {
		g.keep(a)
	}
	g.tellEnd(h, a, reason, why, stats)
}

// remember files the exchange in the conversation; an answer that stayed empty takes its question with it.
func (c *chat) remember(a *answer) {
	if len(a.out) > 0 {
		c.turns = append(c.turns, token.Turn{Role: "user", Text: a.question}, token.Turn{Role: "assistant", IDs: a.out})
	}
}

func (g *generator) tellEnd(h *host, a *answer, reason DoneReason, why string, stats Stats) {
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	failed, capped := flag(reason == DoneFailed), flag(reason == DoneLength || reason == DoneContext)
	line := statsLine(stats, len(h.chain)+1)
	used := func() map[string]any { return map[string]any{"used": len(g.fed), "max": h.ctx} }
	for _, p := range h.screens() {
		m := map[string]any{"stats": line, "ctx": used(), "failed": failed, "capped": capped, "reason": wireReason[reason]}
		if why != "" {
			m["err"] = why
		}
		if a.api != nil {
			m["api"] = 1
		}
		h.send(p.id, "ai-gendone", m)
	}
	if a.api == nil {
		return
	}
	m := map[string]any{"rid": a.api.rid, "api": 1, "reason": wireReason[reason], "reused": a.reused, "stats": line,
		"usage": map[string]any{"in": a.asked, "out": stats.Tokens, "think": a.inThink}, "ctx": used(), "failed": failed}
	if hit := a.writer.stops.hit; hit != "" && reason == DoneStop {
		m["reason"], m["stopSeq"] = "stop_seq", hit
	}
	if why != "" {
		m["err"] = why
	}
	h.send(a.asker, "ai-gendone", m)
}

func (a *answer) stats() Stats {
	s := Stats{Tokens: len(a.out), PromptTokens: a.asked, ReusedTokens: a.reused}
	if len(a.out) > 0 {
		s.FirstSec = a.first.Sub(a.taken).Seconds()
		s.DecodeSec = a.last.Sub(a.first).Seconds()
		s.PerSec = perSec(len(a.out), a.last.Sub(a.first))
	}
	return s
}

// perSec is tokens per second of decoding, 0 when it can't be told.
func perSec(tokens int, d time.Duration) float64 {
	if tokens < 2 || d <= 0 {
		return 0
	}
	return float64(tokens-1) / d.Seconds()
}

// statsLine is the line under an answer, as other screens show it.
func statsLine(s Stats, devices int) string {
	parts := []string{counted(s.Tokens, "token")}
	if s.PerSec > 0 {
		parts = append(parts, fmt.Sprintf("%.1f tok/s", s.PerSec))
	}
	parts = append(parts, counted(devices, "device"))
	if s.ReusedTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d prompt tokens reused", s.ReusedTokens, s.PromptTokens))
	} else {
		parts = append(parts, counted(s.PromptTokens, "prompt token"))
	}
	return strings.Join(parts, " \u00b7 ")
}

// counted writes a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
