package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"pooled/compute/op"
	"pooled/session/deal"
)

// known says that the model's numbers are in.
func (h *host) known() bool { return h.info.Layers > 0 }

// context is how many positions the caches get: what was asked for within the model's bounds, in steps of 256
// (spec room.md 2.2), else the model's default.
func (h *host) context() int {
	most := h.info.CtxMax
	if h.opts.Ctx <= 0 {
		return min(most, h.info.CtxDefault)
	}
	return min(most, max(min(2048, most), (h.opts.Ctx+128)/256*256))
}

// candidates are the devices that could hold layers, in chain order (spec room.md 4.1).
func (h *host) candidates() []*peer {
	var ps []*peer
	for _, p := range h.peers() {
		if p.linked && p.meta.webgpu {
			ps = append(ps, p)
		}
	}
	return ps
}

// plan makes the deal over the devices now in the room.
func (h *host) plan() (deal.Plan, []*peer) {
	ps := h.candidates()
	r := deal.Room{
		Layers:     h.info.Layers,
		LayerBytes: float64(h.info.LayerBytes) + float64(h.context())*float64(h.info.KVBytes),
		HostBytes:  float64(h.info.HostBytes),
		Pledges:    []float64{float64(h.opts.PledgeBytes)},
		Phone:      []bool{false},
		Spread:     h.opts.SplitEvery,
	}
	for _, p := range ps {
		r.Pledges = append(r.Pledges, p.meta.pledgeGB(0)*deal.GB)
		r.Phone = append(r.Phone, p.meta.isPhone())
	}
	return deal.Make(r), ps
}

// short words what is missing.
func (h *host) short(f deal.Fit, ps []*peer) *Problem {
	names, spare, pledged := []string{h.name}, []float64{0}, float64(h.opts.PledgeBytes)
	for _, p := range ps {
		gb := p.meta.pledgeGB(0)
		names = append(names, p.name)
		spare = append(spare, max(0, p.meta.pledgeMax-gb)*deal.GB)
		pledged += gb * deal.GB
	}
	label, _, _ := strings.Cut(h.info.Label, " ·")
	p := &Problem{Code: "short", Exit: ExitFailed}
	p.What, p.Why, p.Do = f.Sentences(label, names, pledged, spare)
	return p
}

// consider starts the room by itself when the options ask for it.
func (h *host) consider() {
	if h.dealt || h.blocked || h.st.Phase != Waiting || !h.known() || !h.opts.AutoStart && h.opts.StartWith <= 0 {
		return
	}
	if len(h.candidates())+1 < h.opts.StartWith {
		return
	}
	plan, ps := h.plan()
	if !plan.Fit.OK {
		h.blocked = true // until the membership changes: say it once
		p := h.short(plan.Fit, ps)
		if text := p.What + ": " + p.Why + "; " + p.Do; text != h.lacking {
			h.lacking = text
			h.notice(Hint, "short", text)
		}
		return
	}
	h.begins(plan, ps)
}

// reconsider deals again by itself when a device arrives at a room that started by itself and lost one: nobody may be there
// to ask for it.
func (h *host) reconsider() {
	if h.st.Phase != Degraded || !h.opts.AutoStart && h.opts.StartWith <= 0 || len(h.candidates())+1 < h.opts.StartWith {
		return
	}
	if plan, _ := h.plan(); plan.Fit.OK {
		h.notice(Info, "redeal", "dealing again with the device that arrived")
		_ = h.redeal() // it fits: that was looked at
	}
}

func (h *host) startCommand() error {
	switch {
	case h.dealt:
		return ErrStarted
	case h.st.OpenedAt.IsZero():
		return ErrNotOpen
	case !h.known():
		return ErrNoModelYet
	}
	plan, ps := h.plan()
	if !plan.Fit.OK {
		return h.short(plan.Fit, ps)
	}
	h.begins(plan, ps)
	return nil
}

// redeal deals anew over the devices that are in. When they don't hold the model the start is over.
func (h *host) redeal() error {
	if !h.dealt {
		return ErrNotStarted
	}
	plan, ps := h.plan()
	h.gen.fail(h, errors.New("re-dealing the layers"))
	h.broadcast("ai-redeal", func() map[string]any { return map[string]any{"by": h.name, "model": h.info.Key} })
	if !plan.Fit.OK {
		p := h.short(plan.Fit, ps)
		h.abandon(p.What)
		return p
	}
	h.begins(plan, ps)
	return nil
}

// begins sends everyone their layers and loads this device's own (spec room.md 4.2).
func (h *host) begins(plan deal.Plan, ps []*peer) {
	h.epoch++
	h.dealt, h.starting, h.online, h.blocked = true, true, false, false
	h.ctx = h.context()
	h.chain = nil
	clear(h.names)
	h.gen.forget()
	own := h.own()
	*own = peer{id: h.self, name: h.name, meta: h.me, lo: 0, hi: plan.Assigned[0]}
	d := &Deal{Epoch: h.epoch, Ctx: h.ctx, Shares: []Share{{Peer: h.self, Name: h.name, Hi: own.hi, Held: int64(plan.Held[0])}}}
	made := DealMade{Epoch: h.epoch, Model: h.info.Key, Ctx: h.ctx, LeftOut: make(map[PeerID]Out)}
	for i, p := range ps {
		k := plan.Assigned[i+1]
		p.lo, p.hi, p.pct, p.ready = plan.Lo[i+1], plan.Lo[i+1]+k, 0, false
		p.out = Out(plan.Out[i+1])
		if k == 0 {
			p.lo, p.hi = 0, 0
			made.LeftOut[p.id] = p.out
			continue
		}
		h.chain = append(h.chain, p.id)
		h.names[p.id] = p.name
		d.Shares = append(d.Shares, Share{Peer: p.id, Name: p.name, Lo: p.lo, Hi: p.hi, Held: int64(plan.Held[i+1])})
	}
	h.st.Deal = d
	h.st.Context = Context{Max: h.ctx}
	h.st.LoadPct = 0
	h.st.Lap = nil
	h.phase(Loading)
	made.Shares = d.Shares
	for _, p := range h.peers() {
		h.judge(p)
	}
	h.sendLoads()
	h.broadcast("ai-layers", h.layersMsg)
	h.rebuild()
	h.emit(made)
	h.loadOwn()
	h.timer("hostprog", hostProgEvery)
	h.maybeOnline()
}

