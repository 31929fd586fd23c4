package netmesh

import "time"

// Limits of silence (spec wire.md 7.1).
const (
	defaultSilence = 15 * time.Second
	phoneSilence   = 60 * time.Second
	hostSilence    = 30 * time.Second
	// NeverSilent as a limit: the link is not judged.
	NeverSilent time.Duration = -1
	// stall: a tick that comes so much after the one before means that this process stood still.
	stall = 5 * time.Second
)

// SilenceLimit is how long a link may carry nothing before it counts as lost: a device's link to the host, a link to a
// phone, any other; NeverSilent while either end loads layers.
func SilenceLimit(toHost, phone, loading bool) time.Duration {
	switch {
	case loading:
		return NeverSilent
	case toHost:
		return hostSilence
	case phone:
		return phoneSilence
	}
	return defaultSilence
}

// judge decides who fell silent. It restarts everyone's clock after a stall of this process and while it is off.
type judge struct {
	last time.Duration // time of the tick before
	from time.Duration // silence before this does not count
	off  bool
}

// tick notes the time; it has to be called before gone.
func (j *judge) tick(now time.Duration) {
	if j.off || now-j.last > stall {
		j.from = now
	}
	j.last = now
}

// gone reports whether a link that was last heard at heard is over its limit. Times count from one epoch.
func (j *judge) gone(now, heard, limit time.Duration) bool {
	if j.off || limit < 0 {
		return false
	}
	return now-max(heard, j.from) > limit
}
