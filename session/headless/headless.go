// Package headless runs a room without a screen: it prints what happens, as lines for people or as JSON for programs,
// and asks single questions for scripts.
//
// It only reads the room's events and calls its commands, exactly as a screen does. Log and status lines go to the
// log writer (standard error), answers to the answer writer (standard output), and nothing else goes there.
package headless

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"pooled/session"
	"pooled/session/usage"
)

// statusEvery is the longest time between two status lines (seed 000: "once a minute").
const statusEvery = time.Minute

// Options say what Watch prints.
type Options struct {
	Log   io.Writer
	JSON  bool // one object per event instead of lines
	Quiet bool // only errors and the status line
}

// Watcher prints a room's events.
type Watcher struct {
	view  session.View
	o     Options
	sub   *session.Subscription
	first *session.State // the state that the subscription follows
	shown bool           // a status line was printed
	key   usage.Status   // what it said, without speed and passes
}

// Watch begins to follow a room. Made before the room runs, it misses nothing. Call Run.
func Watch(view session.View, o Options) *Watcher {
	w := &Watcher{view: view, o: o}
	w.sub, w.first = view.Subscribe("headless")
	return w
}

// Run prints events until the room closes, and returns why it closed (nil after a wanted end). When ctx ends first it
// closes the room and goes on until that is done.
func (w *Watcher) Run(ctx context.Context) *session.Problem {
	sub := w.sub
	defer sub.Close()
	for _, line := range w.first.Log {
		w.line(line.At, line.Level, line.Text)
	}
	w.showStatus(w.first, time.Now(), false)
	minute := time.NewTicker(statusEvery)
	defer minute.Stop()
	leave := ctx.Done()
	for {
		if closed, ok := w.drain(sub); ok {
			return closed.Problem
		}
		select {
		case <-sub.Ready():
		case now := <-minute.C:
			w.showStatus(w.view.Snapshot(), now, true)
		case <-leave:
			leave = nil
			if err := w.view.Close(); err != nil {
				return nil // closed already; the last event says why, if it is still to come
			}
		}
	}
}

// drain prints the events that wait. ok is true once the room has closed.
func (w *Watcher) drain(sub *session.Subscription) (closed session.RoomClosed, ok bool) {
	for {
		e, more := sub.TryNext()
		if !more {
			return closed, false
		}
		if _, lagged := e.Event.(session.Lagged); lagged {
			w.showStatus(sub.Resync(), e.At, false)
		}
		w.event(e)
		if c, is := e.Event.(session.RoomClosed); is {
			return c, true
		}
	}
}

// event prints one event.
func (w *Watcher) event(e session.Envelope) {
	if w.o.JSON {
		b, err := json.Marshal(e)
		if err != nil {
			b = []byte(fmt.Sprintf(`{"ev":"notice","level":"error","text":%q}`, err))
		}
		_, _ = w.o.Log.Write(append(b, '\n'))
		return
	}
	st := w.view.Snapshot()
	if text, level := usage.EventLine(e.Event, st); text != "" {
		w.line(e.At, level, text)
	}
	w.showStatus(st, e.At, false)
}

// line prints one line of the log.
func (w *Watcher) line(at time.Time, level session.Level, text string) {
	if w.o.JSON || w.o.Quiet && level != session.Error {
		return
	}
	_, _ = fmt.Fprintf(w.o.Log, "%s %s\n", at.Format(time.TimeOnly), text)
}

// Ask waits for the room's model (at most wait; 0 for ever), asks one question and writes the answer to out: only the
// answer, then one line break. When ctx ends it stops the answer and returns its error.
func Ask(ctx context.Context, view session.View, question string, wait time.Duration, out io.Writer) error {
	sub, st := view.Subscribe("one question")
	defer sub.Close()
	if err := awaitOnline(ctx, view, sub, st, wait); err != nil {
		return err
	}
	if err := view.Ask(question); err != nil {
		return err
	}
	return answer(ctx, view, sub, out)
}

