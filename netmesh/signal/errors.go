package signal

import (
	"errors"
	"strings"
)

// Sentinels a caller may branch on.
var (
	// ErrDown: no server of the list could be used; the error also is a *DownError.
	ErrDown = errors.New("no signaling server answered")
	// ErrIDTaken: another client holds the wanted id.
	ErrIDTaken = errors.New("id taken")
	// ErrInvalidID: the id has characters that no server accepts.
	ErrInvalidID = errors.New("invalid id")
	// ErrInvalidKey: the server wants another key.
	ErrInvalidKey = errors.New("invalid key")
	// ErrNoPeer: nobody is registered under the id that was dialed.
	ErrNoPeer = errors.New("no such peer")
	// ErrDisconnected: the connection to the server is down at the moment.
	ErrDisconnected = errors.New("signaling is down")
	// ErrBacklog: the server does not take messages as fast as they are sent.
	ErrBacklog = errors.New("too many messages waiting")
	// ErrTooLarge: a message over MaxMessage.
	ErrTooLarge = errors.New("message too large")
	// ErrCertificate: the files of a server's certificate can't be used.
	ErrCertificate = errors.New("the TLS certificate can't be used")
	// ErrNoServer: a server list in which nothing can be used.
	ErrNoServer = errors.New("no usable server")
)

// Attempt is one server of a list and why it could not be used.
type Attempt struct {
	Server Server
	Err    error
}

// DownError says what was tried before giving up. It matches ErrDown.
type DownError struct{ Tried []Attempt }

// Error lists every server with its reason.
func (e *DownError) Error() string {
	var b strings.Builder
	b.WriteString(ErrDown.Error())
	for i, a := range e.Tried {
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		b.WriteString(a.Server.Label() + " (" + a.Err.Error() + ")")
	}
	return b.String()
}

// Is matches ErrDown.
func (e *DownError) Is(target error) bool { return target == ErrDown }

// kind is the sort of an error in the words of the PeerJS client (spec wire.md 2.1).
type kind string

const (
	kindNetwork      kind = "network"
	kindServer       kind = "server-error"
	kindSocket       kind = "socket-error"
	kindSocketClosed kind = "socket-closed"
	kindNoTLS        kind = "ssl-unavailable"
	kindSilent       kind = "timeout" // nothing came in time
	kindTaken        kind = "unavailable-id"
	kindInvalidKey   kind = "invalid-key"
	kindInvalidID    kind = "invalid-id"
)

// handsOver reports whether the next server of a list is worth a try after an error of this kind. Everything else is an
// answer: going on would split one room over two servers.
func (k kind) handsOver() bool {
	switch k {
	case kindNetwork, kindServer, kindSocket, kindSocketClosed, kindNoTLS, kindSilent:
		return true
	}
	return false
}

// answered reports whether the error shows that a server is there.
func (k kind) answered() bool {
	switch k {
	case kindNetwork, kindSilent, kindNoTLS:
		return false
	}
	return true
}

// openError is why one server could not be used.
type openError struct {
	kind kind
	err  error
}

func (e *openError) Error() string { return e.err.Error() }
func (e *openError) Unwrap() error { return e.err }

// refusedError is an error that a server sent as an answer.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// kindOf returns the kind of an error of this package, kindNetwork for any other.
func kindOf(err error) kind {
	var oe *openError
	if errors.As(err, &oe) {
		return oe.kind
	}
	return kindNetwork
}
