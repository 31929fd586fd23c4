package session

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pooled/netmesh"
	"pooled/netmesh/invite"
)

// guest is what worker and asker share: a device in somebody else's room, following what the host says.
type guest struct {
	*core
	hostAPI  int  // the newest API asks the host takes, 0 none
	wasIn    bool // the host greeted
	redealt  bool // the next ai-layers is a new deal
	running  bool // an answer is shown
	mid      int  // its number at the host
	lastID   int
	prompt   int // of the running answer
	reused   int
	tokens   int
	first    time.Time // token
	last     time.Time
	loadCtx  int // context of this device's own load, until the room is online
	ownRange [2]int
}

// begin looks for the host.
func (g *guest) begin() {
	wait := greetWait
	if g.opts.Role == Asker {
		wait = askerWait
	}
	g.timer("greet", wait)
	g.do(silence{g.host, hostSilence})
	g.do(dial{g.host})
}

func (g *guest) signal(bool) {}

// dialFailed ends the room when it was the host that could not be reached.
func (g *guest) dialFailed(id PeerID, err error) {
	if id == g.host && !g.wasIn {
		g.close("the room can't be reached", g.unreachable(err))
	}
}

func (g *guest) unreachable(err error) *Problem {
	p := &Problem{Code: "unreachable", What: "the host can't be reached", Why: reasonOf(err), Exit: ExitFailed, Err: err,
		Do: "try again; if it stays like this, ask the host to open a new room"}
	switch {
	case errors.Is(err, netmesh.ErrNoPeer):
		p.Code, p.What, p.Exit = "no-room", fmt.Sprintf("there is no room %s", g.st.Code), ExitNoRoom
		p.Why, p.Do = "nobody answers under that code", "check the code, and that the host is still open"
	case errors.Is(err, netmesh.ErrSignalDown):
		p.Code, p.What = "signal-down", "the signaling server can't be reached"
		p.Do = "try again later, or name another server with --signal"
	case errors.Is(err, netmesh.ErrNoPath):
		p.Code, p.What = "no-path", "the host can't be reached over the network"
		p.Do = "try from another network; both sides need UDP"
	case errors.Is(err, netmesh.ErrTimeout), errors.Is(err, errNoGreeting):
		p.Code, p.What, p.Exit = "no-answer", fmt.Sprintf("the host of room %s doesn't answer", g.st.Code), ExitNoRoom
		p.Do = "check that the host is still running, then try again"
	}
	return p
}

var errNoGreeting = errors.New("no greeting from the host in time")

// hostHello takes the host's greeting.
func (g *guest) hostHello(p *peer, h msgHello) {
	g.timer("greet", 0)
	g.hostAPI = h.meta.api
	p.meta = h.meta
	p.meta.api = 0
	if h.meta.model != "" && g.st.Model.Key == "" {
		g.st.Model.Key = h.meta.model
	}
	p.name = invite.CleanName(h.name, fallbackName(p.id))
	g.st.HostName = p.name
	first := !p.greeted
	p.greeted = true
	g.rebuild()
	if g.wasIn {
		return
	}
	g.wasIn = true
	g.st.OpenedAt = g.now
	g.phase(Waiting)
	g.emit(RoomOpened{Code: g.st.Code, Host: p.name, Server: g.st.Server})
	if first {
		g.emit(PeerJoined{Peer: p.id, Name: p.name, Kind: p.meta.kind(), GPU: p.meta.gpu, PledgeBytes: p.meta.pledgeBytes()})
	}
}

// bye is the last word of a peer; only the host's counts.
func (g *guest) bye(p *peer, b msgBye) {
	if p.id != g.host {
		g.notice(Info, "bye", fmt.Sprintf("%s says: %s", p.name, b.reason))
		g.hang(p, "it said bye")
		return
	}
	if b.closed {
		g.close("the host closed the room", nil)
		return
	}
	if v, ok := versionOfBye(b.reason); ok && v != protocol {
		g.close("another protocol version", versionProblem(v))
		return
	}
	why := b.reason
	if why == "" {
		why = "the host gave no reason"
	}
	g.close(why, &Problem{Code: "refused", What: "the host turned this device away", Why: why, Do: "ask the host",
		Exit: ExitNotLetIn})
}

