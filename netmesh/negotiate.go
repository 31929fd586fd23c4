package netmesh

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pion/webrtc/v4"

	"pooled/netmesh/signal"
)

type msgType = signal.Type

const (
	msgOffer     = signal.TypeOffer
	msgAnswer    = signal.TypeAnswer
	msgCandidate = signal.TypeCandidate
)

const (
	binarySerialization = "binary"
	labelStripe         = "stripe"
)

// payload is what OFFER, ANSWER and CANDIDATE carry (spec wire.md 3.1).
type payload struct {
	SDP           *description             `json:"sdp,omitempty"`
	Candidate     *webrtc.ICECandidateInit `json:"candidate,omitempty"`
	Type          string                   `json:"type"`
	ConnectionID  string                   `json:"connectionId"`
	Label         string                   `json:"label,omitempty"`
	Reliable      bool                     `json:"reliable,omitempty"`
	Serialization string                   `json:"serialization,omitempty"`
}

type description struct {
	Type string `json:"type"`
	SDP  string `json:"sdp"`
}

// earlyCandidates came for a connection whose offer has not.
type earlyCandidates struct {
	since time.Duration
	list  []webrtc.ICECandidateInit
}

// signalEvent takes what the signaling client delivers.
func (m *Mesh) signalEvent(e signal.Event) {
	switch e := e.(type) {
	case signal.Up:
		m.deliver(nil, SignalUp{Server: e.Server.String()})
	case signal.Down:
		m.deliver(nil, SignalDown{Server: e.Server.String(), Err: fmt.Errorf("%w: %w", ErrSignalDown, e.Err)})
	case signal.Refused: // still down, and now it is known why
		m.deliver(nil, SignalDown{Server: e.Server.String(), Err: fmt.Errorf("%w: %w", ErrSignalDown, e.Err)})
	case signal.Message:
		if m.jobs.len() > 4096 {
			m.cfg.Log("netmesh: too many signaling messages, dropped one")
			return
		}
		m.post(func() { m.signalMessage(e) })
	}
}

// signalTo sends a signaling message to a peer.
func (m *Mesh) signalTo(peer PeerID, t msgType, raw json.RawMessage) error {
	err := m.sig.Send(signal.Message{Type: t, Dst: string(peer), Payload: raw})
	if errors.Is(err, signal.ErrDisconnected) || errors.Is(err, signal.ErrBacklog) {
		return fmt.Errorf("netmesh: %w: %w", ErrSignalDown, err)
	}
	return err
}

// signalMessage acts on one message from the server.
func (m *Mesh) signalMessage(msg signal.Message) {
	if !signal.ValidID(msg.Src) { // then no server registered it
		m.cfg.Log(fmt.Sprintf("netmesh: %s from %.40q: not an id", msg.Type, msg.Src))
		return
	}
	peer := PeerID(msg.Src)
	if err := msg.Err(); err != nil {
		m.unreachable(peer, err)
		return
	}
	var p payload
	if err := json.Unmarshal(msg.Payload, &p); err != nil || p.Type != "data" || p.ConnectionID == "" || len(p.ConnectionID) > 128 {
		m.cfg.Log(fmt.Sprintf("netmesh: %s from %.40q: not about a data connection", msg.Type, msg.Src))
		return
	}
	key := connKey{peer, p.ConnectionID}
	switch {
	case msg.Type == msgCandidate && p.Candidate != nil:
		m.candidate(key, *p.Candidate)
	case msg.Type == msgOffer && p.SDP != nil:
		m.offered(key, p)
	case msg.Type == msgAnswer && p.SDP != nil:
		m.answered(key, p)
	}
}

// unreachable fails what was being set up with a peer that the server can't reach. Open links are not the server's
// business.
func (m *Mesh) unreachable(peer PeerID, err error) {
	for key, l := range m.conns {
		if key.peer == peer && !l.up && !(l.dialed && l.described) {
			m.end(l, "not registered any more", false, err)
		}
	}
}

// dial begins a link to a peer.
func (m *Mesh) dial(peer PeerID) {
	if m.open[peer] != nil || m.dials[peer] != nil {
		return
	}
	if peer == m.ID() || !signal.ValidID(string(peer)) {
		m.deliver(nil, DialFailed{Peer: peer, Err: fmt.Errorf("netmesh: %q: %w", peer, ErrNoPeer)})
		return
	}
	for key, l := range m.conns {
		if key.peer == peer && !l.up {
			m.dials[peer] = l // the peer is dialing us: two links would replace each other
			return
		}
	}
	l := m.newLink(peer, "dc_"+strings.ToLower(rand.Text()[:11]), true)
	m.dials[peer] = l
	if err := l.offer(); err != nil {
		m.end(l, err.Error(), false, err)
	}
}

func (m *Mesh) newLink(peer PeerID, conn string, dialed bool) *link {
	l := &link{
		m: m, peer: peer, conn: conn, dialed: dialed, began: m.now(),
		wake: make(chan struct{}, 1), done: make(chan struct{}), empty: make(chan struct{}, 1),
	}
	m.conns[connKey{peer, conn}] = l
	return l
}

