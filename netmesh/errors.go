package netmesh

import (
	"errors"

	"pooled/netmesh/signal"
)

// Sentinels a caller may branch on.
var (
	// ErrNoPeer: nobody is registered under the id that was dialed.
	ErrNoPeer = signal.ErrNoPeer
	// ErrIDTaken: another client of the signaling server holds the wanted id.
	ErrIDTaken = signal.ErrIDTaken
	// ErrSignalDown: no signaling server, or not at the moment.
	ErrSignalDown = errors.New("signaling is down")
	// ErrNoPath: the peer answered, but no network path to it was found.
	ErrNoPath = errors.New("no network path to the peer")
	// ErrTimeout: the link did not open in time.
	ErrTimeout = errors.New("the peer did not connect in time")
	// ErrClosed: there is no open link to the peer, or the mesh is closed.
	ErrClosed = errors.New("no open link")
	// ErrTooLarge: a message over 4,172,800 bytes.
	ErrTooLarge = errors.New("message too large")
)

var (
	errOverflow = errors.New("the peer does not take data as fast as it is sent")
	errRefused  = errors.New("the peer refused the connection")
)
