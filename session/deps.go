package session

import (
	"context"
	"time"

	"pooled/compute/op"
	"pooled/compute/token"
	"pooled/netmesh"
	"pooled/netmesh/wire"
)

// Mesh is what a room needs of the network. *netmesh.Mesh is the real one, sessiontest has a fake.
// Deliveries come through the function the mesh was opened with, which is Room.Deliver.
type Mesh interface {
	ID() PeerID
	// Dial opens a link; LinkUp or DialFailed follows. Dialing a peer that is already linked is not an error: nothing
	// happens.
	Dial(peer PeerID)
	// Send queues a control message. It never blocks; an unknown or closed link is an error.
	Send(peer PeerID, msg map[string]any) error
	// SendFrame queues a frame. It never blocks.
	SendFrame(peer PeerID, f *wire.Frame) error
	// Hang closes the link to one peer after what is queued was sent (300 ms at most).
	Hang(peer PeerID, why string)
	// SetSilence sets after how much silence the link to a peer counts as lost.
	SetSilence(peer PeerID, limit time.Duration)
	// SetLoading says that this device is loading layers, or is no more: meanwhile silence is not judged.
	SetLoading(on bool)
	// Close says leaving on every link, then closes everything; ctx bounds it.
	Close(ctx context.Context) error
}

// LoadSpec says what an engine is to hold.
type LoadSpec struct {
	ModelKey string
	Lo, Hi   int  // layers
	Head     bool // embedding, final norm and output head as well (the host)
	Ctx      int  // positions the cache holds
	KV       op.KVType
}

// ModelInfo is what the room has to know of a model before and after it is loaded. Bytes as in spec room.md 2.3.
type ModelInfo struct {
	Key, Label string
	Layers     int
	Width      int // values of one hidden state
	LayerBytes int64
	KVBytes    int64 // per position and layer, K and V together
	HostBytes  int64 // embedding and head
	CtxDefault int
	CtxMax     int
}

// Engine runs layers. One goroutine of the room calls it, one call at a time.
type Engine interface {
	// Info describes the device.
	Info() op.Info
	// Model opens the model's header (from disk or embedded) without loading weights.
	Model(ctx context.Context, key string) (ModelInfo, error)
	// Load replaces what is held. progress gets percents, from any goroutine, rising.
	Load(ctx context.Context, spec LoadSpec, progress func(percent int)) error
	// Text returns the tokenizer and chat profile of the model that was opened last with Model or Load.
	Text() (*token.Tokenizer, token.Profile, error)
	// Embed runs tokens through the embedding and the layers held: hidden is len(tokens) x width, reused by the next
	// call.
	Embed(ctx context.Context, pos int, tokens []int32) (hidden []float32, err error)
	// EmbedTop is Embed followed by the head on the last column, in one submit (a host that holds every layer).
	EmbedTop(ctx context.Context, pos int, tokens []int32, k int) ([]op.Candidate, error)
	// Hidden runs n columns through the layers held.
	Hidden(ctx context.Context, pos, n int, in []float32) (out []float32, err error)
	// Top runs the final norm and the head on one hidden state and returns the k best.
	Top(ctx context.Context, hidden []float32, k int) ([]op.Candidate, error)
	// Used is the device memory held, in bytes.
	Used() int64
	// Free releases the layers.
	Free()
	Close() error
}

var _ Mesh = (*netmesh.Mesh)(nil)
