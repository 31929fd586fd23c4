package netmesh

import (
	"context"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/webrtc/v4"

	"pooled/netmesh/wire"
)

// loop owns the links until Close or the end of ctx, then waits for their goroutines.
func (m *Mesh) loop(ctx context.Context) error {
	defer m.workers.Wait()
	tick := time.NewTicker(min(tickEvery, m.tune.ping))
	defer tick.Stop()
	for {
		for f := m.jobs.take(); f != nil && ctx.Err() == nil; f = m.jobs.take() {
			f()
		}
		select {
		case <-m.jobs.wake:
		case <-tick.C:
			m.tick(m.now())
		case <-m.closing:
			m.leave()
			return nil
		case <-ctx.Done():
			m.mute()
			for _, l := range m.conns {
				m.end(l, "closed", false, ErrClosed)
			}
			return ctx.Err()
		}
	}
}

// leave says leaving on every link and closes it once that was sent.
func (m *Mesh) leave() {
	m.mute()
	for _, l := range m.conns {
		if l.up {
			_ = l.sendMessage(map[string]any{"t": "leaving"}) // a link that can't take it is closed all the same
		}
		m.letGo(l, "closed", hangFlush)
	}
}

// tick does what time asks for: pings, silence, dials that take too long.
func (m *Mesh) tick(now time.Duration) {
	for _, l := range m.conns {
		if !l.up && now-l.began > m.tune.dial {
			m.end(l, "not open in time", false, ErrTimeout)
		}
	}
	for key, e := range m.early {
		if now-e.since > earlyFor {
			delete(m.early, key)
		}
	}
	if now-m.lastBeat < m.tune.ping {
		return
	}
	m.lastBeat = now
	m.mu.Lock()
	m.judge.off = m.loading
	m.mu.Unlock()
	m.judge.tick(now)
	for _, l := range m.conns {
		if !l.up {
			continue
		}
		limit := time.Duration(l.silence.Load())
		if limit == 0 {
			limit = m.tune.silence
		}
		if m.judge.gone(now, time.Duration(l.heard.Load()), limit) {
			m.end(l, "nothing heard for "+limit.String(), false, ErrTimeout)
			continue
		}
		l.ping(now)
	}
}

// stateChanged acts on the library's view of a connection.
func (m *Mesh) stateChanged(l *link, s webrtc.PeerConnectionState) {
	switch s {
	case webrtc.PeerConnectionStateFailed:
		m.end(l, "connection lost", false, ErrNoPath)
	case webrtc.PeerConnectionStateClosed:
		if !l.up { // else the control channel's reader says so when it has read everything
			m.end(l, "closed by the peer", false, errRefused)
		}
	}
}

// channelOpen notes an open channel; with the control and the wire channel the link is up. slot is where the channel
// belongs, nil for the in-band channel of the dialing peer.
func (m *Mesh) channelOpen(l *link, raw *datachannel.DataChannel, slot **datachannel.DataChannel) {
	if l.ended {
		return
	}
	if slot == nil {
		slot = &l.ctl
	}
	if *slot != nil {
		_ = raw.Close() // PeerJS opens one; what a second one is for nobody knows
		if l.extra++; l.extra > maxExtra {
			m.end(l, "too many channels", false, ErrClosed)
		}
		return
	}
	*slot = raw
	if l.ctl != nil && l.wire != nil && l.ka != nil && !l.up {
		m.linkUp(l)
	}
}

// linkUp makes l the link to its peer and starts its goroutines. What came before is read by them.
func (m *Mesh) linkUp(l *link) {
	if old := m.open[l.peer]; old != nil {
		m.end(old, "replaced by a new link", false, ErrClosed)
	}
	if d := m.dials[l.peer]; d != nil {
		delete(m.dials, l.peer)
		if d != l {
			m.end(d, "the peer dialed us", false, ErrClosed)
		}
	}
	l.up = true
	l.sender = wire.NewSender(wire.DefaultCopyLimit)
	l.alive.Period = m.tune.keepAlive
	l.hear()
	l.ctlOut.open(l.ctl, l.wakeFlusher)
	l.wireOut.open(l.wire, l.wakeFlusher)
	l.kaOut.open(l.ka, func() {})
	m.mu.Lock()
	m.open[l.peer] = l
	l.limit.Store(int64(m.limitOf(l.peer)))
	l.silence.Store(int64(m.silence[l.peer]))
	m.mu.Unlock()
	m.deliver(l, LinkUp{Peer: l.peer, Dialed: l.dialed})
	m.workers.Go(l.readControl)
	m.workers.Go(l.readWire)
	m.workers.Go(l.readKeepAlive)
	m.workers.Go(l.flush)
	l.ping(m.now())
}

// hang closes the link to one peer, or a dial.
func (m *Mesh) hang(peer PeerID, why string) {
	if d := m.dials[peer]; d != nil {
		delete(m.dials, peer)
		m.end(d, why, false, ErrClosed)
	}
	if l := m.open[peer]; l != nil {
		m.letGo(l, why, hangFlush)
	}
}

// end closes a link now. It may be called for a link that has ended.
func (m *Mesh) end(l *link, why string, leaving bool, err error) { m.finish(l, why, leaving, err, 0) }

// letGo ends a link, but closes its connection only after what is queued was sent, or after limit.
func (m *Mesh) letGo(l *link, why string, limit time.Duration) {
	m.finish(l, why, false, ErrClosed, limit)
}

func (m *Mesh) finish(l *link, why string, leaving bool, err error, flush time.Duration) {
	if l.ended {
		return
	}
	l.ended = true
	key := connKey{l.peer, l.conn}
	if m.conns[key] == l {
		delete(m.conns, key)
	}
	m.mu.Lock()
	if m.open[l.peer] == l {
		delete(m.open, l.peer)
	}
	m.mu.Unlock()
	switch {
	case l.up:
		m.cfg.Log("netmesh: link to " + string(l.peer) + " down: " + why)
		m.deliver(l, LinkDown{Peer: l.peer, Why: why, Leaving: leaving})
	case m.dials[l.peer] == l:
		delete(m.dials, l.peer)
		m.deliver(l, DialFailed{Peer: l.peer, Err: err})
	}
	m.deliverMu.Lock()
	l.gone = true
	m.deliverMu.Unlock()
	m.workers.Go(func() { l.shut(flush) })
}

// shut closes the connection and with it the link's goroutines.
func (l *link) shut(flush time.Duration) {
	if l.up && flush > 0 {
		l.drain(flush, l.m.hurry)
	}
	l.ctlOut.close()
	l.wireOut.close()
	l.kaOut.close()
	close(l.done)
	if l.pc == nil {
		return
	}
	if err := l.pc.GracefulClose(); err != nil {
		l.m.cfg.Log("netmesh: closing the connection to " + string(l.peer) + ": " + err.Error())
	}
}
