package session

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"pooled/compute/op"
	"pooled/compute/token"
)

const (
	minRoom     = 32 // tokens kept free for an answer (spec room.md 2.2)
	roomTokens  = 400
	thinkTokens = 1200
	defaultTopK = 40
	defaultTemp = 0.8
	maxRecent   = 8 // answers whose exact ids are kept for API clients
	drainWait   = 2 * time.Second
)

// generator makes answers on the host, one at a time (spec room.md 5).
type generator struct {
	temp float64 // of the room
	topK int
	rng  *rand.Rand

	cur    *answer
	lastID int
	fed    []int32  // what every cache holds, in order
	known  bool     // fed is right; else the next run starts over
	ghosts []flight // of failed answers, may still come back
	stale  []flight // ghosts nobody waits for any more
	stat   lapStat
	due    time.Time // the "lap" timer goes off here, zero when it is off
	recent []replay
}

// replay is an answer given to an API client: its text comes back as part of a later conversation.
type replay struct {
	text string
	ids  []int32
}

// answer is the running one.
type answer struct {
	id             int
	asker          PeerID
	name, question string
	api            *apiAsk // nil for the room's chat
	taken          time.Time
	think          bool
	temp           float64
	topK           int
	maxNew         int

	started  bool // answer.started is out
	stopping bool
	job      uint64 // the engine job that is waited for, 0 none
	sending  cut    // what job computes, during the prompt
	draining bool   // frames of a failed answer may still come back

	prompt  []int32 // what is fed before the next token is drawn
	asked   int     // tokens of the prompt as it was rendered
	reused  int
	base    int // prompt position of cuts
	cuts    []cut
	next    int
	flights []flight

	out         []int32
	inThink     int       // tokens inside the think block
	first, last time.Time // of its tokens
	writer      writer
}

func (g *generator) init(o Options) {
	g.temp, g.topK = o.HostTemp, o.TopK
	if g.topK < 1 {
		g.topK = defaultTopK
	}
	g.topK = min(g.topK, op.MaxTopK)
	g.rng = rand.New(rand.NewPCG(o.Seed, o.Seed^0x9e3779b97f4a7c15))
}

func (g *generator) running() bool { return g.cur != nil }

// forget drops what is known of the caches, for a new deal.
func (g *generator) forget() {
	g.fed, g.known, g.ghosts, g.stale, g.stat = nil, false, nil, nil, lapStat{}
}

// refusal says why no question can be taken now; code is for API clients.
func (g *generator) refusal(h *host) (code string, err error) {
	switch {
	case h.st.Phase == Degraded:
		return "degraded", ErrDegraded
	case !h.online:
		return "loading", ErrNotOnline
	case g.cur != nil:
		return "queue", ErrAnswering
	}
	return "", nil
}

// askHere takes a question from the host's own console.
func (g *generator) askHere(h *host, text string) error {
	if _, err := g.refusal(h); err != nil {
		return err
	}
	g.take(h, &answer{asker: h.self, name: h.name, question: text})
	return nil
}

// asked takes a question from a peer.
func (g *generator) asked(h *host, p *peer, m msgAsk) {
	if m.api == nil && m.bad == "" && p.meta.isAPI() {
		return
	}
	if m.bad == "" && m.api != nil && !p.meta.isAPI() {
		m.bad = "only API clients may send API requests"
	}
	if m.bad != "" {
		h.send(p.id, "ai-busy", map[string]any{"rid": m.rid, "code": "bad", "why": m.bad})
		return
	}
	a := &answer{asker: p.id, name: p.name, question: m.text, api: m.api}
	if code, err := g.refusal(h); err != nil {
		g.busy(h, a, code, err.Error(), nil)
		return
	}
	if m.api != nil {
		a.name = fmt.Sprintf("%s \u00b7 %s (API)", p.name, m.api.client)
		a.question = cutText(m.api.messages[len(m.api.messages)-1].text, 2000)
	}
	g.take(h, a)
}

// busy refuses a question. more is added to the message.
func (g *generator) busy(h *host, a *answer, code, why string, more map[string]any) {
	if a.asker == h.self {
		h.emit(AskRefused{Code: code, Why: why})
		return
	}
	msg := map[string]any{"why": why}
	for k, v := range more {
		msg[k] = v
	}
	if a.api != nil {
		msg["rid"], msg["code"] = a.api.rid, code
	}
	h.send(a.asker, "ai-busy", msg)
}

