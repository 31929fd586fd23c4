package netmesh

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/webrtc/v4"

	"pooled/netmesh/pack"
	"pooled/netmesh/wire"
)

// link is one connection to a peer. Fields without another note belong to the mesh's loop.
type link struct {
	m      *Mesh
	peer   PeerID
	conn   string // connectionId
	dialed bool
	pc     *webrtc.PeerConnection
	began  time.Duration

	described bool                      // the remote description is set
	held      []webrtc.ICECandidateInit // remote candidates from before that
	extra     int                       // in-band channels beside ctl that the peer opened
	ctl       *datachannel.DataChannel  // nil until open, like the next two
	wire      *datachannel.DataChannel
	ka        *datachannel.DataChannel
	up        bool
	ended     bool

	trickle trickle

	gone    bool // under Mesh.deliverMu: nothing more is delivered
	ctlOut  outlet
	wireOut outlet
	kaOut   outlet
	wake    chan struct{} // the flusher has something to do
	done    chan struct{} // closed when the link ends
	empty   chan struct{} // everything was sent, while draining
	drains  atomic.Bool

	sendMu  sync.Mutex // orders messages' pieces, and frames
	sender  *wire.Sender
	chunkID int

	limit   atomic.Int64 // bytes of a received frame
	silence atomic.Int64 // limit in ns, 0 the default, NeverSilent
	heard   atomic.Int64 // last sign of life, ns since Mesh.epoch
	kaMu    sync.Mutex
	alive   wire.KeepAlive
	kaOn    bool // ticks are running for this link

	pingMu sync.Mutex
	pings  [8]float64 // ts of the pings last sent
	pingAt int
}

// trickle sends local candidates, but none before the description (spec wire.md 3.1 rule 2). It has a lock of its own,
// since the library calls from its goroutines.
type trickle struct {
	mu   sync.Mutex
	open bool
	wait []webrtc.ICECandidateInit
}

// add returns what can be sent now.
func (t *trickle) add(c webrtc.ICECandidateInit) []webrtc.ICECandidateInit {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.open {
		t.wait = append(t.wait, c)
		return nil
	}
	return []webrtc.ICECandidateInit{c}
}

// start returns what was held back; from now on nothing is.
func (t *trickle) start() []webrtc.ICECandidateInit {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.wait
	t.open, t.wait = true, nil
	return held
}

// connect makes the peer connection with the channels every link has. For the dialing side it also makes the in-band
// channel, the only one PeerJS sees.
func (l *link) connect() error {
	pc, err := l.m.api.NewPeerConnection(l.m.rtc)
	if err != nil {
		return fmt.Errorf("netmesh: %w", err)
	}
	l.pc = pc
	pc.OnICECandidate(func(c *webrtc.ICECandidate) {
		if c == nil {
			return // there is no message for the end of candidates
		}
		for _, c := range l.trickle.add(c.ToJSON()) {
			l.sendCandidate(c)
		}
	})
	pc.OnConnectionStateChange(func(s webrtc.PeerConnectionState) {
		l.m.post(func() { l.m.stateChanged(l, s) })
	})
	if err := l.negotiated(wire.ChannelID, wire.ChannelLabel, nil, &l.wire); err != nil {
		return err
	}
	var none uint16
	if err := l.negotiated(wire.KeepAliveID, wire.KeepAliveLabel, &none, &l.ka); err != nil {
		return err
	}
	if !l.dialed {
		pc.OnDataChannel(func(dc *webrtc.DataChannel) { l.whenOpen(dc, nil) })
		return nil
	}
	pc.OnDataChannel(func(dc *webrtc.DataChannel) { _ = dc.Close() }) // a second one has no meaning
	ordered := true
	dc, err := pc.CreateDataChannel(l.conn, &webrtc.DataChannelInit{Ordered: &ordered})
	if err != nil {
		return fmt.Errorf("netmesh: control channel: %w", err)
	}
	l.whenOpen(dc, &l.ctl)
	return nil
}

// negotiated makes one of the channels both ends know without being told.
func (l *link) negotiated(id uint16, label string, retransmits *uint16, slot **datachannel.DataChannel) error {
	ordered, yes := retransmits == nil, true
	dc, err := l.pc.CreateDataChannel(label, &webrtc.DataChannelInit{
		Negotiated: &yes, ID: &id, Ordered: &ordered, MaxRetransmits: retransmits,
	})
	if err != nil {
		return fmt.Errorf("netmesh: channel %d: %w", id, err)
	}
	l.whenOpen(dc, slot)
	return nil
}

