package session

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pooled/compute/op"
	"pooled/compute/token"
	"pooled/netmesh/invite"
)

// hostProgEvery is how often the devices are told how far all loads are (spec room.md 1.3).
const hostProgEvery = 600 * time.Millisecond

// rosterWait is how long changes of members are collected before everyone is told.
const rosterWait = 200 * time.Millisecond

// host is the role of the device that opened the room.
type host struct {
	*core
	info     ModelInfo
	modelJob uint64

	// The deal. chain is empty when the host holds every layer; dealt is false before the first deal and after a
	// failed start.
	dealt    bool
	starting bool // loads are running
	online   bool
	epoch    int
	ctx      int
	chain    []PeerID
	names    map[PeerID]string // of the chain, also after a device left
	blocked  bool              // starting by itself waits for the membership to change
	listing  bool              // the timer for the next roster runs
	lacking  string            // what was last said of a room that is short

	// Own layers.
	held    *LoadSpec // nil: none
	loadJob uint64    // 0: no load running
	wanted  LoadSpec  // what loadJob loads
	text    text

	chat chat // the room's conversation
	gen  generator
}

func newHost(c *core) *host {
	c.st.Model.Key = c.opts.ModelKey
	c.st.HostName = c.name
	h := &host{core: c, names: make(map[PeerID]string)}
	h.gen.init(c.opts)
	h.chat.think = c.opts.Think
	return h
}

func (h *host) begin() { h.modelJob = h.run(modelWork{h.opts.ModelKey}) }

func (h *host) signal(up bool) {
	if !up || !h.st.OpenedAt.IsZero() {
		return
	}
	h.st.OpenedAt = h.now
	h.phase(Waiting)
	h.emit(RoomOpened{Code: h.st.Code, Host: h.name, Server: h.st.Server})
	h.consider()
}

func (h *host) linked(p *peer) {
	p.greeted = false
	w := h.me.wire()
	w["api"] = 1
	w["model"] = h.opts.ModelKey
	if h.ctx > 0 {
		w["ctx"] = h.ctx
	}
	h.greet(p, w)
}

func (h *host) hello(p *peer, m msgHello) {
	first := !p.greeted
	if first && len(h.peers())+1 >= maxMembers {
		h.send(p.id, "bye", map[string]any{"reason": fmt.Sprintf("the room is full (%d devices)", maxMembers)})
		h.hangUp(p.id, "the room is full")
		return
	}
	p.meta = m.meta
	if p.meta.isAPI() {
		p.meta = meta{ua: "API", api: 1, client: invite.CleanName(m.meta.client, "API")}
	} else {
		p.meta.api, p.meta.ctx, p.meta.model = 0, 0, ""
	}
	p.name = h.unique(invite.CleanName(m.name, fallbackName(p.id)), p.id)
	p.greeted = true
	inChain := slices.Contains(h.chain, p.id)
	if h.dealt && !inChain && p.meta.webgpu {
		p.out = OutLate
	}
	h.rebuild()
	h.judge(p)
	if first {
		h.emit(PeerJoined{Peer: p.id, Name: p.name, Kind: p.meta.kind(), GPU: p.meta.gpu, PledgeBytes: p.meta.pledgeBytes()})
		h.blocked = false
	}
	if first {
		h.roster()
	} else {
		h.rosterSoon()
	}
	if first && (!inChain || p.ready) {
		h.welcome(p)
	}
	if first && p.meta.webgpu {
		h.reconsider()
	}
	h.consider()
}

// judge sets how long a device may be silent.
func (h *host) judge(p *peer) {
	limit := time.Duration(0)
	switch inChain := slices.Contains(h.chain, p.id); {
	case p.meta.isPhone():
		limit = phoneSilence
	case inChain && h.starting:
		limit = startSilence
	case inChain && h.online:
		limit = chainSilence
	}
	if p.silence != limit {
		p.silence = limit
		h.do(silence{p.id, limit})
	}
}

// unique makes a name that nobody else in the room has (spec room.md 1.2).
func (h *host) unique(name string, id PeerID) string {
	taken := []string{h.name}
	for _, p := range h.peers() {
		if p.id != id {
			taken = append(taken, p.name)
		}
	}
	return invite.UniqueName(name, taken)
}

