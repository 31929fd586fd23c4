package session

import (
	"encoding/json"
	"fmt"
	"time"
)

// Event is something that happened in the room. The set is closed: every event is one of the structs in this file.
// Its dotted name is public (the JSON log writes it as "ev"); testdata/events.golden lists names and fields.
type Event interface{ EventName() string }

// Envelope is an event with its place in the room's total order. Seq counts from 1 and has no gaps.
type Envelope struct {
	Seq   uint64
	At    time.Time
	Event Event
}

// MarshalJSON writes the envelope as one flat object: seq, at (RFC 3339, milliseconds, UTC), ev, then the event's own
// fields.
func (e Envelope) MarshalJSON() ([]byte, error) {
	head, err := json.Marshal(struct {
		Seq uint64 `json:"seq"`
		At  string `json:"at"`
		Ev  string `json:"ev"`
	}{e.Seq, e.At.UTC().Format("2006-01-02T15:04:05.000Z07:00"), e.Event.EventName()})
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(e.Event)
	if err != nil {
		return nil, err
	}
	if len(body) < 2 || body[0] != '{' {
		return nil, fmt.Errorf("session: event %s is not an object", e.Event.EventName())
	}
	if len(body) == 2 {
		return head, nil
	}
	return append(append(head[:len(head)-1], ','), body[1:]...), nil
}

// Events of the room itself.
type (
	// RoomOpened: the room has its id on the signaling server (host), or the host greeted this device (others).
	RoomOpened struct {
		Code   string `json:"code"` // as shown, ABC-DEF
		Host   string `json:"host"` // the host's name
		Server string `json:"server"`
	}
	// RoomClosed is the last event. Problem is nil after a wanted end.
	RoomClosed struct {
		Reason  string   `json:"reason"`
		Problem *Problem `json:"problem,omitempty"`
	}
	// RoomOnline: every device of the deal holds its layers.
	RoomOnline struct {
		Epoch int `json:"epoch"`
	}
	// RoomDegraded: a device of the deal is gone; no answer can run until a re-deal.
	RoomDegraded struct {
		Peer PeerID `json:"peer"`
		Why  string `json:"why"`
	}
	// SignalChanged: the connection to the signaling server came up or dropped. Links live on without it.
	SignalChanged struct {
		Up     bool   `json:"up"`
		Server string `json:"server"`
		Why    string `json:"why,omitempty"`
	}
)

// Events of peers and links.
type (
	// PeerJoined: a device (or an API client) is in the room.
	PeerJoined struct {
		Peer        PeerID `json:"peer"`
		Name        string `json:"name"`
		Kind        Kind   `json:"kind"`
		GPU         string `json:"gpu,omitempty"`
		PledgeBytes int64  `json:"pledgeBytes"`
	}
	// PeerLeft: it is out.
	PeerLeft struct {
		Peer   PeerID `json:"peer"`
		Name   string `json:"name"`
		Reason string `json:"reason"`
	}
	// PeerReady: it holds its layers and its link to the next device is up.
	PeerReady struct {
		Peer PeerID `json:"peer"`
	}
	// PeerRefused: a peer was turned away.
	PeerRefused struct {
		Peer PeerID `json:"peer"`
		Why  string `json:"why"`
	}
	// LinkRTT: a round trip was measured. Latest wins, per peer.
	LinkRTT struct {
		Peer PeerID  `json:"peer"`
		Ms   float64 `json:"ms"`
	}
)

// Events of layers.
type (
	// DealMade: the host decided who holds what.
	DealMade struct {
		Epoch   int            `json:"epoch"`
		Model   string         `json:"model"`
		Ctx     int            `json:"ctx"` // tokens
		Shares  []Share        `json:"shares"`
		LeftOut map[PeerID]Out `json:"leftOut,omitempty"`
	}
	// LoadProgress: a device is loading its layers. Latest wins, per peer.
	LoadProgress struct {
		Peer    PeerID `json:"peer"`
		Percent int    `json:"percent"` // 0..100
	}
	// LoadFailed: a device could not load; the start is over.
	LoadFailed struct {
		Peer PeerID `json:"peer"`
		Err  string `json:"err"`
	}
)