// whenOpen detaches the channel when it opens and hands it to the loop. slot nil is the in-band channel of a link that was
// not dialed by us.
func (l *link) whenOpen(dc *webrtc.DataChannel, slot **datachannel.DataChannel) {
	dc.OnOpen(func() {
		rwc, err := dc.Detach()
		raw, ok := rwc.(*datachannel.DataChannel)
		if err != nil || !ok {
			l.m.post(func() { l.m.end(l, fmt.Sprintf("channel %q: cannot be used: %v", dc.Label(), err), false, ErrNoPath) })
			return
		}
		l.m.post(func() { l.m.channelOpen(l, raw, slot) })
	})
}

// sendPayload sends a signaling message about this connection.
func (l *link) sendPayload(t msgType, p payload) error {
	p.Type, p.ConnectionID = "data", l.conn
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("netmesh: %s: %w", t, err)
	}
	return l.m.signalTo(l.peer, t, raw)
}

// sendCandidate is best effort: a link may come up without this one.
func (l *link) sendCandidate(c webrtc.ICECandidateInit) {
	if err := l.sendPayload(msgCandidate, payload{Candidate: &c}); err != nil {
		l.m.cfg.Log(fmt.Sprintf("netmesh: candidate to %s: %v", l.peer, err))
	}
}

// hear notes a sign of life.
func (l *link) hear() { l.heard.Store(int64(l.m.now())) }

// moved notes that a frame was sent or came.
func (l *link) moved(sent bool) {
	l.kaMu.Lock()
	wanted := l.alive.Moved(time.Now(), sent)
	start := wanted && !l.kaOn
	l.kaOn = wanted
	l.kaMu.Unlock()
	if start {
		l.m.wakeKeepAlive()
	}
}

// sendMessage packs and sends one control message.
func (l *link) sendMessage(msg map[string]any) error {
	b, err := pack.Marshal(msg)
	if err != nil {
		return fmt.Errorf("netmesh: message to %s: %w", l.peer, err)
	}
	if len(b) > pack.MaxMessage {
		return fmt.Errorf("netmesh: message to %s: %d bytes: %w", l.peer, len(b), ErrTooLarge)
	}
	l.sendMu.Lock()
	defer l.sendMu.Unlock()
	if len(b) > pack.ChunkBytes {
		l.chunkID++
	}
	for _, piece := range pack.Chunks(max(1, l.chunkID), b) {
		if err := l.ctlOut.send(piece, true); err != nil {
			return l.sendFailed(err)
		}
	}
	return nil
}

// sendFrame sends a frame, as a message when the wire channel can't be used.
func (l *link) sendFrame(f *wire.Frame) error {
	l.sendMu.Lock()
	lost, err := l.sender.Send(f, wireChannels{l})
	l.sendMu.Unlock()
	switch {
	case errors.Is(err, wire.ErrNoChannel):
		m, err := f.Message()
		if err != nil {
			return err
		}
		return l.sendMessage(m)
	case errors.Is(err, wire.ErrIDs):
		return l.sendFailed(err)
	case err != nil:
		return err
	case lost > 0:
		return l.sendFailed(errOverflow)
	}
	l.moved(true)
	return nil
}

// sendFailed ends the link, since something that was to arrive in order is missing.
func (l *link) sendFailed(err error) error {
	why := "connection lost" // what the library calls it is nothing for people
	if errors.Is(err, errOverflow) || errors.Is(err, wire.ErrIDs) {
		why = err.Error()
	}
	if !errors.Is(err, ErrClosed) {
		l.m.cfg.Log(fmt.Sprintf("netmesh: sending to %s: %v", l.peer, err))
		l.m.post(func() { l.m.end(l, why, false, ErrClosed) })
	}
	return fmt.Errorf("netmesh: %s: %w", l.peer, err)
}

// wireChannels shows a link's only wire channel to the sender.
type wireChannels struct{ l *link }

// Len is the number of channels.
func (w wireChannels) Len() int { return 1 }

// Buffered is what waits on the channel.
func (w wireChannels) Buffered(int) int { return w.l.wireOut.buffered() }

// Send passes one slice on.
func (w wireChannels) Send(_ int, slice []byte) error { return w.l.wireOut.send(slice, false) }

// flush runs while the link is open: it passes on what was queued whenever the library has drained.
func (l *link) flush() {
	for {
		select {
		case <-l.done:
			return
		case <-l.wake:
		}
		ctlEmpty, err := l.ctlOut.flush()
		wireEmpty, werr := l.wireOut.flush()
		if err := errors.Join(err, werr); err != nil {
			_ = l.sendFailed(err)
			continue
		}
		if ctlEmpty && wireEmpty && l.drains.Load() {
			select {
			case l.empty <- struct{}{}:
			default:
			}
		}
	}
}

func (l *link) wakeFlusher() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// drain waits until everything was sent, at most for the given time.
func (l *link) drain(limit time.Duration, hurry <-chan struct{}) {
	l.drains.Store(true)
	l.ctlOut.drain()
	l.wireOut.drain()
	l.wakeFlusher()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-l.empty:
	case <-timer.C:
	case <-hurry:
	case <-l.done:
	}
}
