package screens

import (
	"time"

	"pooled/session"
	"pooled/session/usage"
	"pooled/widgets"
)

// native is a line that something outside the program's control wrote to the standard streams, as an event of its own,
// so that it reaches a page in order with the room's.
type native struct {
	session.Notice
	at time.Time
}

// logged is a line of the log pane that the state doesn't have.
type logged struct {
	at   time.Time
	role widgets.Role
	text string
}

// journal is a ring of lines a page writes itself: what happened in the room, what native code said.
type journal struct {
	lines []logged
	down  bool // signaling was seen to be gone
}

// add appends a line.
func (j *journal) add(at time.Time, role widgets.Role, text string) {
	j.lines = append(j.lines, logged{at, role, text})
	if over := len(j.lines) - widgets.MaxLogLines; over > 0 {
		j.lines = append([]logged(nil), j.lines[over:]...)
	}
}

// trust puts what a person must know before lending or inviting into the log, where it stays.
func (j *journal) trust(role session.Role, at time.Time) {
	for _, line := range usage.Trust(role) {
		j.add(at, widgets.Dim, line)
	}
}

// take writes a line for each event that deserves one. Notices are in the state's own log.
func (j *journal) take(events []session.Event, st *session.State, now time.Time) {
	for _, ev := range events {
		switch ev := ev.(type) {
		case native:
			j.add(ev.at, widgets.Dim, ev.Text)
			continue
		case session.Notice:
			continue
		case session.SignalChanged:
			if ev.Up && !j.down {
				continue
			}
			j.down = !ev.Up
		}
		if text, level := usage.EventLine(ev, st); text != "" {
			j.add(now, lineRole(ev, level), text)
		}
	}
}

// lineRole is how an event's line looks.
func lineRole(ev session.Event, level session.Level) widgets.Role {
	if _, online := ev.(session.RoomOnline); online {
		return widgets.Strong
	}
	if level == session.Error {
		return widgets.Bad
	}
	return widgets.Normal
}