// gone follows a link that closed; without the host the room is over for this device.
func (g *guest) gone(p *peer, why string, leaving bool) {
	if p.id != g.host {
		if !p.greeted {
			delete(g.members, p.id)
		}
		return
	}
	if leaving {
		why = "the host left"
	}
	g.phase(HostGone)
	if !g.wasIn {
		g.close("the room can't be reached", g.unreachable(fmt.Errorf("%w: %s", netmesh.ErrTimeout, why)))
		return
	}
	g.close("lost the host", &Problem{Code: "host-gone", What: fmt.Sprintf("the link to %s, the host, is gone", g.st.HostName),
		Why: why, Do: "check that the host is still open, then join again", Exit: ExitNoRoom})
}

func (g *guest) alarm(name string) bool {
	if name == "greet" && !g.wasIn {
		g.close("the room can't be reached", g.unreachable(errNoGreeting))
		return true
	}
	return false
}

// message handles what both roles take from the host. It reports whether it knew the message.
func (g *guest) message(msg any) bool {
	switch m := msg.(type) {
	case msgRoster:
		g.roster(m)
	case msgLayers:
		g.layers(m)
	case msgOut:
		for _, p := range append(g.peers(), g.own()) {
			p.out = m.out[p.name]
		}
		g.rebuild()
	case msgHostProg:
		for _, p := range g.peers() {
			if pct, ok := m.all[p.name]; ok && pct != p.pct && p.id != g.self {
				p.pct = pct
				g.rebuild()
				g.emit(LoadProgress{Peer: p.id, Percent: pct})
			}
		}
	case msgRedeal:
		g.redealt = true
		g.noticeOf(g.members[g.host], Info, "redeal", fmt.Sprintf("%s deals the layers again", m.by))
	case msgReset:
		g.st.Chat = nil
		g.noticeOf(g.members[g.host], Info, "clear", "new conversation")
	case msgGenStart:
		g.genStart(m, "")
	case msgToken:
		if g.token(m); g.tooMuch() {
			g.finish(DoneFailed, moreThanAsked, Stats{Tokens: g.tokens, PromptTokens: g.prompt, ReusedTokens: g.reused})
		}
	case msgGenDone:
		g.genDone(m)
	default:
		return false
	}
	return true
}

// roster replaces the member list. This device takes the name it is listed under.
func (g *guest) roster(m msgRoster) {
	in := map[PeerID]bool{g.host: true}
	for _, l := range m.members {
		in[l.id] = true
		if l.id == g.self {
			if g.name != l.name {
				g.name = l.name
				g.own().name = l.name
			}
			continue
		}
		p := g.members[l.id]
		if p == nil {
			p = &peer{id: l.id}
			g.members[l.id] = p
		}
		p.name = l.name
		if l.id != g.host { // the host's own hello says more
			p.meta = l.meta
		}
		if !p.greeted {
			p.greeted = true
			g.emit(PeerJoined{Peer: p.id, Name: p.name, Kind: p.meta.kind(), GPU: p.meta.gpu, PledgeBytes: p.meta.pledgeBytes()})
		}
	}
	for _, p := range g.peers() {
		if in[p.id] {
			continue
		}
		p.greeted = false
		if !p.linked {
			delete(g.members, p.id)
		}
		g.emit(PeerLeft{Peer: p.id, Name: p.name, Reason: "left"})
	}
	g.rebuild()
}

// layers notes who holds what. The same deal may be told more than once.
func (g *guest) layers(m msgLayers) {
	byName := map[string]*peer{g.name: g.own()}
	for _, p := range g.peers() {
		byName[p.name] = p
	}
	var shares []Share
	for name, r := range m.by {
		s := Share{Name: name, Lo: r[0], Hi: r[1], Held: int64(m.held[name] * (1 << 30))}
		if p := byName[name]; p != nil {
			s.Peer = p.id
		}
		shares = append(shares, s)
	}
	slices.SortFunc(shares, func(a, b Share) int {
		if a.Lo != b.Lo {
			return a.Lo - b.Lo
		}
		return strings.Compare(a.Name, b.Name)
	})
	out := make(map[PeerID]Out)
	for name, p := range byName {
		r := m.by[name]
		p.lo, p.hi, p.out = r[0], r[1], m.out[name]
		if p.out != "" {
			out[p.id] = p.out
		}
	}
	same := g.st.Deal != nil && !g.redealt && slices.Equal(g.st.Deal.Shares, shares)
	g.redealt = false
	if n := len(shares); n > 0 {
		g.st.Model.Layers = max(g.st.Model.Layers, shares[n-1].Hi)
	}
	g.rebuild()
	if same {
		return
	}
	for _, p := range g.peers() {
		p.ready, p.pct = false, 0
	}
	d := &Deal{Epoch: 1, Ctx: g.loadCtx, Shares: shares}
	if g.st.Deal != nil {
		d.Epoch = g.st.Deal.Epoch + 1
	}
	g.st.Deal = d
	g.st.Lap = nil
	g.rebuild()
	g.emit(DealMade{Epoch: d.Epoch, Model: g.st.Model.Key, Ctx: d.Ctx, Shares: shares, LeftOut: maps.Clone(out)})
}

