package wire

import "time"

// Limits bound what a Receiver holds. A zero field means its default.
type Limits struct {
	FrameBytes int // payload of one frame; default 4 MiB
	Frames     int // frames unfinished or waiting for an earlier one; default 1024
	Bytes      int // payload of those together; default 64 MiB
}

// Defaults of Limits.
const (
	DefaultFrameBytes = 4 << 20
	DefaultFrames     = 1024
	DefaultBytes      = 64 << 20
)

// Stats count what a Receiver saw.
type Stats struct {
	Frames  uint64 // handed over
	Skipped uint64 // given up
	Ignored uint64 // slices that were malformed or over the limits; copies are not counted
}

// Receiver puts slices together and hands over frames in order (spec wire.md 4.5). Its methods take the current time;
// those that can hand over frames return them and when Wake is to be called next, the zero time for not at all. The
// frames' data belongs to the caller, the slice that holds the frames only until the next call. Channels are numbered
// by the caller.
type Receiver struct {
	lim       Limits
	next      uint64             // id to hand over next
	done      map[uint64]Frame   // complete, behind a missing one
	partial   map[uint64]*gather // begun
	held      int                // payload bytes of done and partial
	highest   map[int]uint64     // open channels and the highest id seen on each
	unordered bool               // some channel of the link may drop
	closed    bool               // a channel has closed
	closedAt  time.Time          // when one last did
	gapFor    uint64             // id the timer runs for
	gapAt     time.Time          // when it fires, zero when it doesn't run
	stats     Stats
	out       []Frame
}

// gather is a frame that lacks slices.
type gather struct {
	frame Frame    // Data has its full length
	count int      // slices
	got   int      // of them here
	have  []uint64 // bit k: slice k is here
	since time.Time
}

// NewReceiver returns the Receiver of a fresh link, which expects frame 1.
func NewReceiver(lim Limits) *Receiver {
	if lim.FrameBytes <= 0 {
		lim.FrameBytes = DefaultFrameBytes
	}
	if lim.Frames <= 0 {
		lim.Frames = DefaultFrames
	}
	if lim.Bytes <= 0 {
		lim.Bytes = DefaultBytes
	}
	return &Receiver{
		lim:     lim,
		next:    1,
		done:    make(map[uint64]Frame),
		partial: make(map[uint64]*gather),
		highest: make(map[int]uint64),
	}
}

// SetFrameBytes changes the most payload a frame may have, as a new deal changes it. Frames begun keep theirs.
func (r *Receiver) SetFrameBytes(n int) { r.lim.FrameBytes = n }

// Stats returns what was counted so far.
func (r *Receiver) Stats() Stats { return r.stats }

// Opened notes that channel ch is open. ordered tells that it delivers everything, in order.
func (r *Receiver) Opened(ch int, ordered bool) {
	if _, open := r.highest[ch]; !open {
		r.highest[ch] = 0
	}
	if !ordered {
		r.unordered = true
	}
}

// Closed notes that channel ch is closed: what it carried may be lost.
func (r *Receiver) Closed(now time.Time, ch int) (frames []Frame, wake time.Time) {
	r.out = r.out[:0]
	if _, ok := r.highest[ch]; ok {
		delete(r.highest, ch)
		r.closed, r.closedAt = true, now
		if len(r.done) > 0 {
			r.gapAt = time.Time{}
			r.checkGap(now)
		}
	}
	return r.out, r.gapAt
}

// Wake is to be called at the time that was asked for; earlier it does nothing.
func (r *Receiver) Wake(now time.Time) (frames []Frame, wake time.Time) {
	r.out = r.out[:0]
	if !r.gapAt.IsZero() && !now.Before(r.gapAt) {
		r.gapAt = time.Time{}
		if r.gapFor == r.next && len(r.done) > 0 {
			r.skipTo(r.lowestDone())
			r.flush()
		}
		r.checkGap(now)
	}
	return r.out, r.gapAt
}

// Slice takes a message that came on channel ch. It keeps nothing of b.
func (r *Receiver) Slice(now time.Time, ch int, b []byte) (frames []Frame, wake time.Time) {
	r.out = r.out[:0]
	s, ok := parseSlice(b)
	if !ok {
		r.stats.Ignored++
		return r.out, r.gapAt
	}
	id := uint64(s.id)
	if seen, open := r.highest[ch]; open {
		r.highest[ch] = max(seen, id)
	}
	if len(r.done) > 0 && id != r.next {
		r.checkGap(now)
	}
	if _, waiting := r.done[id]; id < r.next || waiting {
		return r.out, r.gapAt // a copy, or too late
	}
	if f, complete := r.gather(now, id, &s); complete {
		r.done[id] = f
		r.held += len(f.Data)
		r.flush()
		r.checkGap(now)
		r.dropOld(now, partialMany)
	}
	return r.out, r.gapAt
}

