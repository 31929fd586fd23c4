package sessiontest

import (
	"slices"
	"sync"

	"pooled/netmesh"
	"pooled/session"
)

// Peer is a device played by the test: it does what it is told, however wrong, and keeps what it hears.
type Peer struct {
	*Mesh
	mu    sync.Mutex
	heard []netmesh.Event
}

// NewPeer registers one.
func NewPeer(n *Net, id session.PeerID) *Peer {
	p := &Peer{}
	p.Mesh = n.Mesh(id, p.hear)
	return p
}

func (p *Peer) hear(ev netmesh.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, ev)
}

// Heard returns everything the peer heard.
func (p *Peer) Heard() []netmesh.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.heard)
}

// Messages returns the control messages of one type that it heard.
func (p *Peer) Messages(t string) []map[string]any {
	var ms []map[string]any
	for _, ev := range p.Heard() {
		if m, ok := ev.(netmesh.Message); ok && m.Msg["t"] == t {
			ms = append(ms, m.Msg)
		}
	}
	return ms
}

// Hello greets a peer as a computer that lends gb GB.
func (p *Peer) Hello(to session.PeerID, name string, gb float64) error {
	return p.Send(to, map[string]any{"t": "hello", "v": 4, "name": name, "meta": map[string]any{"ua": "Device",
		"webgpu": true, "gpu": "Played", "native": "test", "contribGB": gb}})
}