// take makes a the running answer and has its conversation rendered.
func (g *generator) take(h *host, a *answer) {
	a.taken, a.temp, a.topK, a.think = h.now, g.temp, g.topK, h.chat.think
	c := token.Chat{Think: a.think}
	if a.api == nil {
		a.maxNew = roomTokens
		if a.think {
			a.maxNew = thinkTokens
		}
		if h.opts.MaxTokens > 0 {
			a.maxNew = h.opts.MaxTokens
		}
		c.Turns = append(slices.Clone(h.chat.turns), token.Turn{Role: "user", Text: a.question})
	} else {
		p := a.api.params
		a.think, a.maxNew = p.thinking, p.maxTokens
		if !math.IsNaN(p.temp) || p.topK > 0 {
			a.temp, a.topK = p.sampling()
		}
		c = token.Chat{System: a.api.system, Turns: g.turns(a.api.messages), Think: a.think}
	}
	a.writer.init(h.text.tok, a)
	g.cur = a
	a.job = h.run(renderWork{text: h.text, chat: c, most: h.ctx - minRoom, trim: a.api == nil})
}

// sampling fills in what an API ask left out (spec room.md 6.8).
func (p askParams) sampling() (temp float64, topK int) {
	temp, topK = p.temp, p.topK
	if math.IsNaN(temp) {
		temp = defaultTemp
	}
	if topK < 1 {
		topK = defaultTopK
	}
	return temp, topK
}

// turns merges messages of one role that follow each other, and puts the exact ids where an answer of this host comes
// back (spec room.md 6.2).
func (g *generator) turns(messages []apiMessage) []token.Turn {
	var turns []token.Turn
	for _, m := range messages {
		if n := len(turns); n > 0 && turns[n-1].Role == m.role {
			turns[n-1].Text += "\n\n" + m.text
			continue
		}
		turns = append(turns, token.Turn{Role: m.role, Text: m.text})
	}
	for i, t := range turns {
		if t.Role != "assistant" {
			continue
		}
		for _, r := range g.recent {
			if r.text == t.Text {
				turns[i].IDs = r.ids
			}
		}
	}
	return turns
}

// done takes the result of an engine job; one that isn't waited for any more is nothing to this run.
func (g *generator) done(h *host, r result) {
	a := g.cur
	if a == nil || r.id != a.job {
		return
	}
	a.job = 0
	if r.err != nil && !a.started {
		g.cur = nil
		why := reasonOf(r.err)
		if errors.Is(r.err, token.ErrNoChat) {
			why = "this model has no chat format"
		}
		g.busy(h, a, "bad", why, nil)
		return
	}
	if r.err != nil {
		g.fail(h, r.err)
		h.gpuLost(r.err)
		return
	}
	switch out := r.out.(type) {
	case rendered:
		g.rendered(h, a, out)
	case []byte:
		g.sendCut(h, a, out, r.took)
	case drawn:
		g.drew(h, a, out, r.took)
	}
}

// rendered starts the answer, unless its conversation is too long.
func (g *generator) rendered(h *host, a *answer, r rendered) {
	most := h.ctx - minRoom
	if len(r.ids) == 0 {
		g.cur = nil
		g.busy(h, a, "ctx", fmt.Sprintf("the conversation is %d tokens, the room takes %d", r.n, max(most, 0)),
			map[string]any{"n": r.n, "max": most})
		return
	}
	if a.api == nil && r.dropped > 0 {
		h.chat.turns = slices.Clone(h.chat.turns[min(r.dropped, len(h.chat.turns)):])
		h.notice(Info, "trimmed", "the oldest part of the conversation no longer fits the model's context and was left out")
	}
	a.prompt, a.asked = r.ids, len(r.ids)
	if g.known && len(g.fed) < len(a.prompt) && slices.Equal(g.fed, a.prompt[:len(g.fed)]) {
		a.reused = len(g.fed)
	} else {
		g.fed, g.known = g.fed[:0], true
	}
	a.maxNew = min(a.maxNew, h.ctx-len(a.prompt))
	g.lastID++
	a.id = g.lastID
	g.announce(h, a)
	g.prefill(h, a, a.reused)
}

