package screens

import (
	"fmt"
	"strings"
	"time"

	"pooled/session"
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

// trust is what a person must know before lending or inviting; it stays in the log.
func (j *journal) trust(role session.Role, at time.Time) {
	switch role {
	case session.Host:
		j.add(at, widgets.Dim, "every device with layers sees the hidden states of what is asked here: they carry the "+
			"prompts and answers")
	case session.Worker:
		j.add(at, widgets.Dim, "whoever is in the room can use what this computer lends")
		j.add(at, widgets.Dim, "this computer sees the hidden states of what is asked there: they carry the prompts "+
			"and answers")
	}
}

// take writes a line for each event that deserves one. Notices are in the state's own log.
func (j *journal) take(events []session.Event, st *session.State, now time.Time) {
	for _, ev := range events {
		switch ev := ev.(type) {
		case native:
			j.add(ev.at, widgets.Dim, ev.Text)
			continue
		case session.SignalChanged:
			if ev.Up && !j.down {
				continue
			}
			j.down = !ev.Up
		}
		if text, role := eventLine(ev, st); text != "" {
			j.add(now, role, text)
		}
	}
}

// eventLine says what happened, empty for events that need no line.
func eventLine(ev session.Event, st *session.State) (string, widgets.Role) {
	switch ev := ev.(type) {
	case session.RoomOpened:
		if st.Role == session.Host {
			return fmt.Sprintf("room %s is open at %s", ev.Code, ev.Server), widgets.Normal
		}
		return fmt.Sprintf("reached room %s of %s as %s", ev.Code, ev.Host, st.SelfName), widgets.Normal
	case session.RoomOnline:
		return "the room is online", widgets.Strong
	case session.PeerJoined:
		return joinedLine(ev, st), widgets.Normal
	case session.PeerLeft:
		if ev.Reason == "" || ev.Reason == "left" {
			return ev.Name + " left", widgets.Normal
		}
		return fmt.Sprintf("%s left: %s", ev.Name, ev.Reason), widgets.Normal
	case session.PeerRefused:
		return fmt.Sprintf("a device was turned away: %s", ev.Why), widgets.Normal
	case session.DealMade:
		return dealLine(ev), widgets.Normal
	case session.PeerReady:
		if p, ok := peerByID(st, ev.Peer); ok && p.Hi > p.Lo {
			return fmt.Sprintf("%s holds layers %s", p.Name, layerRange(p.Lo, p.Hi)), widgets.Normal
		}
	case session.SignalChanged:
		if ev.Up {
			return fmt.Sprintf("signaling is back at %s", ev.Server), widgets.Normal
		}
		return "signaling is down (links stay up): " + ev.Why, widgets.Bad
	}
	return "", widgets.Normal
}

func joinedLine(ev session.PeerJoined, st *session.State) string {
	switch {
	case ev.Peer == st.Self:
		return ""
	case ev.Kind == session.KindAPI:
		return ev.Name + " is in the room to chat"
	case ev.GPU == "":
		return fmt.Sprintf("%s is in the room (%s, lends %s)", ev.Name, ev.Kind, tableGB(ev.PledgeBytes))
	}
	return fmt.Sprintf("%s is in the room (%s, lends %s)", ev.Name, ev.GPU, tableGB(ev.PledgeBytes))
}

// dealLine names every device of a deal with its layers, then how many were left out.
func dealLine(ev session.DealMade) string {
	var parts []string
	for _, s := range ev.Shares {
		if s.Hi > s.Lo {
			parts = append(parts, fmt.Sprintf("%s %s", s.Name, layerRange(s.Lo, s.Hi)))
		}
	}
	text := "layers dealt: " + strings.Join(parts, ", ")
	if n := len(ev.LeftOut); n > 0 {
		text += fmt.Sprintf(" (%s left out)", count(n, "device"))
	}
	return text
}
