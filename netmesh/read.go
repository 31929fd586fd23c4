package netmesh

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/webrtc/v4"

	"pooled/netmesh/pack"
	"pooled/netmesh/wire"
)

// read calls handle with every binary message of a channel until the channel has ended or the link is given up. Text
// counts as a message that can't be read. The buffer has size bytes at first and grows to most.
func (l *link) read(raw *datachannel.DataChannel, size, most int, handle func(b []byte) (bad bool)) {
	buf := make([]byte, size)
	bad := 0
	for {
		n, isText, err := raw.ReadDataChannel(buf)
		switch {
		case errors.Is(err, io.ErrShortBuffer) && len(buf) < most:
			buf = make([]byte, min(2*len(buf), most))
			continue
		case errors.Is(err, io.ErrShortBuffer):
			l.fail(fmt.Sprintf("a message of more than %d bytes", most))
			return
		case err != nil:
			return
		}
		l.hear()
		if isText || handle(buf[:n]) {
			if bad++; bad > maxBad {
				l.fail("too many messages that cannot be read")
				return
			}
		}
	}
}

// fail ends the link from one of its goroutines.
func (l *link) fail(why string) { l.m.post(func() { l.m.end(l, why, false, ErrClosed) }) }

func (l *link) readKeepAlive() {
	l.read(l.ka, 64, 4096, func([]byte) bool { return false })
	l.kaOut.close()
}

func (l *link) readWire() {
	rx := wire.NewReceiver(wire.Limits{Frames: maxFrames, Bytes: maxFrameBytes})
	rx.Opened(0, true)
	limit := int64(wire.DefaultFrameBytes)
	var ignored uint64
	l.read(l.wire, 2*wire.SliceBytes, 2*wire.SliceBytes, func(b []byte) bool {
		if n := l.limit.Load(); n != limit {
			limit = n
			rx.SetFrameBytes(int(n))
		}
		// One ordered channel: what is missing is given up at once, so there is no time to be woken at.
		frames, _ := rx.Slice(time.Now(), 0, b)
		for i := range frames {
			l.moved(false)
			l.m.deliver(l, FrameIn{Peer: l.peer, Frame: frames[i]})
		}
		was := ignored
		ignored = rx.Stats().Ignored
		return ignored != was
	})
	l.wireOut.close() // frames go as messages from now on, if the link lives on
}

func (l *link) readControl() {
	var join pack.Joiner
	l.read(l.ctl, 32<<10, maxRead, func(b []byte) bool {
		v, err := pack.Unmarshal(b, pack.Limits{})
		if err != nil {
			return true
		}
		if pack.IsClose(v) {
			l.fail("closed by the peer")
			return false
		}
		if whole, piece := join.Add(v); piece {
			if whole == nil {
				return false
			}
			if v, err = pack.Unmarshal(whole, pack.Limits{}); err != nil {
				return true
			}
		}
		m, _ := v.(map[string]any)
		t, ok := m["t"].(string)
		if !ok {
			return m == nil // raw bytes and the like are somebody's bandwidth test
		}
		return l.message(t, m)
	})
	// The end of this channel is the end of the link, and only this one's: what was sent before it has been read now.
	l.fail("closed by the peer")
}

// message handles one control message; true means that it can't be read.
func (l *link) message(t string, msg map[string]any) (bad bool) {
	switch {
	case t == "ping":
		if ts, ok := msg["ts"]; ok {
			_ = l.sendMessage(map[string]any{"t": "pong", "ts": ts}) // a link that can't take it ends by itself
		}
	case t == "pong":
		l.pong(msg["ts"])
	case t == "leaving":
		l.m.post(func() { l.m.end(l, "the peer left", true, ErrClosed) })
	case wire.IsMessage(t):
		f, err := wire.FromMessage(msg)
		if err != nil || int64(len(f.Data)) > l.limit.Load() {
			return true
		}
		l.moved(false)
		l.m.deliver(l, FrameIn{Peer: l.peer, Frame: f})
	default:
		l.m.deliver(l, Message{Peer: l.peer, Msg: msg})
	}
	return false
}

// ping asks for a sign of life. ts is in milliseconds of our own clock.
func (l *link) ping(now time.Duration) {
	ts := float64(now.Microseconds()) / 1000
	l.pingMu.Lock()
	l.pings[l.pingAt] = ts
	l.pingAt = (l.pingAt + 1) % len(l.pings)
	l.pingMu.Unlock()
	_ = l.sendMessage(map[string]any{"t": "ping", "ts": ts}) // a link that can't take it ends by itself
}

// pong measures the round trip, if it answers one of our last pings: PeerJS may give the number back a little off.
func (l *link) pong(ts any) {
	var sent float64
	switch v := ts.(type) {
	case float64:
		sent = v
	case int64:
		sent = float64(v)
	default:
		return
	}
	d := l.m.now() - time.Duration(sent*float64(time.Millisecond))
	l.pingMu.Lock()
	known := false
	for i, p := range l.pings {
		if p > 0 && math.Abs(p-sent) < 0.01 {
			known, l.pings[i] = true, 0 // answered: once is enough
		}
	}
	l.pingMu.Unlock()
	if known && d >= 0 {
		l.m.deliver(l, RTT{Peer: l.peer, D: d, Path: l.path()})
	}
}

// path tells how the link runs, "" when that can't be told.
func (l *link) path() string {
	pair, err := l.pc.SCTP().Transport().ICETransport().GetSelectedCandidatePair()
	switch {
	case err != nil || pair == nil || pair.Local == nil || pair.Remote == nil:
		return ""
	case pair.Local.Typ == webrtc.ICECandidateTypeRelay || pair.Remote.Typ == webrtc.ICECandidateTypeRelay:
		return "relay"
	}
	return "direct"
}
