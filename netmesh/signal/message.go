package signal

import (
	"encoding/json"
	"fmt"
)

// Type is the sort of a signaling message.
type Type string

// Types of message (spec wire.md 2.2).
const (
	TypeOpen       Type = "OPEN"
	TypeHeartbeat  Type = "HEARTBEAT"
	TypeOffer      Type = "OFFER"
	TypeAnswer     Type = "ANSWER"
	TypeCandidate  Type = "CANDIDATE"
	TypeLeave      Type = "LEAVE"
	TypeExpire     Type = "EXPIRE"
	TypeIDTaken    Type = "ID-TAKEN"
	TypeInvalidKey Type = "INVALID-KEY"
	TypeError      Type = "ERROR"
)

// Sizes, in bytes. A session description with many candidates has a few thousand.
const (
	// MaxMessage bounds a message this package sends, and one its server takes.
	MaxMessage = 64 << 10
	// maxIncoming bounds what a client takes from a server.
	maxIncoming = 256 << 10
	// maxID bounds ids and tokens.
	maxID = 128
)

// Message is one signaling message. Src is set by the server, Dst by the sender.
type Message struct {
	Type    Type            `json:"type"`
	Src     string          `json:"src,omitempty"`
	Dst     string          `json:"dst,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Err returns ErrNoPeer for the messages that say the peer Src can't be reached (EXPIRE, LEAVE), else nil.
func (m Message) Err() error {
	if m.Type == TypeExpire || m.Type == TypeLeave {
		return fmt.Errorf("signal: %q: %w", m.Src, ErrNoPeer)
	}
	return nil
}

// decode reads one message; what is not a JSON object with a type is an error.
func decode(b []byte) (Message, error) {
	var m Message
	if err := json.Unmarshal(b, &m); err != nil {
		return Message{}, fmt.Errorf("signal: message: %w", err)
	}
	if m.Type == "" || len(m.Src) > maxID || len(m.Dst) > maxID {
		return Message{}, fmt.Errorf("signal: message of type %.20q: no type, or an id that is too long", m.Type)
	}
	return m, nil
}

// note returns the text a server put into a refusal.
func (m Message) note() string {
	var p struct {
		Msg string `json:"msg"`
	}
	if json.Unmarshal(m.Payload, &p) != nil || p.Msg == "" {
		return "no reason given"
	}
	return fmt.Sprintf("%.200q", p.Msg)
}

// refusal turns the messages that end a socket into an error, nil for any other.
func (m Message) refusal() error {
	switch m.Type {
	case TypeIDTaken:
		return &openError{kindTaken, refusedError{ErrIDTaken}}
	case TypeInvalidKey:
		return &openError{kindInvalidKey, refusedError{ErrInvalidKey}}
	case TypeError:
		return &openError{kindServer, refusedError{fmt.Errorf("server says %s", m.note())}}
	}
	return nil
}

// Event is what a client tells its owner.
type Event interface{ event() }

type (
	// Up: registered at the server.
	Up struct{ Server Server }
	// Down: the connection to the server dropped; the client tries to come back by itself.
	Down struct {
		Server Server
		Err    error
	}
	// Refused: the server answers, but does not take the client back; ErrIDTaken when another client holds its id by now.
	// It comes once for each sort of refusal after a Down. The client goes on trying.
	Refused struct {
		Server Server
		Err    error
	}
)

func (Up) event()      {}
func (Down) event()    {}
func (Refused) event() {}
func (Message) event() {}
