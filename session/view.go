package session

import (
	"slices"
	"strings"
	"time"

	"pooled/session/deal"
)

// rebuild makes State.Peers anew.
func (c *core) rebuild() {
	c.dirty = true
	var list []Peer
	for _, p := range c.peers() {
		if p.id == c.self {
			continue
		}
		list = append(list, Peer{ID: p.id, Name: p.name, Kind: p.meta.kind(), GPU: p.meta.gpu,
			PledgeBytes: p.meta.pledgeBytes(), Host: p.id == c.host, Lo: p.lo, Hi: p.hi, Out: p.out,
			LoadPct: p.pct, Ready: p.ready, RTTms: millis(p.rtt), Path: p.path})
	}
	me := Peer{ID: c.self, Name: c.name, Kind: c.me.kind(), GPU: c.me.gpu, PledgeBytes: c.opts.PledgeBytes, Self: true,
		Host: c.self == c.host, LoadPct: c.st.LoadPct}
	if own := c.members[c.self]; own != nil {
		me.Lo, me.Hi, me.Out, me.Ready = own.lo, own.hi, own.out, own.ready
	}
	list = append(list, me)
	slices.SortFunc(list, func(a, b Peer) int {
		if a.Host != b.Host {
			if a.Host {
				return -1
			}
			return 1
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	c.st.Peers = list
}

// own is this device's own entry among the members, for what a deal gives it.
func (c *core) own() *peer {
	p := c.members[c.self]
	if p == nil {
		p = &peer{id: c.self, name: c.name, meta: c.me}
		c.members[c.self] = p
	}
	return p
}

// snapshot returns an immutable copy of the state. Slices are shared: they are never written.
func (c *core) snapshot() *State {
	st := c.st
	st.SelfName = c.name
	if st.Answer != nil {
		x := *st.Answer
		x.Text, x.Thinking = c.progress.text.String(), c.progress.think.String()
		st.Answer = &x
	}
	c.dirty = false
	return &st
}

// pushed returns a copy of the ring with one more element, the oldest dropped past most.
func pushed[T any](ring []T, e T, most int) []T {
	keep := ring[max(0, len(ring)+1-most):]
	next := make([]T, 0, len(keep)+1)
	return append(append(next, keep...), e)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// pledgeGBof is a pledge as it goes over the wire.
func pledgeGBof(bytes int64) float64 { return float64(bytes) / deal.GB }

func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return cleanLine(err.Error(), maxReason)
}
