package session

import (
	"fmt"
	"slices"

	"pooled/netmesh"
	"pooled/netmesh/wire"
)

// frame runs what comes from the device before this one, in the order it comes.
func (w *worker) frame(p *peer, in netmesh.FrameIn) {
	f := in.Frame
	if w.order == nil || f.Kind != wire.Hidden && f.Kind != wire.HiddenB || !w.before(p) {
		return
	}
	if !w.said { // the host took an older word of ours for this order's
		w.complain("its layers are still loading", false)
		return
	}
	n := max(1, f.N)
	switch {
	case len(w.pending) >= maxPending:
		w.hangUp(p.id, "it sent more frames than can be waited for")
		return
	case len(f.Data) != 2*n*w.info.Width || f.Kind == wire.Hidden && n != 1:
		w.complain(fmt.Sprintf("a frame of %d bytes for %d positions of %d values", len(f.Data), n, w.info.Width), false)
		return
	case f.Load != 0:
		w.complain("this device keeps no checkpoints", false)
		return
	}
	if f.Reset {
		w.filled = 0
	}
	pos := int(f.Pos)
	if pos > w.filled || pos+n > w.wanted.Ctx {
		w.complain(fmt.Sprintf("a frame at position %d, the caches hold %d of %d", pos, w.filled, w.wanted.Ctx), false)
		return
	}
	w.filled = pos + n
	job := w.run(hiddenWork{pos: pos, n: n, data: f.Data})
	f.Data, f.N = nil, n
	w.pending = append(w.pending, passing{job, f})
}

// before says whether a peer is the device whose results come here: the one whose layers end where these begin. Until
// the deal is known any member will do.
func (w *worker) before(p *peer) bool {
	if w.st.Deal == nil {
		return w.said
	}
	i := slices.IndexFunc(w.st.Deal.Shares, func(s Share) bool { return s.Hi == w.order.lo })
	return i >= 0 && w.st.Deal.Shares[i].Peer == p.id
}

// ran passes a result on, with the control it came with; to the host it goes as a return, which carries none.
func (w *worker) ran(f wire.Frame, r result) {
	if r.err != nil {
		w.complain(reasonOf(r.err), false)
		w.noticeOf(w.members[w.host], Error, "frame", reasonOf(r.err))
		w.gpuLost(r.err)
		return
	}
	f.Data = r.out.([]byte)
	if w.nextID() == w.host {
		ret := wire.Frame{Kind: wire.HiddenRet, Pos: f.Pos, N: f.N, Spec: f.Spec, Data: f.Data}
		if f.Kind == wire.HiddenB {
			ret.Kind = wire.HiddenRetB
		}
		f = ret
	}
	w.do(sendFrame{w.nextID(), &f})
	w.st.Passes++
	w.dirty = true
}

func (w *worker) unsent(id PeerID, err error) {
	name := string(id)
	if p := w.members[id]; p != nil {
		name = p.name
	}
	w.complain(fmt.Sprintf("could not connect to %s: %s", name, reasonOf(err)), false)
}
