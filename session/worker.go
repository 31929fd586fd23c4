package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pooled/compute/op"
	"pooled/netmesh/wire"
	"pooled/session/deal"
)

const (
	nextWait   = 60 * time.Second // for the link to the next device (spec room.md 1.3)
	nextRetry  = 2 * time.Second
	maxPending = 64 // frames waiting for the engine
)

// worker is the role of a device that lends its GPU to a room.
type worker struct {
	guest
	order    *msgLoad // the load asked for last, nil none
	held     *LoadSpec
	wanted   LoadSpec
	modelJob uint64
	loadJob  uint64
	info     ModelInfo
	said     bool // ai-ready is out for this order
	waiting  bool // the timer for the link to the next device runs
	filled   int  // positions the caches hold
	pending  []passing
}

// passing is a frame the engine works on.
type passing struct {
	job   uint64
	frame wire.Frame // without data
}

func newWorker(c *core) *worker { return &worker{guest: guest{core: c}} }

func (w *worker) linked(p *peer) { w.greet(p, w.me.wire()); w.connected(p) }

func (w *worker) hello(p *peer, h msgHello) {
	if p.id == w.host {
		w.hostHello(p, h)
	}
}

func (w *worker) gone(p *peer, why string, leaving bool) {
	next := w.order != nil && w.nextID() == p.id
	w.guest.gone(p, why, leaving)
	if next && !w.closed && p.id != w.host {
		w.notice(Error, "next", fmt.Sprintf("the link to %s, the next device, is gone: %s", p.name, why))
		w.connect()
	}
}

func (w *worker) dialFailed(id PeerID, err error) {
	w.guest.dialFailed(id, err)
	if w.waiting && w.order != nil && id == w.nextID() {
		w.timer("redial", nextRetry)
	}
}

func (w *worker) message(p *peer, msg any) {
	switch m := msg.(type) {
	case msgWait:
		w.phase(Waiting)
	case msgLoad:
		w.load(m)
	case msgLayers:
		w.layers(m)
		if _, in := m.by[w.name]; !in {
			w.leaveDeal(Guest)
		}
	case msgReadyAll:
		switch {
		case w.said:
			w.guest.online(m, Online)
		case w.order == nil:
			w.guest.online(m, Guest)
		}
	case msgStartFailed:
		w.noticeOf(p, Error, "start", "the start failed: "+m.why)
		w.st.Deal = nil
		w.leaveDeal(Waiting)
	case msgDegraded:
		w.degraded(m.why)
	case msgInvReq:
		w.send(p.id, "ai-inv", map[string]any{"url": m.url, "have": []any{}})
	default:
		w.guest.message(msg)
	}
}

// nextID is where results go.
func (w *worker) nextID() PeerID {
	if w.order.next == "host" {
		return w.host
	}
	return w.order.next
}

// refuse tells the host that a load can't be done.
func (w *worker) refuse(why string) {
	w.complain(why, true)
	w.emit(LoadFailed{Peer: w.self, Err: why})
	w.noticeOf(w.members[w.host], Error, "load", why)
	w.leaveDeal(Waiting)
}

func (w *worker) complain(why string, load bool) {
	m := map[string]any{"message": why}
	if load {
		m["load"] = 1
	}
	w.send(w.host, "ai-error", m)
}

// load follows the host's order (spec room.md 1.3).
func (w *worker) load(m msgLoad) {
	switch {
	case m.version != protocol:
		w.complain(fmt.Sprintf("this device speaks room protocol %d, the order is of %d", protocol, m.version), false)
		return
	case m.model == "" || m.hi == 0 || m.ctx == 0 || m.next == "":
		w.refuse("the order to load makes no sense")
		return
	case m.offload:
		w.refuse("this device lends no memory for experts")
		return
	}
	spec := LoadSpec{ModelKey: m.model, Lo: m.lo, Hi: m.hi, Ctx: m.ctx, KV: op.KVF16}
	w.pending, w.filled, w.said = nil, 0, false
	w.order, w.loadCtx = &m, m.ctx
	w.ownRange = [2]int{m.lo, m.hi}
	w.st.Model.Key = m.model
	w.st.Context = Context{Max: m.ctx}
	switch {
	case (w.loadJob != 0 || w.modelJob != 0) && spec == w.wanted: // only where results go may have changed
	case w.held != nil && *w.held == spec:
		w.st.LoadPct = 100
		w.phase(Loaded)
	default:
		w.cancelLoad()
		w.free()
		w.wanted = spec
		w.st.LoadPct = 0
		w.phase(Loading)
		w.modelJob = w.run(modelWork{m.model})
	}
	w.connect()
	w.maybeReady()
}

func (w *worker) cancelLoad() {
	for _, job := range []uint64{w.loadJob, w.modelJob} {
		if job != 0 {
			w.do(abort{job})
		}
	}
	w.loadJob, w.modelJob = 0, 0
}

func (w *worker) free() {
	if w.held != nil {
		w.run(freeWork{})
	}
	w.held = nil
	w.st.Device.UsedBytes = 0
}