// AwaitOnline waits until questions can be asked, at most wait (0 for ever).
func AwaitOnline(ctx context.Context, view session.View, wait time.Duration) error {
	sub, st := view.Subscribe("until online")
	defer sub.Close()
	return awaitOnline(ctx, view, sub, st, wait)
}

// awaitOnline waits until questions can be asked; sub and st came from view.Subscribe.
func awaitOnline(ctx context.Context, view session.View, sub *session.Subscription, st *session.State, wait time.Duration) error {
	if st.Phase == session.Online {
		return nil
	}
	limit := ctx
	if wait > 0 {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	for {
		e, err := sub.Next(limit)
		switch {
		case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			return notOnline(view.Snapshot().Phase, wait)
		case err != nil:
			return err
		}
		switch ev := e.Event.(type) {
		case session.RoomOnline:
			return nil
		case session.Lagged:
			if st := sub.Resync(); st.Phase == session.Online {
				return nil
			}
		case session.RoomClosed:
			return closedEarly(ev)
		}
	}
}

// notOnline is the error of a wait that was in vain; phase is where the room stands.
func notOnline(phase session.Phase, waited time.Duration) error {
	if phase == session.Connecting {
		return &session.Problem{
			Code: "no-answer", What: "the room's host doesn't answer", Exit: session.ExitNoRoom,
			Why: fmt.Sprintf("no greeting from it within %s", waited),
			Do:  "check that the host is still running, then try again",
		}
	}
	if phase == session.Degraded {
		return &session.Problem{
			Code: "degraded", What: "the room can't answer", Exit: session.ExitFailed,
			Why: fmt.Sprintf("a device with layers left, and its host did not deal them again within %s", waited),
			Do:  "ask the host to deal again, or wait longer with --wait",
		}
	}
	return &session.Problem{
		Code: "no-model", What: "the room has no model started yet", Exit: session.ExitFailed,
		Why: fmt.Sprintf("its host did not start one within %s", waited),
		Do:  "ask the host to start it, or wait longer with --wait",
	}
}

// answer writes the running answer's text to out.
func answer(ctx context.Context, view session.View, sub *session.Subscription, out io.Writer) error {
	wrote := false
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			if ctx.Err() != nil {
				_ = view.Stop() // best effort: the room may be gone
				if wrote {
					_, _ = io.WriteString(out, "\n")
				}
			}
			return err
		}
		switch ev := e.Event.(type) {
		case session.AnswerText:
			if ev.Reasoning {
				continue
			}
			wrote = true
			if _, err := io.WriteString(out, ev.Text); err != nil {
				_ = view.Stop()
				return fmt.Errorf("write the answer: %w", err)
			}
		case session.AnswerDone:
			return answerDone(ev, wrote, out)
		case session.AskRefused:
			return &session.Problem{
				Code: "refused-" + ev.Code, What: "the room did not take the question", Why: ev.Why,
				Do: "try again in a moment", Exit: session.ExitFailed,
			}
		case session.RoomClosed:
			return closedEarly(ev)
		}
	}
}

// answerDone ends what was written with a line break and says whether it is the whole answer.
func answerDone(ev session.AnswerDone, wrote bool, out io.Writer) error {
	p := &session.Problem{Exit: session.ExitFailed}
	switch ev.Reason {
	case session.DoneFailed:
		p.Code, p.What, p.Why, p.Do = "answer-failed", "the answer failed", ev.Err, "ask again once the room is online"
	case session.DoneStopped: // not by us: after our own stop nobody waits for the end
		p.Code, p.What, p.Do = "answer-stopped", "the answer was stopped at the host before its end", "ask again"
	default:
		_, err := io.WriteString(out, "\n")
		return err
	}
	if wrote {
		_, _ = io.WriteString(out, "\n")
	}
	return p
}

// closedEarly is the error of a room that closed before the answer was whole.
func closedEarly(ev session.RoomClosed) error {
	if ev.Problem != nil {
		return ev.Problem
	}
	return &session.Problem{
		Code: "room-closed", What: "the room closed", Why: ev.Reason,
		Do: "join again when its host has opened it", Exit: session.ExitNoRoom,
	}
}
