package signal

import (
	"fmt"
	"time"
)

// Stats are a hub's figures at one moment.
type Stats struct {
	Clients  int   // registered ids
	Sockets  int   // open WebSockets
	Waiting  int   // messages kept for ids that are not there
	Messages int64 // taken from clients since the start
	Bytes    int64 // of these
	Refused  int64 // sockets, registrations, floods and requests for relays turned away since the start
	Uptime   time.Duration
}

// Stats returns the hub's figures.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	s := Stats{Clients: len(h.clients), Sockets: len(h.socks), Waiting: h.waiting.count}
	h.mu.Unlock()
	s.Messages, s.Bytes, s.Refused = h.messages.Load(), h.bytes.Load(), h.refused.Load()
	s.Uptime = time.Since(h.started)
	return s
}

// Changed reports whether anything but the time is different from before.
func (s Stats) Changed(before Stats) bool {
	s.Uptime, before.Uptime = 0, 0
	return s != before
}

// Line is the figures as one line, with the traffic since before.
func (s Stats) Line(before Stats) string {
	seconds := max((s.Uptime - before.Uptime).Seconds(), 0.001)
	return fmt.Sprintf("clients %d, sockets %d, %.1f messages/s, %.1f kB/s, waiting %d, refused %d, up %v",
		s.Clients, s.Sockets, float64(s.Messages-before.Messages)/seconds, float64(s.Bytes-before.Bytes)/seconds/1000,
		s.Waiting, s.Refused, s.Uptime.Round(time.Second))
}
