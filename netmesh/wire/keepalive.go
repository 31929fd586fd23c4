package wire

import "time"

// Times of the keep-alive (spec wire.md 4.6).
const (
	DefaultKeepAlive = 10 * time.Millisecond
	keepAliveActive  = 1500 * time.Millisecond
	keepAliveQueue   = 1024 // bytes buffered on the channel from which on nothing is added
)

// KeepAlive decides when a link sends its keep-alive byte, which keeps radios awake between sparse frames: while a
// frame moved in the last 1.5 s, and nothing was sent for a period, one byte on one association per tick, in turn. The
// owner runs a timer of Period from Moved until Tick says the link is idle. It belongs to one goroutine.
type KeepAlive struct {
	Period time.Duration // 0 off

	moved time.Time // when a frame last moved
	sent  time.Time // when anything was last sent
	turn  int
}

// Moved notes that a frame was sent or came in. It returns whether ticks are wanted.
func (k *KeepAlive) Moved(now time.Time, sent bool) bool {
	k.moved = now
	if sent {
		k.sent = now
	}
	return k.Period > 0
}

// Tick returns the association to send the byte on now, -1 for none, and whether ticks are still wanted. queued are the
// bytes buffered on each keep-alive channel, negative when it is not open.
func (k *KeepAlive) Tick(now time.Time, queued []int) (ch int, active bool) {
	if k.Period <= 0 || k.moved.IsZero() || now.Sub(k.moved) > keepAliveActive {
		return -1, false
	}
	if now.Sub(k.sent) < k.Period {
		return -1, true
	}
	for i := range queued {
		at := (k.turn + i) % len(queued)
		if queued[at] < 0 || queued[at] >= keepAliveQueue {
			continue
		}
		k.turn = at + 1
		k.sent = now
		return at, true
	}
	return -1, true
}