// gather adds the slice to its frame and returns the frame once it is whole.
func (r *Receiver) gather(now time.Time, id uint64, s *slice) (f Frame, complete bool) {
	g := r.partial[id]
	if !s.fits() || g != nil && (g.count != s.count || len(g.frame.Data) != s.total) || g == nil && !r.room(now, id, s) {
		r.stats.Ignored++
		return Frame{}, false
	}
	if g == nil {
		f := s.frame()
		f.Data = make([]byte, s.total)
		if s.count == 1 {
			copy(f.Data, s.payload)
			return f, true
		}
		g = &gather{frame: f, count: s.count, have: make([]uint64, (s.count+63)/64), since: now}
		r.partial[id] = g
		r.held += s.total
	}
	word, bit := s.index/64, uint64(1)<<(s.index%64)
	if g.have[word]&bit != 0 {
		return Frame{}, false // a copy
	}
	g.have[word] |= bit
	g.got++
	copy(g.frame.Data[s.index*PayloadBytes:], s.payload)
	if g.got < g.count {
		return Frame{}, false
	}
	r.forget(id)
	return g.frame, true
}

// room reports whether a frame may be begun. The frame everything waits for always may, if its size is allowed.
func (r *Receiver) room(now time.Time, id uint64, s *slice) bool {
	if s.total > r.lim.FrameBytes {
		return false
	}
	full := func() bool {
		return len(r.done)+len(r.partial) >= r.lim.Frames || r.held+s.total > r.lim.Bytes
	}
	if id == r.next || !full() {
		return true
	}
	r.dropOld(now, 0)
	return !full()
}

// dropOld forgets frames begun long ago when there are more than many.
func (r *Receiver) dropOld(now time.Time, many int) {
	if len(r.partial) <= many {
		return
	}
	for id, g := range r.partial {
		if now.Sub(g.since) > partialAge {
			r.forget(id)
		}
	}
}

// forget drops what was gathered of a frame.
func (r *Receiver) forget(id uint64) {
	if g := r.partial[id]; g != nil {
		r.held -= len(g.frame.Data)
		delete(r.partial, id)
	}
}

// flush hands over the complete frames from next on. A kind nobody knows takes its place in the order and goes no
// further.
func (r *Receiver) flush() {
	for {
		f, ok := r.done[r.next]
		if !ok {
			return
		}
		delete(r.done, r.next)
		r.held -= len(f.Data)
		r.next++
		if f.Kind <= HiddenRetB {
			r.stats.Frames++
			r.out = append(r.out, f)
		}
	}
}

// checkGap gives up what is provably lost and sees to the timer for the first frame that is not.
func (r *Receiver) checkGap(now time.Time) {
	for len(r.done) > 0 {
		lost := r.lostBelow()
		if lost <= r.next {
			break
		}
		r.skipTo(min(lost, r.lowestDone()))
		r.flush()
	}
	if len(r.done) == 0 {
		r.gapAt = time.Time{}
		return
	}
	if !r.gapAt.IsZero() && r.gapFor == r.next {
		return
	}
	wait := gapLong
	if r.unordered || r.closed && now.Sub(r.closedAt) < closeWindow {
		wait = gapShort
	}
	r.gapFor, r.gapAt = r.next, now.Add(wait)
}

// lostBelow is the id below which nothing can come any more: the lowest of the highest ids of the open channels. 0
// when nothing is certain.
func (r *Receiver) lostBelow() uint64 {
	if r.unordered || len(r.highest) == 0 {
		return 0
	}
	least := uint64(1 << 32)
	for _, id := range r.highest {
		least = min(least, id)
	}
	return least
}

func (r *Receiver) lowestDone() uint64 {
	least := uint64(1 << 32)
	for id := range r.done {
		least = min(least, id)
	}
	return least
}

// skipTo gives up the frames below id.
func (r *Receiver) skipTo(id uint64) {
	r.stats.Skipped += id - r.next
	r.next = id
	for p := range r.partial {
		if p < id {
			r.forget(p)
		}
	}
}