// welcome tells a newcomer where the room stands. Receivers take it any number of times.
func (h *host) welcome(p *peer) {
	if !h.dealt {
		if !p.meta.isAPI() {
			h.send(p.id, "ai-wait", nil)
		}
		return
	}
	h.send(p.id, "ai-layers", h.layersMsg())
	switch {
	case h.online:
		h.send(p.id, "ai-ready-all", h.readyAllMsg())
	case h.st.Phase == Degraded:
		h.send(p.id, "ai-degraded", map[string]any{"why": ErrDegraded.Error()})
	}
	if p.out == OutLate {
		h.broadcast("ai-out", func() map[string]any { return map[string]any{"out": h.outMsg()} })
	}
}

// rosterSoon is roster for changes that a member can make as often as it likes: they go out together.
func (h *host) rosterSoon() {
	if !h.listing {
		h.listing = true
		h.timer("roster", rosterWait)
	}
}

// roster tells everyone who is in, the host first.
func (h *host) roster() {
	if h.listing {
		h.listing = false
		h.timer("roster", 0)
	}
	h.broadcast("roster", func() map[string]any {
		members := []any{map[string]any{"id": string(h.self), "name": h.name, "meta": h.me.wire()}}
		for _, p := range h.peers() {
			members = append(members, map[string]any{"id": string(p.id), "name": p.name, "meta": p.meta.wire()})
		}
		return map[string]any{"members": members}
	})
}

// broadcast sends a message to every member. build makes it anew for each, since a map sent is given away.
func (h *host) broadcast(t string, build func() map[string]any) {
	for _, p := range h.peers() {
		h.send(p.id, t, build())
	}
}

func (h *host) gone(p *peer, why string, leaving bool) {
	delete(h.members, p.id)
	if !p.greeted {
		return
	}
	if leaving {
		why = "left"
	}
	if p.silence != 0 {
		h.do(silence{p.id, 0})
	}
	h.emit(PeerLeft{Peer: p.id, Name: p.name, Reason: why})
	h.rebuild()
	h.roster()
	h.gen.askerGone(h, p.id)
	if slices.Contains(h.chain, p.id) {
		h.lost(p, why)
	}
	h.blocked = false
	h.consider()
}

// lost handles a device of the deal that is gone: a start ends, an online room can't answer until a re-deal. The room
// lives on.
func (h *host) lost(p *peer, why string) {
	text := fmt.Sprintf("%s left (layers %d-%d)", p.name, p.lo, p.hi-1)
	if p.linked {
		text = fmt.Sprintf("%s left its layers (%d-%d)", p.name, p.lo, p.hi-1)
		p.ready = false
		h.rebuild()
	}
	if h.starting {
		h.startFailed(p.id, text)
		return
	}
	h.online = false
	h.phase(Degraded)
	h.gen.fail(h, errors.New(text))
	h.broadcast("ai-degraded", func() map[string]any { return map[string]any{"why": text} })
	h.emit(RoomDegraded{Peer: p.id, Why: text})
	h.notice(Error, "degraded", text+": "+why)
	h.notice(Hint, "redeal", "deal the layers again over the devices that are left, or wait for it to join again and re-deal")
}

func (h *host) dialFailed(PeerID, error) {}

func (h *host) bye(p *peer, b msgBye) {
	if b.reason != "" {
		h.notice(Info, "bye", fmt.Sprintf("%s says: %s", p.name, b.reason))
	}
	h.hang(p, "it said bye")
}

func (h *host) message(p *peer, msg any) {
	inChain := slices.Contains(h.chain, p.id)
	switch m := msg.(type) {
	case msgPledge:
		if p.meta.contribGB == m.gb {
			return
		}
		p.meta.contribGB = m.gb
		h.rebuild()
		h.rosterSoon()
	case msgProgress:
		if inChain && p.pct != m.percent {
			p.pct = m.percent
			h.rebuild()
			h.emit(LoadProgress{Peer: p.id, Percent: m.percent})
		}
	case msgReady:
		if inChain && !p.ready {
			p.ready, p.pct = true, 100
			h.rebuild()
			h.emit(PeerReady{Peer: p.id})
			h.maybeOnline()
		}
	case msgError:
		if inChain {
			h.workerError(p, m)
		}
	case msgAsk:
		h.gen.asked(h, p, m)
	case msgStop:
		h.gen.stopFrom(h, p.id, m.rid)
	}
}

