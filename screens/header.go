package screens

import (
	"time"

	"pooled/session"
	"pooled/session/usage"
	"pooled/widgets"
)

// headerParts is the first line of a page: what it is, which room, its state, and the three figures that matter.
func headerParts(st *session.State, leaving bool, now time.Time) []widgets.Part {
	word := map[session.Role]widgets.Text{session.Host: "pooled host", session.Worker: "pooled join"}[st.Role]
	if word == "" {
		word = "pooled chat"
	}
	state := phaseText(st, now)
	if leaving {
		state = "leaving"
	}
	parts := []widgets.Part{
		{Text: word, Role: widgets.Strong},
		{Text: widgets.Safe(st.Code, widgets.MaxName), Role: widgets.Accent},
	}
	if st.Role != session.Host && st.HostName != "" {
		parts = append(parts, widgets.Part{Text: widgets.Safe(st.HostName, widgets.MaxName) + "'s room", Drop: 3})
	}
	parts = append(parts, widgets.Part{Text: widgets.Safe(modelName(st), widgets.MaxLabel), Drop: 2})
	parts = append(parts, widgets.Part{Text: state, Role: stateRole(st)})
	if st.Phase == session.Online && !leaving {
		parts = append(parts, widgets.Part{Text: textf("%s", count(devices(st), "device")), Drop: 4})
		parts = append(parts, widgets.Part{Text: textf("%s", usage.TokPerSec(st.TokPerSec)), Drop: 5})
		if !st.OnlineAt.IsZero() {
			parts = append(parts, widgets.Part{Text: textf("up %s", usage.Uptime(now.Sub(st.OnlineAt))), Drop: 6})
		}
	}
	if !st.SignalUp && st.Phase != session.Connecting && !leaving {
		parts = append(parts, widgets.Part{Text: "signaling down", Role: widgets.Bad, Drop: 1})
	}
	return parts
}

// modelName is what people call the room's model.
func modelName(st *session.State) string {
	if st.Model.Label != "" {
		return st.Model.Label
	}
	return st.Model.Key
}

// phaseText says in a few words where the room stands, as this device sees it.
func phaseText(st *session.State, now time.Time) widgets.Text {
	host := st.Role == session.Host
	switch st.Phase {
	case session.Connecting:
		if host {
			return "opening the room"
		}
		return "connecting"
	case session.Waiting:
		if host {
			return "waiting for devices"
		}
		return "waiting for the host to start"
	case session.Loading:
		if !st.LoadingAt.IsZero() {
			return textf("loading %s", usage.Uptime(now.Sub(st.LoadingAt)))
		}
		return "loading"
	case session.Loaded:
		return "loaded, waiting for the others"
	case session.Guest:
		return "in the room without layers"
	case session.Online:
		if st.Answering {
			return "answering"
		}
		return "online"
	case session.Degraded:
		if host {
			return "a device left"
		}
		return "a device left: waiting for it"
	case session.HostGone:
		return "lost the host"
	case session.Leaving:
		return "leaving"
	}
	return "closed"
}

func stateRole(st *session.State) widgets.Role {
	switch st.Phase {
	case session.Degraded, session.HostGone:
		return widgets.Bad
	case session.Online:
		return widgets.Strong
	}
	return widgets.Normal
}
