package session

import (
	"fmt"
	"time"

	"pooled/compute/token"
	"pooled/netmesh"
	"pooled/netmesh/wire"
)

// sendCut sends a part of the prompt that went through the host's layers.
func (g *generator) sendCut(h *host, a *answer, data []byte, took time.Duration) {
	if a.stopping {
		g.pump(h, a)
		return
	}
	c := a.sending
	a.sending = cut{}
	tokens := a.prompt[a.base+c.at : a.base+c.at+c.n]
	g.fly(h, a, flight{n: c.n, batch: c.kind != cutToken, head: c.head, host: took}, data, tokens)
	g.pump(h, a)
}

// fly sends columns into the chain. fed advances now: every device will have them, in order.
func (g *generator) fly(h *host, a *answer, f flight, data []byte, tokens []int32) {
	f.pos, f.sent, f.limit = len(g.fed), h.now, tokenLimit
	frame := &wire.Frame{Kind: wire.Hidden, Pos: uint32(f.pos), N: f.n, Reset: f.pos == 0, Data: data}
	if f.batch {
		frame.Kind, f.limit = wire.HiddenB, batchLimit
	}
	if f.decode {
		f.limit = g.stat.limit(tokenLimit, g.slowest(h))
	}
	h.do(sendFrame{h.chain[0], frame})
	g.fed = append(g.fed, tokens...)
	a.flights = append(a.flights, f)
	if due := h.now.Add(f.limit); g.due.IsZero() || due.Before(g.due) {
		g.due = due
		h.timer("lap", f.limit)
	}
}

// slowest is the chain's largest round trip.
func (g *generator) slowest(h *host) time.Duration {
	var d time.Duration
	for _, id := range h.chain {
		if p := h.members[id]; p != nil {
			d = max(d, p.rtt)
		}
	}
	return d
}

// frame takes what comes back from the chain's last device.
func (h *host) frame(p *peer, in netmesh.FrameIn) {
	g, f := &h.gen, in.Frame
	if len(h.chain) == 0 || p.id != h.chain[len(h.chain)-1] || f.Kind != wire.HiddenRet && f.Kind != wire.HiddenRetB {
		return
	}
	is := func(fl flight) bool {
		return fl.pos == int(f.Pos) && fl.n == max(1, f.N) && fl.batch == (f.Kind == wire.HiddenRetB)
	}
	a := g.cur
	if a == nil || len(a.flights) == 0 || !is(a.flights[0]) {
		for i, fl := range g.ghosts {
			if is(fl) {
				g.ghosts = append(g.ghosts[:i:i], g.ghosts[i+1:]...)
				g.drained(h, false)
				break
			}
		}
		return
	}
	fl := a.flights[0]
	a.flights = a.flights[1:]
	g.stale = nil
	if want := 2 * fl.n * h.info.Width; len(f.Data) != want {
		g.fail(h, fmt.Errorf("%s sent %d bytes for %d positions, want %d", p.name, len(f.Data), fl.n, want))
		return
	}
	if fl.decode {
		g.measure(h, fl, len(h.chain)+1)
	}
	if a.stopping || !fl.head {
		g.pump(h, a)
		return
	}
	a.job = h.run(stepWork{data: f.Data, n: fl.n, pos: len(g.fed), run: g.mayRun(h, a), draw: *g.draw(h, a)})
}

func (g *generator) measure(h *host, fl flight, hops int) {
	host := millis(fl.host)
	total := host + millis(h.now.Sub(fl.sent))
	g.stat.add(total, host)
	h.emit(Lap{TotalMs: total, HostMs: host, Hops: hops})
}

// mayRun says whether the next token goes through the layers after it is drawn: not when it is the last one anyway.
func (g *generator) mayRun(h *host, a *answer) bool {
	return len(g.fed) < h.ctx-1 && len(a.out)+1 < a.maxNew && !a.budgetSpent()
}

// budgetSpent says that the next token is the last one inside the think block.
func (a *answer) budgetSpent() bool {
	return a.api != nil && a.api.params.thinkBudget > 0 && a.writer.split.state == splitThink &&
		a.inThink+1 >= a.api.params.thinkBudget
}

