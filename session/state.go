package session

import (
	"time"

	"pooled/netmesh"
)

// PeerID names a peer for the life of its signaling registration. Names shown to people can change; ids can't.
type PeerID = netmesh.PeerID

// Role is what this process is in the room.
type Role string

// Roles.
const (
	Host   Role = "host"   // owns the room, the embedding, the head and the conversation
	Worker Role = "worker" // lends a GPU
	Asker  Role = "asker"  // an API client: asks, holds nothing
)

// Kind is what sort of device a peer is, from its hello (spec wire.md 5).
type Kind string

// Kinds of peer.
const (
	KindComputer Kind = "computer"
	KindPhone    Kind = "phone"
	KindTablet   Kind = "tablet"
	KindBrowser  Kind = "browser tab"
	KindAPI      Kind = "API client"
)

// Phase is where this device stands. The texts shown for it are those of spec cli.md 6.4.
type Phase string

// Phases.
const (
	Connecting Phase = "connecting"
	Waiting    Phase = "waiting"  // in the room, nothing dealt
	Loading    Phase = "loading"  // a deal is loading here
	Loaded     Phase = "loaded"   // own layers in, others not yet
	Guest      Phase = "guest"    // in the room without layers
	Online     Phase = "online"   //
	Degraded   Phase = "degraded" // a device of the deal left
	HostGone   Phase = "hostgone"
	Leaving    Phase = "leaving"
	Closed     Phase = "closed"
)

// State is a snapshot of the room as this device knows it. It is immutable: the room loop builds a new one, readers
// share it. Slices are sorted as documented and never written after publication.
type State struct {
	Seq       uint64 // Seq of the last event it includes
	Role      Role
	Phase     Phase
	Code      string // ABC-DEF
	Server    string // signaling server in use, as host:port
	SignalUp  bool
	Self      PeerID
	SelfName  string
	HostName  string // empty until the host's greeting
	Model     Model
	Device    Device
	Peers     []Peer // host first, then by id
	Deal      *Deal  // nil before the first deal
	LoadPct   int    // own load, 0..100
	Answering bool   // an answer is running in the room
	Answer    *Exchange
	Chat      []Exchange // finished ones, oldest first, at most MaxChat
	Log       []LogLine  // oldest first, at most MaxLog
	TokPerSec float64    // of the room's last answer, 0 unknown
	Lap       *Lap       // last measured
	Passes    int        // frames this device ran
	Context   Context
	OpenedAt  time.Time // when the room opened here
	OnlineAt  time.Time // zero unless online
	LoadingAt time.Time // start of the running load
	Problem   *Problem  // why it closed, nil after a wanted end
}

// Caps of the rings in State.
const (
	MaxChat = 50  // exchanges (spec room.md 5.10)
	MaxLog  = 500 // lines
)

// Model is the room's model.
type Model struct {
	Key    string // catalogue key, empty before it is known
	Label  string
	Layers int // 0 unknown
}

// Device is this computer's part.
type Device struct {
	GPU         string // name for people; empty for an asker
	Backend     string // "Vulkan", "ref", ...
	Software    bool
	PledgeBytes int64
	PledgeWhy   string // why that much
	UsedBytes   int64  // held on the device now
}

// Peer is a member of the room.
type Peer struct {
	ID          PeerID
	Name        string
	Kind        Kind
	GPU         string
	PledgeBytes int64
	Self        bool
	Host        bool
	Lo, Hi      int // dealt layers [Lo, Hi); equal when none
	Out         Out // why none
	LoadPct     int
	Ready       bool
	RTTms       float64 // 0 unknown
	Path        string  // "direct", "relay", "" unknown or self
}

// Deal is who holds what.
type Deal struct {
	Epoch  int
	Ctx    int
	Shares []Share // in chain order, host first
}

// Context is how full the model's context is, in tokens.
type Context struct{ Used, Max int }

// Exchange is one question and its answer.
type Exchange struct {
	ID       int
	Asker    PeerID
	Name     string
	Question string
	Thinking string
	Text     string
	API      bool
	Done     bool
	Reason   DoneReason
	Err      string
	Stats    Stats
	Started  time.Time
}

// LogLine is one notice with its time.
type LogLine struct {
	At    time.Time
	Level Level
	Text  string
}
