package usage

import (
	"fmt"
	"math"
	"strings"

	"pooled/session"
)

// GB writes bytes as in a table of devices (spec cli.md 3.4): GB of 2^30, rounded from 10 on, else one decimal, which is
// left out when it is 0.
func GB(bytes int64) string {
	gb := float64(bytes) / (1 << 30)
	if gb >= 9.95 {
		return fmt.Sprintf("%.0f GB", gb)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", math.Round(gb*10)/10), ".0") + " GB"
}

// LayerRange writes layers lo..hi-1: "6-27", or "6" for one.
func LayerRange(lo, hi int) string {
	if hi-lo == 1 {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d-%d", lo, hi-1)
}

// Trust is what a person must know before lending (worker) or inviting (host): a sentence a line.
func Trust(role session.Role) []string {
	switch role {
	case session.Host:
		return []string{"every device with layers sees the hidden states of what is asked here: they carry the prompts and answers"}
	case session.Worker:
		return []string{
			"whoever is in the room can use what this computer lends",
			"this computer sees the hidden states of what is asked there: they carry the prompts and answers",
		}
	}
	return nil
}

// EventLine says an event in a line for the log, empty for events that need none. st is a state that includes it. Notices
// are their own text.
func EventLine(ev session.Event, st *session.State) (string, session.Level) {
	switch ev := ev.(type) {
	case session.Notice:
		return ev.Text, ev.Level
	case session.RoomOpened:
		if st.Role == session.Host {
			return fmt.Sprintf("room %s is open at %s", ev.Code, ev.Server), session.Info
		}
		return fmt.Sprintf("reached room %s of %s as %s", ev.Code, ev.Host, st.SelfName), session.Info
	case session.RoomOnline:
		return "the room is online", session.Info
	case session.PeerJoined:
		return joinedLine(ev, st), session.Info
	case session.PeerLeft:
		if ev.Reason == "" || ev.Reason == "left" {
			return ev.Name + " left", session.Info
		}
		return fmt.Sprintf("%s left: %s", ev.Name, ev.Reason), session.Info
	case session.PeerRefused:
		return "a device was turned away: " + ev.Why, session.Info
	case session.DealMade:
		return dealLine(ev), session.Info
	case session.PeerReady:
		for _, p := range st.Peers {
			if p.ID == ev.Peer && p.Hi > p.Lo {
				return fmt.Sprintf("%s holds layers %s", p.Name, LayerRange(p.Lo, p.Hi)), session.Info
			}
		}
	case session.SignalChanged:
		if ev.Up {
			return "signaling is up at " + ev.Server, session.Info
		}
		return "signaling is down (links stay up): " + ev.Why, session.Error
	}
	return "", session.Info
}

func joinedLine(ev session.PeerJoined, st *session.State) string {
	switch {
	case ev.Peer == st.Self:
		return ""
	case ev.Kind == session.KindAPI:
		return ev.Name + " is in the room to chat"
	}
	what := ev.GPU
	if what == "" {
		what = string(ev.Kind)
	}
	return fmt.Sprintf("%s is in the room (%s, lends %s)", ev.Name, what, GB(ev.PledgeBytes))
}

// dealLine names every device of a deal with its layers, then how many were left out.
func dealLine(ev session.DealMade) string {
	var parts []string
	for _, s := range ev.Shares {
		if s.Hi > s.Lo {
			parts = append(parts, s.Name+" "+LayerRange(s.Lo, s.Hi))
		}
	}
	text := "layers dealt: " + strings.Join(parts, ", ")
	switch n := len(ev.LeftOut); n {
	case 0:
	case 1:
		text += " (1 device left out)"
	default:
		text += fmt.Sprintf(" (%d devices left out)", n)
	}
	return text
}
