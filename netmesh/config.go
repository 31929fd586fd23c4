package netmesh

import (
	"time"

	"github.com/pion/webrtc/v4"

	"pooled/netmesh/signal"
)

// Config opens a Mesh.
type Config struct {
	// ID is the wanted id on the signaling server; "" takes what the server gives.
	ID PeerID
	// Servers are the signaling servers in order; empty means the cloud.
	Servers []signal.Server
	// Loopback also offers loopback addresses to peers and asks no STUN server: for rooms on one machine.
	Loopback bool
	// AcceptLinks lets others dial.
	AcceptLinks bool
	// Deliver gets the events, see the package comment.
	Deliver func(Event)
	// Log gets lines for people who look into trouble, from any goroutine; nil drops them.
	Log func(string)
}

// tuning holds what tests change.
type tuning struct {
	ping            time.Duration
	silence         time.Duration
	dial            time.Duration
	keepAlive       time.Duration
	iceDisconnected time.Duration // without traffic
	iceFailed       time.Duration // after that
	setting         func(*webrtc.SettingEngine)
}

func defaults() tuning {
	return tuning{
		ping: 2500 * time.Millisecond, silence: defaultSilence, dial: 20 * time.Second,
		keepAlive:       10 * time.Millisecond,
		iceDisconnected: 5 * time.Second, iceFailed: 8 * time.Second, // looks are up to 2 s apart: 15 s in all
	}
}

// Bounds (see the package comment).
const (
	maxLinks          = 64
	maxPending        = 32
	maxPendingPerPeer = 2
	maxHeld           = 64               // candidates kept for one connection
	maxEarly          = 64               // connections for which candidates came before the offer
	earlyFor          = 30 * time.Second // how long those are kept
	maxRead           = 256 << 10        // one data channel message
	maxExtra          = 8                // in-band channels beside the one that is used
	maxFrames         = 4                // frames of one link that lack slices; a peer sends one after the other
	maxFrameBytes     = 8 << 20          // and their payload
	highMark          = 1 << 20          // bytes buffered in the library from which on a channel's own queue is used
	lowMark           = 256 << 10        // and at which it is emptied
	queueBudget       = 32 << 20         // bytes of that queue
	maxBad            = 256              // unreadable messages or slices before a peer is hung up on
	hangFlush         = 300 * time.Millisecond
	tickEvery         = 250 * time.Millisecond
)
