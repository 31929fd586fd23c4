package session

import "time"

// Time limits of frames on their way around the chain (spec room.md 5.2).
const (
	tokenLimit = 30 * time.Second
	batchLimit = 90 * time.Second
	lapFloor   = 25 * time.Second
	lapsNeeded = 4 // measured laps before they set the limit
)

// lapStat is a running measure of decode laps, in milliseconds.
type lapStat struct {
	n              int
	lap, host, max float64
}

// add takes one lap: the whole of it and the host's own part.
func (s *lapStat) add(lap, host float64) {
	if s.n++; s.n == 1 {
		s.lap, s.host, s.max = lap, host, lap
		return
	}
	s.lap = 0.7*s.lap + 0.3*lap
	s.host = 0.7*s.host + 0.3*host
	s.max = max(lap, 0.98*s.max)
}

// limit is how long the next lap may take: the fallback until enough laps are measured, never more than it. rtt is the
// slowest round trip in the chain.
func (s *lapStat) limit(fallback, rtt time.Duration) time.Duration {
	if s == nil || s.n < lapsNeeded || s.max <= 0 {
		return fallback
	}
	d := time.Duration(6*max(s.max, s.lap)*float64(time.Millisecond)) + 2*rtt + 2*time.Second
	return min(fallback, max(lapFloor, d))
}

// flight is a frame that left for the chain and has not come back.
type flight struct {
	pos, n int
	batch  bool
	head   bool          // its last column goes to the head when it is back
	decode bool          // an answer's token, measured
	sent   time.Time     //
	limit  time.Duration // for its return
	host   time.Duration // the host's own time before it was sent
}
