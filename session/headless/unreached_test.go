package headless

import (
	"testing"
	"time"

	"pooled/session"
)

// TestHostThatNeverGreeted: a room that was never reached isn't one without a model.
func TestHostThatNeverGreeted(t *testing.T) {
	for phase, want := range map[session.Phase]int{
		session.Connecting: session.ExitNoRoom,
		session.Waiting:    session.ExitFailed,
		session.Degraded:   session.ExitFailed,
	} {
		if p := session.AsProblem(notOnline(phase, 5*time.Second)); p.Exit != want {
			t.Errorf("%s: got %s with exit %d, want %d", phase, p.Code, p.Exit, want)
		}
	}
}