// leaveDeal frees the layers; to is where this device stands then.
func (w *worker) leaveDeal(to Phase) {
	loading := w.loadJob != 0
	w.cancelLoad()
	if loading && w.held == nil {
		w.run(freeWork{}) // what the load had so far
	}
	w.free()
	w.order, w.pending, w.said, w.filled = nil, nil, false, 0
	w.st.LoadPct = 0
	w.stopConnecting()
	own := w.own()
	own.lo, own.hi, own.ready, own.pct = 0, 0, false, 0
	w.phase(to)
	w.rebuild()
}

// connect makes sure of the link to the next device.
func (w *worker) connect() {
	if p := w.members[w.nextID()]; p != nil && p.linked {
		w.stopConnecting()
		return
	}
	w.do(dial{w.nextID()})
	if !w.waiting {
		w.waiting = true
		w.timer("next", nextWait)
	}
}

func (w *worker) stopConnecting() {
	if w.waiting {
		w.waiting = false
		w.timer("next", 0)
		w.timer("redial", 0)
	}
}

func (w *worker) connected(p *peer) {
	if w.order != nil && p.id == w.nextID() {
		w.stopConnecting()
		w.maybeReady()
	}
}

func (w *worker) alarm(name string) {
	switch {
	case w.guest.alarm(name):
	case w.order == nil || !w.waiting:
	case name == "redial":
		w.do(dial{w.nextID()})
	case name == "next":
		w.waiting = false
		w.refuse("could not connect to the next device in the chain")
	}
}

// maybeReady says that this device can work: layers in, link to the next one up.
func (w *worker) maybeReady() {
	if w.order == nil || w.said || w.loadJob != 0 || w.modelJob != 0 || w.held == nil || *w.held != w.spec() {
		return
	}
	if p := w.members[w.nextID()]; p == nil || !p.linked {
		return
	}
	w.said = true
	own := w.own()
	own.lo, own.hi, own.ready, own.pct = w.order.lo, w.order.hi, true, 100
	w.phase(Loaded)
	w.rebuild()
	w.send(w.host, "ai-ready", map[string]any{"slots": []any{}, "ckpt": 0})
	w.emit(PeerReady{Peer: w.self})
}

func (w *worker) spec() LoadSpec {
	return LoadSpec{ModelKey: w.order.model, Lo: w.order.lo, Hi: w.order.hi, Ctx: w.order.ctx, KV: op.KVF16}
}

func (w *worker) loading(p progress) {
	if p.id == w.loadJob {
		w.percent(p.percent)
	}
}

// percent tells how far the own load is.
func (w *worker) percent(pct int) {
	if pct = min(100, max(0, pct)); pct == w.st.LoadPct {
		return
	}
	w.st.LoadPct = pct
	w.rebuild()
	w.send(w.host, "ai-progress", map[string]any{"pct": pct})
	w.emit(LoadProgress{Peer: w.self, Percent: pct})
}

func (w *worker) done(r result) {
	switch {
	case r.id == w.modelJob && r.id != 0:
		w.modelJob = 0
		w.modelOpened(r)
	case r.id == w.loadJob && r.id != 0:
		w.loadJob = 0
		w.loadDone(r)
	case len(w.pending) > 0 && w.pending[0].job == r.id:
		p := w.pending[0]
		w.pending = w.pending[1:]
		w.ran(p.frame, r)
	}
}

// modelOpened checks the order against the model and the pledge, then loads.
func (w *worker) modelOpened(r result) {
	if r.err != nil {
		w.refuse(fmt.Sprintf("%s: %s", w.wanted.ModelKey, reasonOf(r.err)))
		return
	}
	w.info = r.out.(ModelInfo)
	w.st.Model = Model{Key: w.info.Key, Label: w.info.Label, Layers: w.info.Layers}
	n := w.wanted.Hi - w.wanted.Lo
	layer := float64(w.info.LayerBytes) + float64(w.wanted.Ctx)*float64(w.info.KVBytes)
	switch most := deal.Caps([]float64{float64(w.opts.PledgeBytes)}, layer, 0)[0]; {
	case w.wanted.Hi > w.info.Layers:
		w.refuse(fmt.Sprintf("asked for layers %d-%d of %s, it has %d", w.wanted.Lo, w.wanted.Hi-1, w.info.Key, w.info.Layers))
	case w.wanted.Ctx > w.info.CtxMax:
		w.refuse(fmt.Sprintf("asked for a context of %d, %s takes %d at most", w.wanted.Ctx, w.info.Key, w.info.CtxMax))
	case n > most:
		w.refuse(fmt.Sprintf("asked to hold %s GB, this device lends %s", deal.Tenths(deal.Up(float64(n)*layer)),
			deal.Tenths(float64(w.opts.PledgeBytes)/deal.GB)))
	default:
		w.loadJob = w.run(loadWork{w.wanted})
	}
}

func (w *worker) loadDone(r result) {
	if r.err != nil {
		if errors.Is(r.err, context.Canceled) {
			return
		}
		w.refuse(reasonOf(r.err))
		w.gpuLost(r.err)
		return
	}
	spec := w.wanted
	w.held = &spec
	w.st.Device.UsedBytes = r.out.(loaded).used
	w.percent(100)
	w.phase(Loaded)
	w.maybeReady()
}

func (w *worker) command(c command) error {
	switch c.do {
	case verbAsk, verbStop, verbClear, verbThinking:
		return ErrNoChat
	}
	return ErrNotHost
}

func (w *worker) closing(reason string) { w.finish(DoneFailed, reason, Stats{}) }
