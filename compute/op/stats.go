package op

import "time"

// Stats counts what a device did since it was opened.
type Stats struct {
	Launches  int64         // dispatches
	Submits   int64         // command buffers
	Readbacks int64         // mapped results
	Uploads   int64         // writes to buffers
	BytesDown int64         // read back
	BytesUp   int64         // uploaded
	Encoding  time.Duration // spent on recording and submitting
	Waiting   time.Duration // spent on waiting for results
}

// Counting is a Device that counts what it does. Stats may be called from any goroutine.
type Counting interface{ Stats() Stats }

// Since is what was done after an earlier reading.
func (s Stats) Since(before Stats) Stats {
	return Stats{
		Launches: s.Launches - before.Launches, Submits: s.Submits - before.Submits, Readbacks: s.Readbacks - before.Readbacks,
		Uploads: s.Uploads - before.Uploads, BytesDown: s.BytesDown - before.BytesDown, BytesUp: s.BytesUp - before.BytesUp,
		Encoding: s.Encoding - before.Encoding, Waiting: s.Waiting - before.Waiting,
	}
}
