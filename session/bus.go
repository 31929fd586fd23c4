package session

import (
	"context"
	"slices"
	"sync"
	"time"
)

// QueueCap is the most events that wait for one subscriber, latest-wins events not counted (there is at most one of
// those per key). A subscriber that falls further behind loses what waits and gets one Lagged instead.
const QueueCap = 4096

// Bus delivers a room's events in one total order. Only the owner of the state publishes; publishing never waits.
//
// A subscriber sees every event after the snapshot it got from Subscribe, in order, except that of load.progress, lap
// and link.rtt it may see only the newest per key, at the newest's place in the order.
type Bus struct {
	mu     sync.Mutex
	seq    uint64
	snap   *State
	subs   []*Subscription
	closed bool
}

// NewBus returns a bus whose snapshot is st until the first Publish. The bus takes st over.
func NewBus(st *State) *Bus { return &Bus{snap: st, seq: st.Seq} }

// Publish appends events to the order and makes st, which must include them, the snapshot. It sets st.Seq and takes st
// over: nobody may write to it, or to what it points to, afterwards. With no events only the snapshot changes.
func (b *Bus) Publish(at time.Time, st *State, events ...Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	for _, ev := range events {
		b.seq++
		e := Envelope{Seq: b.seq, At: at, Event: ev}
		for _, s := range b.subs {
			s.push(e)
		}
	}
	st.Seq = b.seq
	b.snap = st
}

// Snapshot returns the state as of the last event published.
func (b *Bus) Snapshot() *State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.snap
}

// Subscribe starts a subscription to every event after the returned snapshot. The name is for debugging: say who
// reads, not what.
func (b *Bus) Subscribe(name string) (*Subscription, *State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Subscription{name: name, bus: b, cap: QueueCap, wake: make(chan struct{}, 1), ended: b.closed}
	if !b.closed {
		b.subs = append(b.subs, s)
	}
	return s, b.snap
}

// Close ends the order: subscribers get what waits for them, then ErrBusClosed.
func (b *Bus) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, s := range b.subs {
		s.end()
	}
	b.subs = nil
}

func (b *Bus) drop(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subs = slices.DeleteFunc(b.subs, func(o *Subscription) bool { return o == s })
}

// Subscription is one reader's place in the order. Next and TryNext are for one goroutine at a time, Close for any.
type Subscription struct {
	name string
	bus  *Bus
	cap  int
	wake chan struct{} // one token: something changed

	mu     sync.Mutex
	queue  []Envelope          // in order
	latest map[string]Envelope // newest of each latest-wins key
	lost   int                 // events lost since the last Lagged was delivered
	lostAt Envelope            // the newest of them
	skip   uint64              // Resync: events up to here are in the snapshot
	ended  bool                // the bus is closed
	closed bool
}

// Name returns the name given to Subscribe.
func (s *Subscription) Name() string { return s.name }

// Next waits for the next event. It fails with ctx's error, ErrBusClosed after the room's last event, or
// ErrSubscriptionClosed.
func (s *Subscription) Next(ctx context.Context) (Envelope, error) {
	for {
		e, ok, err := s.take()
		if ok || err != nil {
			return e, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Envelope{}, ctx.Err()
		}
	}
}

// TryNext returns the next event if one waits.
func (s *Subscription) TryNext() (Envelope, bool) {
	e, ok, _ := s.take()
	return e, ok
}

// Ready is signalled when TryNext may have something, or Next would fail. One value can stand for many events.
func (s *Subscription) Ready() <-chan struct{} { return s.wake }

// Resync returns a new snapshot and drops waiting events that it includes. It is the answer to Lagged.
func (s *Subscription) Resync() *State {
	st := s.bus.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skip = max(s.skip, st.Seq)
	s.lost = 0
	return st
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {
	s.bus.drop(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.queue, s.latest = nil, nil
	s.poke()
}

func (s *Subscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.poke()
}

func (s *Subscription) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Subscription) push(e Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if key := latestKey(e.Event); key != "" {
		if s.latest == nil {
			s.latest = make(map[string]Envelope)
		}
		s.latest[key] = e
	} else {
		if len(s.queue) >= s.cap {
			s.lost += len(s.queue)
			s.lostAt = s.queue[len(s.queue)-1]
			clear(s.queue)
			s.queue = s.queue[:0]
			clear(s.latest) // all older than what was lost, and in the snapshot
		}
		s.queue = append(s.queue, e)
	}
	s.poke()
}

// take removes the oldest waiting event: the head of the queue or a latest-wins event published before it.
func (s *Subscription) take() (Envelope, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		s.poke() // later calls fail too, whichever way they wait
		return Envelope{}, false, ErrSubscriptionClosed
	case s.lost > 0:
		e := Envelope{Seq: s.lostAt.Seq, At: s.lostAt.At, Event: Lagged{N: s.lost}}
		s.lost = 0
		s.poke()
		return e, true, nil
	}
	for {
		e, ok := s.oldest()
		if !ok {
			break
		}
		if e.Seq > s.skip {
			s.poke() // more may wait
			return e, true, nil
		}
	}
	if s.ended {
		s.poke()
		return Envelope{}, false, ErrBusClosed
	}
	return Envelope{}, false, nil
}

func (s *Subscription) oldest() (Envelope, bool) {
	var key string
	best, found := Envelope{}, false
	if len(s.queue) > 0 {
		best, found = s.queue[0], true
	}
	for k, e := range s.latest {
		if !found || e.Seq < best.Seq {
			best, key, found = e, k, true
		}
	}
	switch {
	case !found:
	case key != "":
		delete(s.latest, key)
	default:
		s.queue[0] = Envelope{}
		s.queue = s.queue[1:]
	}
	return best, found
}

// latestKey returns the key under which only the newest event matters, empty for every-one-in-order events.
func latestKey(ev Event) string {
	switch ev := ev.(type) {
	case LoadProgress:
		return "load.progress " + string(ev.Peer)
	case LinkRTT:
		return "link.rtt " + string(ev.Peer)
	case Lap:
		return "lap"
	}
	return ""
}
