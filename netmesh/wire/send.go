package wire

import (
	"fmt"
	"math"
)

// Channels are the wire channels of a link as a Sender sees them: the main link's and the stripes'.
type Channels interface {
	// Len is their number, open or not.
	Len() int
	// Buffered is what is queued on channel i, in bytes; negative when the channel is not open.
	Buffered(i int) int
	// Send queues one slice on channel i. It must not keep the slice.
	Send(i int, slice []byte) error
}

// Sender is the sending half of a link's wire (spec wire.md 4.4). It belongs to one goroutine. A replaced link takes a
// new Sender.
type Sender struct {
	copyLimit int
	last      uint32 // id of the last frame
	turn      uint64 // round-robin position, one further with every pick
	open      []int  // indices of the channels open for the running frame
	queued    []int  // what is buffered on them
	buf       [SliceBytes]byte
}

// NewSender returns a Sender whose frames of up to copyLimit slices go out twice, 0 never (see DefaultCopyLimit).
func NewSender(copyLimit int) *Sender { return &Sender{copyLimit: copyLimit} }

// Send gives the frame the next id and sends its slices. It returns how many slices no channel took: the receiver
// notices when the closing of the channels shows. Without any open channel the result is ErrNoChannel, no id is used,
// and the frame may be sent as a message.
func (s *Sender) Send(f *Frame, ch Channels) (lost int, err error) {
	if err := f.Check(); err != nil {
		return 0, err
	}
	s.open = s.open[:0]
	for i := range ch.Len() {
		if ch.Buffered(i) >= 0 {
			s.open = append(s.open, i)
		}
	}
	if len(s.open) == 0 {
		return 0, ErrNoChannel
	}
	if s.last == math.MaxUint32 {
		return 0, fmt.Errorf("%w: %d frames sent", ErrIDs, s.last)
	}
	s.last++
	count := f.Slices()
	twice := len(s.open) > 1 && count <= s.copyLimit
	for k := range count {
		b := s.buf[:f.PutSlice(s.buf[:], s.last, k)]
		first := s.pick(ch, -1)
		if !s.put(ch, first, b) {
			lost++
		}
		if twice {
			s.put(ch, s.pick(ch, first), b)
		}
	}
	return lost, nil
}

// pick chooses among the open channels and moves the turn on. The result and avoid are positions in s.open.
func (s *Sender) pick(ch Channels, avoid int) int {
	s.queued = s.queued[:0]
	for _, i := range s.open {
		s.queued = append(s.queued, ch.Buffered(i))
	}
	best := leastQueued(s.queued, s.turn, avoid)
	s.turn++
	return best
}

// leastQueued is the position of the smallest value, the first one from position turn on where there are several.
// Negative values and position avoid don't count; -1 if nothing is left.
func leastQueued(queued []int, turn uint64, avoid int) int {
	best := -1
	for i := range queued {
		at := int((turn + uint64(i)) % uint64(len(queued)))
		if at == avoid || queued[at] < 0 {
			continue
		}
		if best < 0 || queued[at] < queued[best] {
			best = at
		}
	}
	return best
}

// put sends b on the channel at position at of s.open, or else on the first other one that takes it.
func (s *Sender) put(ch Channels, at int, b []byte) bool {
	if at >= 0 && ch.Send(s.open[at], b) == nil {
		return true
	}
	for i, c := range s.open {
		if i != at && ch.Buffered(c) >= 0 && ch.Send(c, b) == nil {
			return true
		}
	}
	return false
}