func (h *host) workerError(p *peer, m msgError) {
	if m.message == "" {
		m.message = "an error without words"
	}
	switch {
	case h.starting && !p.ready:
		h.startFailed(p.id, m.message)
	case m.load && h.online: // it gave its layers up
		h.lost(p, m.message)
	case h.gen.running():
		h.gen.fail(h, fmt.Errorf("%s: %s", p.name, m.message))
	default:
		h.noticeOf(p, Error, "worker", fmt.Sprintf("%s: %s", p.name, m.message))
	}
}

func (h *host) loading(p progress) {
	if p.id == h.loadJob && p.percent != h.st.LoadPct {
		h.st.LoadPct = min(100, max(0, p.percent))
		h.rebuild()
		h.emit(LoadProgress{Peer: h.self, Percent: h.st.LoadPct})
	}
}

func (h *host) alarm(name string) {
	switch name {
	case "hostprog":
		h.hostProg()
	case "roster":
		h.listing = false
		h.roster()
		h.blocked = false
		h.consider()
	case "lap":
		h.gen.checkLaps(h)
	case "drain":
		h.gen.drained(h, true)
	}
}

func (h *host) command(c command) error {
	switch c.do {
	case verbAsk:
		return h.gen.askHere(h, c.text)
	case verbStop:
		if !h.gen.running() {
			return ErrNothingRunning
		}
		h.gen.stop(h)
	case verbClear:
		if h.gen.running() && h.gen.cur.api == nil {
			return ErrAnswering
		}
		h.clear()
	case verbThinking:
		h.chat.think = c.on
	case verbStart:
		return h.startCommand()
	case verbRedeal:
		return h.redeal()
	}
	return nil
}

// clear forgets the conversation. The caches keep what they hold.
func (h *host) clear() {
	h.chat.turns = nil
	h.st.Chat = nil
	if !h.gen.running() {
		h.st.Answer = nil
	}
	h.broadcast("ai-reset", func() map[string]any { return map[string]any{"by": h.name} })
	h.notice(Info, "clear", "new conversation")
}

func (h *host) done(r result) {
	switch {
	case r.id == h.modelJob && r.id != 0:
		h.modelJob = 0
		h.modelOpened(r)
	case r.id == h.loadJob && r.id != 0:
		h.loadJob = 0
		h.ownLoaded(r)
	default:
		h.gen.done(h, r)
	}
}

func (h *host) modelOpened(r result) {
	if r.err != nil {
		h.close("the model can't be opened", &Problem{Code: "model", What: fmt.Sprintf("%s can't be opened", h.opts.ModelKey),
			Why: reasonOf(r.err), Do: "check the model with pooled list", Exit: ExitFailed, Err: r.err})
		return
	}
	h.info = r.out.(ModelInfo)
	h.st.Model = Model{Key: h.info.Key, Label: h.info.Label, Layers: h.info.Layers}
	h.dirty = true
	if h.opts.Ctx > h.info.CtxMax {
		h.notice(Hint, "ctx", fmt.Sprintf("asked for a context of %d, %s takes %d at most: using that", h.opts.Ctx, h.info.Label,
			h.info.CtxMax))
	}
	h.consider()
}

func (h *host) closing(reason string) {
	h.gen.end(h, DoneStopped, "")
	h.broadcast("bye", func() map[string]any { return map[string]any{"reason": "the host closed the room", "closed": 1} })
}

// chat is the room's own conversation.
type chat struct {
	turns []token.Turn
	think bool
}

// gpuLost ends the room when an engine error says that the device is gone.
func (c *core) gpuLost(err error) bool {
	if !errors.Is(err, op.ErrLost) {
		return false
	}
	c.close("the GPU was lost", &Problem{Code: "gpu-lost", What: "the GPU device was lost", Why: reasonOf(err),
		Do: "start pooled again; if it comes back, update the graphics driver", Exit: ExitFailed, Err: err})
	return true
}