// online notes that every device of the deal holds its layers; here is the phase of this device.
func (g *guest) online(m msgReadyAll, here Phase) {
	if m.model != "" {
		g.st.Model.Key = m.model
	}
	if m.label != "" {
		g.st.Model.Label = m.label
	}
	if m.ctx > 0 {
		g.st.Context.Max = m.ctx
	}
	g.dirty = true
	if g.st.Phase == here && !g.st.OnlineAt.IsZero() {
		return
	}
	for _, p := range append(g.peers(), g.own()) {
		if p.lo < p.hi {
			p.ready, p.pct = true, 100
		}
	}
	epoch := 1
	if g.st.Deal != nil {
		d := *g.st.Deal
		d.Ctx, epoch = max(d.Ctx, m.ctx), d.Epoch
		g.st.Deal = &d
	}
	g.phase(here)
	g.st.OnlineAt = g.now
	g.rebuild()
	g.emit(RoomOnline{Epoch: epoch})
}

// degraded notes that a device of the deal left. The host names no id, so the event has none.
func (g *guest) degraded(why string) {
	if g.st.Phase == Degraded {
		return
	}
	g.phase(Degraded)
	g.emit(RoomDegraded{Why: why})
}

// genStart shows a new answer. question is this device's own, else the message's.
func (g *guest) genStart(m msgGenStart, question string) {
	if g.running {
		g.finish(DoneFailed, "the host began another answer", Stats{})
	}
	if question == "" && !m.hidden {
		question = m.text
	}
	g.lastID = max(g.lastID+1, m.mid)
	g.running, g.mid, g.prompt, g.reused, g.tokens = true, m.mid, m.promptTokens, m.reused, 0
	g.first, g.last = time.Time{}, time.Time{}
	g.progress = answerText{}
	g.st.Answering = true
	g.st.Answer = &Exchange{ID: g.lastID, Asker: m.asker, Name: m.name, Question: question, API: m.api, Started: g.now}
	g.emit(AnswerStarted{ID: g.lastID, Asker: m.asker, Name: m.name, Text: question, API: m.api,
		PromptTokens: m.promptTokens, ReusedTokens: m.reused})
}

// token shows the next piece.
func (g *guest) token(m msgToken) {
	if !g.running {
		return
	}
	g.tokens++
	g.last = g.now
	if g.first.IsZero() {
		g.first = g.now
	}
	if text := cleanText(m.text); text != "" {
		g.say(g.lastID, text, m.reasoning)
	}
}

// tooMuch says that the shown answer is longer than any can be.
func (g *guest) tooMuch() bool { return g.progress.text.Len()+g.progress.think.Len() > maxAnswer }

const moreThanAsked = "the host sent more than was asked for"

var hostReason = map[string]DoneReason{"stop": DoneStop, "stop_seq": DoneStop, "max": DoneLength, "ctx": DoneContext,
	"abort": DoneStopped, "error": DoneFailed}

func (g *guest) genDone(m msgGenDone) {
	if !g.running {
		return
	}
	reason, known := hostReason[m.reason]
	switch {
	case m.failed:
		reason = DoneFailed
	case !known && m.capped:
		reason = DoneLength
	case !known:
		reason = DoneStop
	}
	if m.max > 0 {
		g.st.Context = Context{Used: m.used, Max: m.max}
	}
	s := Stats{Tokens: max(m.out, g.tokens), PromptTokens: max(g.prompt, m.in), ReusedTokens: max(g.reused, m.reused),
		PerSec: m.perSec}
	if !g.first.IsZero() {
		s.FirstSec = g.first.Sub(g.st.Answer.Started).Seconds()
		s.DecodeSec = g.last.Sub(g.first).Seconds()
	}
	if s.PerSec == 0 {
		s.PerSec = perSec(g.tokens, g.last.Sub(g.first))
	}
	why := ""
	if reason == DoneFailed {
		if why = m.err; why == "" {
			why = "the host gave no reason"
		}
	}
	g.finish(reason, why, s)
}

// finish ends the answer that is shown.
func (g *guest) finish(reason DoneReason, why string, s Stats) {
	if !g.running {
		return
	}
	g.running = false
	g.answered(AnswerDone{ID: g.lastID, Reason: reason, Err: why, Stats: s})
}
