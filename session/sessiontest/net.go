package sessiontest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"pooled/netmesh"
	"pooled/netmesh/wire"
	"pooled/session"
)

// Net is a network of fake meshes and its signaling server.
type Net struct {
	mu     sync.Mutex
	meshes map[session.PeerID]*Mesh
	tap    func(from, to session.PeerID, v any) bool
}

// NewNet returns an empty network.
func NewNet() *Net { return &Net{meshes: make(map[session.PeerID]*Mesh)} }

// Tap sets a function that sees every control message (map[string]any) and frame (*wire.Frame) before it is delivered,
// and drops it by returning false. It runs with the network's lock held and must not call into it.
func (n *Net) Tap(tap func(from, to session.PeerID, v any) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tap = tap
}

// Mesh registers an id and delivers SignalUp. It panics when the id is taken: a test says who is who.
func (n *Net) Mesh(id session.PeerID, deliver func(netmesh.Event)) *Mesh {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.meshes[id] != nil {
		panic(fmt.Sprintf("sessiontest: %s is registered already", id))
	}
	m := &Mesh{net: n, id: id, deliver: deliver, links: make(map[session.PeerID]bool), silence: make(map[session.PeerID]time.Duration)}
	n.meshes[id] = m
	deliver(netmesh.SignalUp{Server: "test:9000"})
	return m
}

// Kill ends a device as if its process died: its links close, its own room hears nothing and can't send any more.
func (n *Net) Kill(id session.PeerID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.meshes[id]
	if m == nil {
		return
	}
	delete(n.meshes, id)
	m.closed = true
	for peer := range m.links {
		n.down(peer, id, "no sign of life", false)
	}
	clear(m.links)
}

// Cut closes the link between two devices; both hear of it.
func (n *Net) Cut(a, b session.PeerID, why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut(a, b, why)
}

func (n *Net) cut(a, b session.PeerID, why string) {
	n.down(a, b, why, false)
	n.down(b, a, why, false)
}

// down tells id that its link to peer is gone.
func (n *Net) down(id, peer session.PeerID, why string, leaving bool) {
	if m := n.meshes[id]; m != nil && m.links[peer] {
		delete(m.links, peer)
		m.deliver(netmesh.LinkDown{Peer: peer, Why: why, Leaving: leaving})
	}
}

// RTT delivers a measured round trip to one end of a link.
func (n *Net) RTT(at, peer session.PeerID, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.meshes[at]; m != nil && m.links[peer] {
		m.deliver(netmesh.RTT{Peer: peer, D: d, Path: "direct"})
	}
}

// Mesh is one device's end of a Net. It implements session.Mesh.
type Mesh struct {
	net     *Net
	id      session.PeerID
	deliver func(netmesh.Event)
	links   map[session.PeerID]bool
	silence map[session.PeerID]time.Duration
	closed  bool
}

var _ session.Mesh = (*Mesh)(nil)

// ID returns the registered id.
func (m *Mesh) ID() session.PeerID { return m.id }

// Dial links to a registered id at once, or fails with netmesh.ErrNoPeer.
func (m *Mesh) Dial(peer session.PeerID) {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	if m.closed || m.links[peer] {
		return
	}
	other := m.net.meshes[peer]
	if other == nil || peer == m.id {
		m.deliver(netmesh.DialFailed{Peer: peer, Err: netmesh.ErrNoPeer})
		return
	}
	m.links[peer], other.links[m.id] = true, true
	m.deliver(netmesh.LinkUp{Peer: peer, Dialed: true})
	other.deliver(netmesh.LinkUp{Peer: m.id})
}

// Send delivers a control message.
func (m *Mesh) Send(peer session.PeerID, msg map[string]any) error {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	other, err := m.to(peer)
	if err != nil {
		return err
	}
	if m.net.tap == nil || m.net.tap(m.id, peer, msg) {
		other.deliver(netmesh.Message{Peer: m.id, Msg: wired(msg).(map[string]any)})
	}
	return nil
}

// SendFrame delivers a frame.
func (m *Mesh) SendFrame(peer session.PeerID, f *wire.Frame) error {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	other, err := m.to(peer)
	if err != nil {
		return err
	}
	if m.net.tap == nil || m.net.tap(m.id, peer, f) {
		c := *f
		c.Data, c.Drop = slices.Clone(f.Data), slices.Clone(f.Drop)
		other.deliver(netmesh.FrameIn{Peer: m.id, Frame: c})
	}
	return nil
}

func (m *Mesh) to(peer session.PeerID) (*Mesh, error) {
	if other := m.net.meshes[peer]; !m.closed && m.links[peer] && other != nil {
		return other, nil
	}
	return nil, fmt.Errorf("%w: %s", netmesh.ErrClosed, peer)
}

// Hang closes a link.
func (m *Mesh) Hang(peer session.PeerID, why string) { m.net.Cut(m.id, peer, why) }

// SetSilence notes the limit: silence itself is what the test makes of it.
func (m *Mesh) SetSilence(peer session.PeerID, limit time.Duration) {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	m.silence[peer] = limit
}

// Silence is the limit that was set for a peer, 0 for the usual one.
func (m *Mesh) Silence(peer session.PeerID) time.Duration {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	return m.silence[peer]
}

// SetLoading does nothing.
func (m *Mesh) SetLoading(bool) {}

// Close says leaving on every link and unregisters.
func (m *Mesh) Close(context.Context) error {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	delete(m.net.meshes, m.id)
	for peer := range m.links {
		m.net.down(peer, m.id, "leaving", true)
	}
	clear(m.links)
	return nil
}

// wired copies a value to what it is after the wire.
func wired(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for k, e := range v {
			c[k] = wired(e)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = wired(e)
		}
		return c
	case int:
		return int64(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
		return v
	case nil, bool, string, int64, uint64:
		return v
	case []byte:
		return slices.Clone(v)
	}
	panic(fmt.Sprintf("sessiontest: %T can't be sent", v))
}