// offer sends the offer, then the candidates.
func (l *link) offer() error {
	if err := l.connect(); err != nil {
		return err
	}
	sdp, err := l.pc.CreateOffer(nil)
	if err != nil {
		return fmt.Errorf("netmesh: offer: %w", err)
	}
	if err := l.pc.SetLocalDescription(sdp); err != nil {
		return fmt.Errorf("netmesh: offer: %w", err)
	}
	err = l.sendPayload(msgOffer, payload{
		SDP: &description{"offer", sdp.SDP}, Label: l.conn, Reliable: true, Serialization: binarySerialization,
	})
	if err != nil {
		return err
	}
	l.sendHeld()
	return nil
}

// sendHeld sends the candidates that waited for the description, and lets later ones through.
func (l *link) sendHeld() {
	for _, c := range l.trickle.start() {
		l.sendCandidate(c)
	}
}

// offered answers a peer that dials us, unless it must not.
func (m *Mesh) offered(key connKey, p payload) {
	early := m.early[key]
	delete(m.early, key)
	if why := m.refuses(key, p); why != "" {
		m.cfg.Log(fmt.Sprintf("netmesh: offer of %s ignored: %s", key.peer, why))
		return
	}
	if old := m.conns[key]; old != nil {
		m.end(old, "the peer started the connection again", false, ErrClosed)
	}
	m.makeRoom(key.peer)
	l := m.newLink(key.peer, key.conn, false)
	if early != nil {
		l.held = early.list
	}
	if err := l.answer(p.SDP.SDP); err != nil {
		m.end(l, err.Error(), false, err)
		m.cfg.Log(fmt.Sprintf("netmesh: offer of %s: %v", key.peer, err))
	}
}

// refuses says why an offer is not taken. Nothing is sent then: signaling has no message for it.
func (m *Mesh) refuses(key connKey, p payload) string {
	pending := 0
	for _, l := range m.conns {
		if !l.up && !l.dialed {
			pending++
		}
	}
	switch {
	case !m.cfg.AcceptLinks:
		return "links are not accepted"
	case p.SDP.Type != "offer" || p.Serialization != binarySerialization:
		return fmt.Sprintf("serialization %.20q", p.Serialization)
	case p.Label == labelStripe:
		return "stripes are not used"
	case key.peer == m.ID():
		return "own id"
	case pending >= maxPending:
		return "too many connections that are not open yet"
	case len(m.conns) >= maxLinks:
		return "too many links"
	case m.dials[key.peer] != nil && m.ID() < key.peer:
		return "being dialed, and the smaller id's dial counts"
	}
	return ""
}

// makeRoom gives up the oldest of a peer's connections that did not open when it has too many.
func (m *Mesh) makeRoom(peer PeerID) {
	var oldest *link
	count := 0
	for k, l := range m.conns {
		if k.peer != peer || l.up || l.dialed {
			continue
		}
		count++
		if oldest == nil || l.began < oldest.began {
			oldest = l
		}
	}
	if count >= maxPendingPerPeer {
		m.end(oldest, "the peer dialed again", false, ErrClosed)
	}
}

// answer accepts an offer. The answer goes out before any candidate.
func (l *link) answer(offer string) error {
	if err := l.connect(); err != nil {
		return err
	}
	if err := l.describe(webrtc.SDPTypeOffer, offer); err != nil {
		return err
	}
	sdp, err := l.pc.CreateAnswer(nil)
	if err != nil {
		return fmt.Errorf("netmesh: answer: %w", err)
	}
	if err := l.pc.SetLocalDescription(sdp); err != nil {
		return fmt.Errorf("netmesh: answer: %w", err)
	}
	if err := l.sendPayload(msgAnswer, payload{SDP: &description{"answer", sdp.SDP}}); err != nil {
		return err
	}
	l.sendHeld()
	return nil
}

// describe sets the remote description and then the candidates that came before it.
func (l *link) describe(t webrtc.SDPType, sdp string) error {
	if err := l.pc.SetRemoteDescription(webrtc.SessionDescription{Type: t, SDP: sdp}); err != nil {
		return fmt.Errorf("netmesh: remote description: %w", err)
	}
	l.described = true
	for _, c := range l.held {
		l.addCandidate(c)
	}
	l.held = nil
	return nil
}

// answered completes a dial.
func (m *Mesh) answered(key connKey, p payload) {
	l := m.conns[key]
	if l == nil || !l.dialed || l.described || p.SDP.Type != "answer" {
		return
	}
	if err := l.describe(webrtc.SDPTypeAnswer, p.SDP.SDP); err != nil {
		m.end(l, err.Error(), false, err)
	}
}

// candidate applies a peer's candidate, or keeps it until it can be.
func (m *Mesh) candidate(key connKey, c webrtc.ICECandidateInit) {
	c.Candidate = strings.TrimPrefix(c.Candidate, "a=") // peers on node-datachannel put it there
	if c.Candidate == "" || len(c.Candidate) > 1024 {
		return
	}
	l := m.conns[key]
	switch {
	case l != nil && l.described:
		l.addCandidate(c)
	case l != nil:
		if len(l.held) < maxHeld {
			l.held = append(l.held, c)
		}
	default:
		e := m.early[key]
		if e == nil {
			if len(m.early) >= maxEarly {
				return
			}
			e = &earlyCandidates{since: m.now()}
			m.early[key] = e
		}
		if len(e.list) < maxHeld {
			e.list = append(e.list, c)
		}
	}
}

// addCandidate is best effort: one that can't be used leaves the others.
func (l *link) addCandidate(c webrtc.ICECandidateInit) {
	if err := l.pc.AddICECandidate(c); err != nil {
		l.m.cfg.Log(fmt.Sprintf("netmesh: candidate of %s: %v", l.peer, err))
	}
}