// Events of answers.
type (
	// AnswerStarted: the host took the question. Exactly one AnswerDone with the same ID follows.
	AnswerStarted struct {
		ID           int    `json:"id"`
		Asker        PeerID `json:"asker"`
		Name         string `json:"name"` // who asked
		Text         string `json:"text"` // the question; empty when this screen may not see it
		API          bool   `json:"api,omitempty"`
		PromptTokens int    `json:"promptTokens"`
		ReusedTokens int    `json:"reusedTokens"`
	}
	// AnswerText: the next piece, whole characters only.
	AnswerText struct {
		ID        int    `json:"id"`
		Text      string `json:"text"`
		Reasoning bool   `json:"reasoning,omitempty"`
	}
	// AnswerDone ends an answer.
	AnswerDone struct {
		ID     int        `json:"id"`
		Reason DoneReason `json:"reason"`
		Err    string     `json:"err,omitempty"` // when Reason is failed
		Stats  Stats      `json:"stats"`
	}
	// AskRefused: the host did not take this device's question.
	AskRefused struct {
		Code string `json:"code"` // queue, ctx, bad, off, degraded, loading
		Why  string `json:"why"`
	}
	// Lap: one pass around the chain was measured. Latest wins.
	Lap struct {
		TotalMs float64 `json:"totalMs"`
		HostMs  float64 `json:"hostMs"` // the host's own layers and head
		Hops    int     `json:"hops"`   // links the hidden state crossed
	}
)

// Notice is a line for the log pane.
type Notice struct {
	Level Level  `json:"level"`
	Code  string `json:"code"`
	Text  string `json:"text"`
}

// Lagged tells a subscriber that its queue overflowed and N events were lost to it; it must take a new snapshot. It is
// delivered in place of them and is never published.
type Lagged struct {
	N int `json:"n"`
}

// Level ranks a notice.
type Level string

// Levels of a notice.
const (
	Info  Level = "info"
	Hint  Level = "hint"
	Error Level = "error"
)

// DoneReason says why an answer ended.
type DoneReason string

// Reasons of AnswerDone.
const (
	DoneStop    DoneReason = "stop"    // the model ended its turn
	DoneLength  DoneReason = "length"  // the most tokens asked for
	DoneContext DoneReason = "context" // the room's context is full
	DoneStopped DoneReason = "stopped" // a person stopped it
	DoneFailed  DoneReason = "failed"
)

// Stats of an answer. Durations in seconds.
type Stats struct {
	Tokens       int     `json:"tokens"`
	PromptTokens int     `json:"promptTokens"`
	ReusedTokens int     `json:"reusedTokens"`
	FirstSec     float64 `json:"firstSec"` // question taken to first token
	DecodeSec    float64 `json:"decodeSec"`
	PerSec       float64 `json:"perSec"` // tokens per second of decoding
}

// Share is one device's part of a deal: layers Lo..Hi-1.
type Share struct {
	Peer PeerID `json:"peer"`
	Name string `json:"name"`
	Lo   int    `json:"lo"`
	Hi   int    `json:"hi"`
	Held int64  `json:"heldBytes"`
}

// Out says why a device holds no layers.
type Out string

// Reasons for holding nothing (spec room.md 1.3, ai-layers out).
const (
	OutUnneeded Out = "unneeded"
	OutSmall    Out = "small"
	OutLate     Out = "late"
)

// EventName returns the public name of the event.
func (RoomOpened) EventName() string    { return "room.opened" }
func (RoomClosed) EventName() string    { return "room.closed" }
func (RoomOnline) EventName() string    { return "room.online" }
func (RoomDegraded) EventName() string  { return "room.degraded" }
func (SignalChanged) EventName() string { return "signal.changed" }
func (PeerJoined) EventName() string    { return "peer.joined" }
func (PeerLeft) EventName() string      { return "peer.left" }
func (PeerReady) EventName() string     { return "peer.ready" }
func (PeerRefused) EventName() string   { return "peer.refused" }
func (LinkRTT) EventName() string       { return "link.rtt" }
func (DealMade) EventName() string      { return "deal.made" }
func (LoadProgress) EventName() string  { return "load.progress" }
func (LoadFailed) EventName() string    { return "load.failed" }
func (AnswerStarted) EventName() string { return "answer.started" }
func (AnswerText) EventName() string    { return "answer.text" }
func (AnswerDone) EventName() string    { return "answer.done" }
func (AskRefused) EventName() string    { return "ask.refused" }
func (Lap) EventName() string           { return "lap" }
func (Notice) EventName() string        { return "notice" }
func (Lagged) EventName() string        { return "lagged" }
