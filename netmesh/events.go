package netmesh

import (
	"time"

	"pooled/netmesh/wire"
)

// PeerID is a peer's id on the signaling server.
type PeerID string

// Event is what a Mesh tells its owner through Config.Deliver.
type Event interface{ event() }

// Events. For one peer they arrive in the order LinkUp, (Message | FrameIn | RTT)*, LinkDown; messages in the order
// sent, frames in the order sent, the two not ordered against each other (spec wire.md 4.4).
type (
	// LinkUp: the control channel and the wire channels are open.
	LinkUp struct {
		Peer   PeerID
		Dialed bool // by this end
	}
	// LinkDown: the link is gone for good. Leaving is set when the peer said so.
	LinkDown struct {
		Peer    PeerID
		Why     string
		Leaving bool
	}
	// DialFailed ends a Dial that did not come up. Err is one of the package's errors.
	DialFailed struct {
		Peer PeerID
		Err  error
	}
	// Message is one control message: a map with a text field "t" (ping, pong and leaving are handled inside).
	Message struct {
		Peer PeerID
		Msg  map[string]any
	}
	// FrameIn is a complete frame, in order.
	FrameIn struct {
		Peer  PeerID
		Frame wire.Frame
	}
	// RTT is a measured round trip; Path is "direct" or "relay", "" unknown.
	RTT struct {
		Peer PeerID
		D    time.Duration
		Path string
	}
	// SignalUp: registered at the server.
	SignalUp struct{ Server string }
	// SignalDown: the connection to the server dropped; retries go on by themselves.
	SignalDown struct {
		Server string
		Err    error
	}
)

func (LinkUp) event()     {}
func (LinkDown) event()   {}
func (DialFailed) event() {}
func (Message) event()    {}
func (FrameIn) event()    {}
func (RTT) event()        {}
func (SignalUp) event()   {}
func (SignalDown) event() {}