// prefill cuts the prompt from a position on and starts sending it.
func (g *generator) prefill(h *host, a *answer, from int) {
	n := len(a.prompt) - from
	a.base, a.next, a.cuts = from, 0, nil
	if len(h.chain) > 0 {
		a.cuts = prefill{cols: prefillCols}.cuts(n)
	} else {
		for at := 0; at < n; at += soloCols {
			k := min(soloCols, n-at)
			a.cuts = append(a.cuts, cut{at: at, n: k, kind: cutBatch, head: at+k == n})
		}
	}
	if len(g.ghosts) > 0 {
		a.draining = true
		h.timer("drain", drainWait)
		return
	}
	g.pump(h, a)
}

// drained goes on after the frames of a failed answer came back, or won't any more.
func (g *generator) drained(h *host, giveUp bool) {
	if giveUp {
		g.stale, g.ghosts = append(g.stale, g.ghosts...), nil
	}
	if a := g.cur; len(g.ghosts) == 0 && a != nil && a.draining {
		a.draining = false
		h.timer("drain", 0)
		g.setApart(a)
		g.pump(h, a)
	}
}

// setApart makes the first frame of a run unlike every frame that is still out from failed ones, in position, columns
// or kind. The chain keeps the order: once that frame is back, older ones can't come any more.
func (g *generator) setApart(a *answer) {
	if len(a.cuts) == 0 {
		return
	}
	pos, c := len(g.fed), a.cuts[0]
	taken := func(n int, batch bool) bool {
		return slices.ContainsFunc(g.stale, func(f flight) bool { return f.pos == pos && f.n == n && f.batch == batch })
	}
	if !taken(c.n, c.kind != cutToken) {
		return
	}
	for n := c.n; n > 0; n-- {
		if taken(n, true) {
			continue
		}
		first, rest := cut{at: c.at, n: n, kind: cutBatch}, c
		rest.at, rest.n = c.at+n, c.n-n
		if rest.n == 0 {
			first.head = c.head
			a.cuts[0] = first
		} else {
			a.cuts = slices.Insert(a.cuts, 0, first)
			a.cuts[1] = rest
		}
		return
	}
}

// pump computes the next part of the prompt while frames before it are on the way.
func (g *generator) pump(h *host, a *answer) {
	switch {
	case a.job != 0 || a.draining:
	case a.stopping:
		if len(a.flights) == 0 {
			g.end(h, DoneStopped, "")
		}
	case a.next < len(a.cuts) && len(a.flights) < maxInFlight:
		c := a.cuts[a.next]
		a.next++
		a.sending = c
		tokens := a.prompt[a.base+c.at : a.base+c.at+c.n]
		if len(h.chain) > 0 {
			a.job = h.run(embedWork{pos: len(g.fed), tokens: tokens})
			return
		}
		w := soloWork{pos: len(g.fed), tokens: tokens}
		if c.head {
			w.draw = g.draw(h, a)
		}
		a.job = h.run(w)
	}
}

// draw is how the next token is picked: one random number per token, whatever else happens.
func (g *generator) draw(h *host, a *answer) *draw {
	return &draw{text: h.text, temp: a.temp, k: a.topK, r: g.rng.Float64()}
}

// stop ends the answer after what is under way.
func (g *generator) stop(h *host) {
	a := g.cur
	a.stopping = true
	if a.draining {
		a.draining = false
		h.timer("drain", 0)
	}
	if a.started {
		g.pump(h, a)
	}
}

// stopFrom is stop for the peer that asked.
func (g *generator) stopFrom(h *host, id PeerID, rid string) {
	a := g.cur
	if a == nil || a.asker != id || a.api != nil && a.api.rid != rid {
		return
	}
	g.stop(h)
}

// askerGone stops an answer nobody waits for.
func (g *generator) askerGone(h *host, id PeerID) {
	if g.cur != nil && g.cur.asker == id {
		g.stop(h)
	}
}

// fail ends the answer with an error and forgets what the caches hold.
func (g *generator) fail(h *host, err error) {
	g.known, g.fed = false, nil
	if g.cur == nil {
		return
	}
	g.ghosts = append(g.ghosts, g.cur.flights...)
	g.end(h, DoneFailed, reasonOf(err))
}

// keep files an API answer's ids under its text.
func (g *generator) keep(a *answer) {
	if text := a.writer.content.String(); strings.TrimSpace(text) != "" && a.writer.stops.hit == "" {
		g.recent = pushed(g.recent, replay{text, slices.Clone(a.out)}, maxRecent)
	}
}
