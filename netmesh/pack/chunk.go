package pack

import "math"

// Sizes of chunked messages (spec wire.md 3.3), in bytes of the packed message.
const (
	ChunkBytes = 16300                  // a longer message is cut into pieces of this size
	MaxPieces  = 256                    // a receiver takes no message of more pieces
	MaxMessage = MaxPieces * ChunkBytes // 4,172,800: the longest message that may be sent
	MaxPartial = 8                      // messages being rebuilt at a time
)

const (
	keyPeerData = "__peerData"
	keyN        = "n"
	keyData     = "data"
	keyTotal    = "total"
)

// Chunks returns the data messages that carry packed, in the order to send them: packed itself when it is short
// enough, else its pieces. id numbers the chunked messages of one connection and direction from 1; it is used up only
// when there are two pieces or more. The result is nil, nothing may be sent, when packed is longer than MaxMessage or
// id is below 1.
func Chunks(id int, packed []byte) [][]byte {
	if len(packed) <= ChunkBytes {
		return [][]byte{packed}
	}
	if len(packed) > MaxMessage || id < 1 {
		return nil
	}
	total := (len(packed) + ChunkBytes - 1) / ChunkBytes
	out := make([][]byte, total)
	for n := range out {
		part := packed[n*ChunkBytes : min((n+1)*ChunkBytes, len(packed))]
		e := encoder{buf: make([]byte, 0, len(part)+48)}
		e.length(fixMap, codeMap16, 4)
		// Lengths and small integers always have a form on the wire: these can't fail.
		_ = e.entry(keyPeerData, id, 0)
		_ = e.entry(keyN, n, 0)
		_ = e.entry(keyData, part, 0)
		_ = e.entry(keyTotal, total, 0)
		out[n] = e.buf
	}
	return out
}

// IsClose reports whether a decoded message is PeerJS's request to close the connection.
func IsClose(v any) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	pd, ok := m[keyPeerData].(map[string]any)
	return ok && pd["type"] == "close"
}

// Joiner puts the pieces of one connection and direction together again. The zero value is ready. It belongs to one
// goroutine.
//
// As in PeerJS arrivals are counted, not distinct pieces: when as many have come as the first piece announced, what
// there is is the message, so a repeated piece costs the message whose place it took. Nothing expires. Pieces outside
// the limits are dropped without a word: total 1..MaxPieces and the same on all pieces of a message, n below it, no
// more than ChunkBytes of data, no new message while MaxPartial are being rebuilt. So a Joiner holds at most
// MaxPartial times MaxMessage bytes.
type Joiner struct {
	partial map[int64]*pieces
}

type pieces struct {
	data  [][]byte // nil where none came yet
	count int      // arrivals
}

// Add takes a decoded message. piece reports that it belonged to a chunked message, or claimed to, and so means
// nothing by itself; whole is then the rebuilt packed message if this piece completed it, else nil. A rebuilt message
// is a message, never again a piece. Add keeps the binary of v.
func (j *Joiner) Add(v any) (whole []byte, piece bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	mark, ok := m[keyPeerData]
	if !ok || falsy(mark) {
		return nil, false
	}
	id, okID := asInt(mark)
	n, okN := asInt(m[keyN])
	total, okTotal := asInt(m[keyTotal])
	data, okData := m[keyData].([]byte)
	if !okID || !okN || !okTotal || !okData || total < 1 || total > MaxPieces || n < 0 || n >= total ||
		len(data) > ChunkBytes {
		return nil, true
	}
	p := j.partial[id]
	if p == nil {
		if len(j.partial) >= MaxPartial {
			return nil, true
		}
		if j.partial == nil {
			j.partial = make(map[int64]*pieces)
		}
		p = &pieces{data: make([][]byte, total)}
		j.partial[id] = p
	}
	if int(total) != len(p.data) {
		return nil, true
	}
	p.data[n] = data
	p.count++
	if p.count < len(p.data) {
		return nil, true
	}
	delete(j.partial, id)
	return p.join(), true
}

// join returns the concatenation, nil when a piece before another is missing.
func (p *pieces) join() []byte {
	size, end := 0, len(p.data)
	for i, d := range p.data {
		if d == nil {
			end = min(end, i)
		} else if i > end {
			return nil
		}
		size += len(d)
	}
	out := make([]byte, 0, size)
	for _, d := range p.data[:end] {
		out = append(out, d...)
	}
	return out
}

// falsy is what JavaScript takes for "no value": a message marked with it is an ordinary one.
func falsy(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	case string:
		return v == ""
	}
	return false
}

// asInt reads an integer, also one that came as a float.
func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= 1<<53 {
			return int64(v), true
		}
	}
	return 0, false
}
