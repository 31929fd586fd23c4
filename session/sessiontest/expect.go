package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pooled/session"
)

// Match says whether an event is the one expected.
type Match struct {
	name string
	ok   func(session.Event) bool
}

// Is matches events of one type; checks look closer.
func Is[E session.Event](checks ...func(E) bool) Match {
	var zero E
	return Match{zero.EventName(), func(ev session.Event) bool {
		e, ok := ev.(E)
		for _, check := range checks {
			ok = ok && check(e)
		}
		return ok
	}}
}

// patience bounds every wait. In a bubble it passes at once when nothing else can happen.
const patience = 10 * time.Minute

// Recorder keeps what one subscriber sees.
type Recorder struct {
	t    testing.TB
	sub  *session.Subscription
	seen []session.Envelope
	at   int // Wait has looked at those before
}

// Record subscribes to a room until the test ends.
func Record(t testing.TB, v session.View, name string) *Recorder {
	t.Helper()
	sub, _ := v.Subscribe(name)
	t.Cleanup(sub.Close)
	return &Recorder{t: t, sub: sub}
}

// Wait returns the next event that matches, after the one that the last Wait returned.
func (r *Recorder) Wait(m Match) session.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		for r.at < len(r.seen) {
			e := r.seen[r.at]
			r.at++
			if m.ok(e.Event) {
				return e.Event
			}
		}
		e, err := r.sub.Next(ctx)
		if err != nil {
			r.t.Fatalf("%s: waiting for %s: %v; seen:\n%s", r.sub.Name(), m.name, err, list(r.seen))
		}
		r.seen = append(r.seen, e)
	}
}

// Seen returns everything so far, also what wasn't waited for.
func (r *Recorder) Seen() []session.Envelope {
	for {
		e, ok := r.sub.TryNext()
		if !ok {
			return r.seen
		}
		r.seen = append(r.seen, e)
	}
}

// Skip makes the next Wait begin after everything so far.
func (r *Recorder) Skip() { r.at = len(r.Seen()) }

// All waits for the room's end and returns everything.
func (r *Recorder) All() []session.Envelope {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		e, err := r.sub.Next(ctx)
		if errors.Is(err, session.ErrBusClosed) {
			return r.seen
		}
		if err != nil {
			r.t.Fatalf("%s: waiting for the end: %v; seen:\n%s", r.sub.Name(), err, list(r.seen))
		}
		r.seen = append(r.seen, e)
	}
}

// InOrder expects these events in this order; others may come between.
func InOrder(t testing.TB, got []session.Envelope, want ...Match) {
	t.Helper()
	i := 0
	for _, m := range want {
		for i < len(got) && !m.ok(got[i].Event) {
			i++
		}
		if i == len(got) {
			t.Fatalf("no %s where it should be; seen:\n%s", m.name, list(got))
		}
		i++
	}
}

// Exactly expects just these events.
func Exactly(t testing.TB, got []session.Envelope, want ...Match) {
	t.Helper()
	for i, m := range want {
		if i >= len(got) || !m.ok(got[i].Event) {
			t.Fatalf("event %d is not the expected %s; seen:\n%s", i+1, m.name, list(got))
		}
	}
	if len(got) > len(want) {
		t.Fatalf("%d events, want %d; seen:\n%s", len(got), len(want), list(got))
	}
}

// None expects that no event matches.
func None(t testing.TB, got []session.Envelope, m Match) {
	t.Helper()
	for _, e := range got {
		if m.ok(e.Event) {
			t.Fatalf("an unexpected %s: %+v", m.name, e.Event)
		}
	}
}

// Count counts the events that match.
func Count(got []session.Envelope, m Match) int {
	n := 0
	for _, e := range got {
		if m.ok(e.Event) {
			n++
		}
	}
	return n
}

func list(es []session.Envelope) string {
	var b strings.Builder
	for _, e := range es {
		fmt.Fprintf(&b, "  %3d %s %+v\n", e.Seq, e.Event.EventName(), e.Event)
	}
	return b.String()
}