// drew takes the next token (or, on a host that holds every layer, the end of a part of the prompt).
func (g *generator) drew(h *host, a *answer, d drawn, took time.Duration) {
	if len(h.chain) == 0 {
		g.soloRan(h, a, took)
	}
	switch {
	case !d.drew:
		g.pump(h, a)
	case a.stopping:
		g.end(h, DoneStopped, "")
	case d.stop:
		g.end(h, DoneStop, "")
	default:
		g.token(h, a, d, took)
	}
}

// soloRan accounts for tokens that went through a host with every layer.
func (g *generator) soloRan(h *host, a *answer, took time.Duration) {
	if c := a.sending; c.n > 0 {
		a.sending = cut{}
		g.fed = append(g.fed, a.prompt[a.base+c.at:a.base+c.at+c.n]...)
		return
	}
	g.fed = append(g.fed, a.out[len(a.out)-1])
	g.stat.add(millis(took), millis(took))
	h.emit(Lap{TotalMs: millis(took), HostMs: millis(took)})
}

// token emits a token and sends it on its lap, the frame first.
func (g *generator) token(h *host, a *answer, d drawn, took time.Duration) {
	spent := a.budgetSpent()
	capped := len(g.fed) >= h.ctx-1 || len(a.out)+1 >= a.maxNew
	a.last = h.now
	if len(a.out) == 0 {
		a.first = h.now
	}
	a.out = append(a.out, d.token)
	if a.writer.split.state == splitThink {
		a.inThink++
	}
	pieces := a.writer.push(d.token)
	hit := a.writer.stops.hit != ""
	if d.next != nil && !hit {
		g.fly(h, a, flight{n: 1, head: true, decode: true, host: took}, d.next, []int32{d.token})
	}
	g.emitText(h, a, pieces)
	switch {
	case hit:
		g.end(h, DoneStop, "")
	case capped && len(g.fed) >= h.ctx-2:
		g.end(h, DoneContext, "")
	case capped:
		g.end(h, DoneLength, "")
	case spent:
		g.closeThink(h, a)
	case len(h.chain) == 0:
		a.job = h.run(soloWork{pos: len(g.fed), tokens: []int32{d.token}, draw: g.draw(h, a)})
	}
}

// closeThink ends the think block for the model when its budget is spent (spec room.md 6.8).
func (g *generator) closeThink(h *host, a *answer) {
	ids, err := h.text.tok.Segments(nil, []token.Segment{{Text: "\n"}, {Special: closeThink}, {Text: "\n\n"}})
	if err != nil {
		g.fail(h, err)
		return
	}
	from := len(g.fed)
	if from+1+len(ids) >= h.ctx-1 || len(a.out)+len(ids) >= a.maxNew {
		g.end(h, DoneLength, "")
		return
	}
	a.prompt = append(append(append([]int32(nil), g.fed...), a.out[len(a.out)-1]), ids...)
	for _, id := range ids {
		a.out = append(a.out, id)
		g.emitText(h, a, a.writer.push(id))
	}
	g.prefill(h, a, from)
}

// unsent fails the answer whose frame could not leave.
func (h *host) unsent(id PeerID, err error) {
	name := h.names[id]
	if p := h.members[id]; p != nil {
		name = p.name
	}
	h.gen.fail(h, fmt.Errorf("could not connect to %s: %w", name, err))
}

// checkLaps fails the answer when its oldest frame has been away for too long, else looks again when it would be.
func (g *generator) checkLaps(h *host) {
	g.due = time.Time{}
	if g.cur == nil || len(g.cur.flights) == 0 {
		return
	}
	fl := g.cur.flights[0]
	left := fl.limit - h.now.Sub(fl.sent)
	if left > 0 {
		g.due = h.now.Add(left)
		h.timer("lap", left)
		return
	}
	what := "token"
	switch {
	case fl.batch:
		what = "batch"
	case !fl.decode:
		what = "prompt token"
	}
	g.fail(h, fmt.Errorf("pipeline timeout (%s): a device in the room stopped answering", what))
}
