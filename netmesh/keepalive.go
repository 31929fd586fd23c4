package netmesh

import (
	"context"
	"time"

	"pooled/netmesh/wire"
)

func (m *Mesh) wakeKeepAlive() {
	select {
	case m.kaWake <- struct{}{}:
	default:
	}
}

// keepAlive ticks while some link moves frames and sends the byte that keeps radios awake (spec wire.md 4.6).
func (m *Mesh) keepAlive(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.kaWake:
			if m.tune.keepAlive > 0 {
				tick.Reset(m.tune.keepAlive)
			}
		case <-tick.C:
			if !m.keepAlives(time.Now()) {
				tick.Stop()
			}
		}
	}
}

// keepAlives does one tick for every link and reports whether another one is wanted.
func (m *Mesh) keepAlives(now time.Time) (active bool) {
	m.mu.Lock()
	links := make([]*link, 0, len(m.open))
	for _, l := range m.open {
		links = append(links, l)
	}
	m.mu.Unlock()
	for _, l := range links {
		queued := [1]int{l.kaOut.buffered()}
		l.kaMu.Lock()
		ch, on := l.alive.Tick(now, queued[:])
		l.kaOn = on
		l.kaMu.Unlock()
		active = active || on
		if ch >= 0 {
			_ = l.kaOut.send([]byte{wire.KeepAliveByte}, true) // it may be lost: that is what the channel is for
		}
	}
	return active
}
