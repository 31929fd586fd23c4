package headless

import (
	"fmt"
	"time"

	"pooled/session"
	"pooled/session/usage"
)

// showStatus prints the status line when phase, devices or layers changed, or when it is due anyway (spec cli.md 6.4).
// The JSON log has the events that make these changes.
func (w *Watcher) showStatus(st *session.State, now time.Time, due bool) {
	if w.o.JSON {
		return
	}
	s := usage.Of(st)
	key := s
	key.PerSec, key.Passes = 0, 0
	if w.shown && key == w.key && !due {
		return
	}
	w.shown, w.key = true, key
	_, _ = fmt.Fprintf(w.o.Log, "%s %s\n", now.Format(time.TimeOnly), usage.StatusLine(s))
}
