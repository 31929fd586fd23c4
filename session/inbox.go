package session

import (
	"sync"

	"pooled/netmesh"
)

// What the inbox keeps of one peer before the loop took it up.
const (
	peerItems = 2048
	peerBytes = 32 << 20
)

// inbox is the loop's queue. Putting never blocks. It is not bounded as a whole, but per peer: what one peer sent past
// its bounds is thrown away with everything else it sent, and the loop gets flooded in its place, once per link.
type inbox struct {
	mu     sync.Mutex
	items  []any
	load   map[PeerID]*backlog
	closed bool
	wake   chan struct{}
}

type backlog struct {
	items, bytes int
	over         bool
}

func newInbox() *inbox {
	return &inbox{load: make(map[PeerID]*backlog), wake: make(chan struct{}, 1)}
}

// put queues something of this process's own.
func (b *inbox) put(msg any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.push(msg)
}

// deliver queues a network event.
func (b *inbox) deliver(ev netmesh.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case netmesh.Message:
		b.count(ev.Peer, weigh(ev.Msg, 0), ev)
	case netmesh.FrameIn:
		b.count(ev.Peer, 64+len(ev.Frame.Data), ev)
	case netmesh.LinkUp:
		b.forgive(ev.Peer)
		b.push(ev)
	case netmesh.LinkDown:
		b.forgive(ev.Peer)
		b.push(ev)
	default:
		b.push(ev)
	}
}

// forgive starts a peer's account anew if it was over its bounds; nothing of it waits then.
func (b *inbox) forgive(peer PeerID) {
	if l := b.load[peer]; l != nil && l.over {
		delete(b.load, peer)
	}
}

func (b *inbox) count(peer PeerID, bytes int, ev netmesh.Event) {
	l := b.load[peer]
	if l == nil {
		l = &backlog{}
		b.load[peer] = l
	}
	if l.over || b.closed {
		return
	}
	l.items++
	l.bytes += bytes
	if l.items <= peerItems && l.bytes <= peerBytes {
		b.push(ev)
		return
	}
	l.items, l.bytes, l.over = 0, 0, true
	kept := b.items[:0]
	for _, it := range b.items {
		if from, _ := weight(it); from != peer || from == "" {
			kept = append(kept, it)
		}
	}
	clear(b.items[len(kept):])
	b.items = kept
	b.push(flooded{peer: peer})
}

func (b *inbox) push(msg any) {
	if b.closed {
		return
	}
	b.items = append(b.items, msg)
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take removes the oldest item.
func (b *inbox) take() (any, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.items) == 0 {
		b.items = nil
		return nil, false
	}
	it := b.items[0]
	b.items[0] = nil
	b.items = b.items[1:]
	if peer, bytes := weight(it); peer != "" {
		l := b.load[peer]
		l.items--
		l.bytes -= bytes
		if l.items == 0 && !l.over {
			delete(b.load, peer)
		}
	}
	return it, true
}

// close throws everything away, now and later.
func (b *inbox) close() []any {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	left := b.items
	b.items = nil
	return left
}

// weight returns which peer an item counts against, and for how much.
func weight(it any) (PeerID, int) {
	switch ev := it.(type) {
	case netmesh.Message:
		return ev.Peer, weigh(ev.Msg, 0)
	case netmesh.FrameIn:
		return ev.Peer, 64 + len(ev.Frame.Data)
	}
	return "", 0
}

// weigh estimates the memory of a message.
func weigh(v any, depth int) int {
	const each = 32
	if depth > 16 {
		return each
	}
	n := each
	switch v := v.(type) {
	case string:
		n += len(v)
	case []byte:
		n += len(v)
	case []any:
		for _, e := range v {
			n += weigh(e, depth+1)
		}
	case map[string]any:
		for k, e := range v {
			n += len(k) + weigh(e, depth+1)
		}
	}
	return n
}