func (h *host) sendLoads() {
	for i, id := range h.chain {
		next := "host"
		if i+1 < len(h.chain) {
			next = string(h.chain[i+1])
		}
		p := h.members[id]
		h.send(id, "ai-load", map[string]any{"v": protocol, "model": h.info.Key, "range": []any{p.lo, p.hi}, "ctx": h.ctx,
			"kv": op.KVF16.String(), "next": next, "host": string(h.self)})
	}
}

// loadOwn loads this device's layers, unless it holds just them.
func (h *host) loadOwn() {
	h.wanted = LoadSpec{ModelKey: h.info.Key, Lo: 0, Hi: h.own().hi, Head: true, Ctx: h.ctx, KV: op.KVF16}
	if h.loadJob != 0 {
		h.do(abort{h.loadJob})
		h.loadJob = 0
	}
	if h.held != nil && *h.held == h.wanted {
		h.st.LoadPct = 100
		return
	}
	h.held = nil
	h.loadJob = h.run(loadWork{h.wanted})
}

func (h *host) ownLoaded(r result) {
	if r.err != nil {
		if h.gpuLost(r.err) {
			return
		}
		if !errors.Is(r.err, context.Canceled) {
			h.startFailed(h.self, reasonOf(r.err))
		}
		return
	}
	l := r.out.(loaded)
	spec := h.wanted
	h.held, h.text = &spec, l.text
	h.st.Device.UsedBytes = l.used
	h.st.LoadPct = 100
	h.own().ready = true
	h.rebuild()
	h.emit(LoadProgress{Peer: h.self, Percent: 100})
	h.emit(PeerReady{Peer: h.self})
	h.maybeOnline()
}

// maybeOnline opens the room for questions once every device of the deal holds its layers.
func (h *host) maybeOnline() {
	if !h.starting || h.held == nil {
		return
	}
	for _, id := range h.chain {
		if p := h.members[id]; p == nil || !p.linked || !p.ready {
			h.phase(Loaded)
			return
		}
	}
	h.starting, h.online = false, true
	h.timer("hostprog", 0)
	for _, p := range h.peers() {
		h.judge(p)
	}
	h.own().ready = true
	h.rebuild()
	h.phase(Online)
	h.broadcast("ai-ready-all", h.readyAllMsg)
	h.emit(RoomOnline{Epoch: h.epoch})
}

// startFailed ends a start because of one device.
func (h *host) startFailed(id PeerID, why string) {
	if !h.starting {
		return
	}
	name := h.name
	if p := h.members[id]; p != nil {
		name = p.name
	} else if n := h.names[id]; n != "" {
		name = n
	}
	h.emit(LoadFailed{Peer: id, Err: why})
	h.notice(Error, "load", fmt.Sprintf("%s: %s", name, why))
	h.abandon(fmt.Sprintf("%s: %s", name, why))
}

// abandon takes the deal back: everyone frees their layers, the room waits for a new start.
func (h *host) abandon(why string) {
	h.broadcast("ai-start-failed", func() map[string]any { return map[string]any{"why": why} })
	if h.loadJob != 0 {
		h.do(abort{h.loadJob})
		h.loadJob = 0
	}
	h.run(freeWork{})
	h.held, h.chain = nil, nil
	h.dealt, h.starting, h.online, h.blocked = false, false, false, true
	h.gen.forget()
	for _, p := range h.members {
		p.lo, p.hi, p.out, p.pct, p.ready = 0, 0, "", 0, false
	}
	h.st.Deal, h.st.LoadPct, h.st.Device.UsedBytes, h.st.Context = nil, 0, 0, Context{}
	for _, p := range h.peers() {
		h.judge(p)
	}
	h.timer("hostprog", 0)
	h.phase(Waiting)
	h.rebuild()
}

// hostProg tells everyone how far the loads are.
func (h *host) hostProg() {
	if !h.starting {
		return
	}
	h.broadcast("ai-hostprog", func() map[string]any {
		all := map[string]any{h.name: h.st.LoadPct}
		for _, id := range h.chain {
			if p := h.members[id]; p != nil {
				all[p.name] = p.pct
			}
		}
		return map[string]any{"all": all, "at": h.now.UnixMilli()}
	})
	h.timer("hostprog", hostProgEvery)
}

func (h *host) layersMsg() map[string]any {
	by, held := map[string]any{}, map[string]any{}
	for _, s := range h.st.Deal.Shares {
		by[s.Name] = spanText(s.Lo, s.Hi)
		held[s.Name] = pledgeGBof(s.Held)
	}
	return map[string]any{"by": by, "held": held, "out": h.outMsg()}
}

func (h *host) outMsg() map[string]any {
	out := map[string]any{}
	for _, p := range h.peers() {
		if p.out != "" {
			out[p.name] = string(p.out)
		}
	}
	return out
}

func (h *host) readyAllMsg() map[string]any {
	return map[string]any{"model": h.info.Key, "label": h.info.Label, "ctx": h.ctx, "out": h.outMsg()}
}
