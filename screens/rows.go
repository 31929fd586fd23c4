package screens

import (
	"time"

	"pooled/catalog"
	"pooled/session"
	"pooled/session/usage"
	"pooled/widgets"
)

// letters gives every device that can hold layers its letter, in the order of the roster.
func letters(st *session.State) map[session.PeerID]int {
	out := map[session.PeerID]int{}
	for _, p := range st.Peers {
		if p.Kind != session.KindAPI {
			out[p.ID] = len(out)
		}
	}
	return out
}

// letterOf is the letter of the n-th device: a to z, then A to Z, then "+" for all further ones.
func letterOf(n int) widgets.Text {
	switch {
	case n < 26:
		return widgets.Text(rune('a' + n))
	case n < 52:
		return widgets.Text(rune('A' + n - 26))
	}
	return "+"
}

// rosterModel lists the devices of the room.
func rosterModel(st *session.State) widgets.RosterModel {
	m := widgets.RosterModel{Columns: []widgets.Column{
		{Title: "", Max: 1},
		{Title: "DEVICE", Max: 24},
		{Title: "GPU", Max: 26, Drop: 3},
		{Title: "LENDS", Max: 7, Right: true, Drop: 2},
		{Title: "HOLDS", Max: 14, Drop: 1},
		{Title: "STATE", Max: 16},
	}}
	marks := letters(st)
	for _, p := range st.Peers {
		row := widgets.RosterRow{Cells: []widgets.Text{"", widgets.Safe(p.Name, widgets.MaxName)}}
		lends := widgets.Text("")
		if n, ok := marks[p.ID]; ok {
			row.Cells[0], row.Hue = letterOf(n), widgets.Hue(n)
			lends = textf("%s", usage.GB(p.PledgeBytes))
		}
		row.Cells = append(row.Cells, widgets.Safe(p.GPU, widgets.MaxLabel), lends, holds(p), peerState(st, p))
		m.Rows = append(m.Rows, row)
	}
	return m
}

// holds names the layers a peer was dealt.
func holds(p session.Peer) widgets.Text {
	switch {
	case p.Hi <= p.Lo:
		return ""
	case p.Host:
		return textf("%s +E+H", usage.LayerRange(p.Lo, p.Hi))
	}
	return textf("%s", usage.LayerRange(p.Lo, p.Hi))
}

// peerState says in a word or two how a peer is.
func peerState(st *session.State, p session.Peer) widgets.Text {
	switch {
	case p.Kind == session.KindAPI:
		return "chat only"
	case p.Out == session.OutUnneeded:
		return "not needed"
	case p.Out == session.OutSmall:
		return "lends too little"
	case p.Out == session.OutLate:
		return "next re-deal"
	case loading(st) && p.Hi > p.Lo && p.Ready:
		return "loaded"
	case loading(st) && p.Hi > p.Lo:
		return textf("loading %d%%", loadPercent(st, p))
	case p.Self:
		return "here"
	case p.RTTms > 0 && p.Path == "relay":
		return textf("%.0f ms, relay", p.RTTms)
	case p.RTTms > 0:
		return textf("%.0f ms", p.RTTms)
	}
	return "joined"
}

func loading(st *session.State) bool {
	return st.Phase == session.Loading || st.Phase == session.Loaded
}

// loadPercent is how far a peer's load is, as this device knows it.
func loadPercent(st *session.State, p session.Peer) int {
	if p.Self {
		return max(st.LoadPct, p.LoadPct)
	}
	return p.LoadPct
}

// devices counts the members that can hold layers.
func devices(st *session.State) int { return len(letters(st)) }

// self returns this device's entry.
func self(st *session.State) (session.Peer, bool) {
	for _, p := range st.Peers {
		if p.Self || p.ID == st.Self && st.Self != "" {
			return p, true
		}
	}
	return session.Peer{}, false
}

// peerByID finds a member.
func peerByID(st *session.State, id session.PeerID) (session.Peer, bool) {
	for _, p := range st.Peers {
		if p.ID == id {
			return p, true
		}
	}
	return session.Peer{}, false
}

// layerRuns is the layer map: a run for each share of the deal. With own set, this device's run has a capital letter
// and the others are dim.
func layerRuns(st *session.State, own bool) []widgets.Run {
	marks := letters(st)
	var out []widgets.Run
	for _, s := range shares(st) {
		n, known := marks[s.Peer]
		p, here := peerByID(st, s.Peer)
		r := widgets.Run{Lo: s.Lo, Hi: s.Hi, Letter: letterOf(n), Hue: widgets.Hue(n), Working: st.Answering}
		switch {
		case !known || !here:
			r.State, r.Letter, r.Working = widgets.RunLost, "!", false
		case loading(st) && !p.Ready:
			r.State, r.Percent = widgets.RunLoading, loadPercent(st, p)
		}
		mine := s.Peer == st.Self || p.Self
		if own && mine && n < 26 {
			r.Letter = widgets.Text(rune('A' + n))
		}
		if own && !mine && r.State != widgets.RunLost {
			r.Dim, r.Working = true, false
		}
		out = append(out, r)
	}
	return out
}

// shares is the deal, or what the members say they hold when this device was told no deal.
func shares(st *session.State) []session.Share {
	if st.Deal != nil {
		return st.Deal.Shares
	}
	var out []session.Share
	for _, p := range st.Peers {
		if p.Hi > p.Lo {
			out = append(out, session.Share{Peer: p.ID, Name: p.Name, Lo: p.Lo, Hi: p.Hi})
		}
	}
	return out
}

// layersTitle is the title of the pane with the layer map.
func layersTitle(st *session.State) widgets.Text {
	if st.Model.Layers <= 0 {
		return "layers"
	}
	return textf("layers %s", usage.LayerRange(0, st.Model.Layers))
}

// layerLines are the figures under the layer map: a line for each device of the deal, the lap, the context.
func layerLines(st *session.State) []widgets.Line {
	var out []widgets.Line
	marks := letters(st)
	for _, s := range shares(st) {
		n, ok := marks[s.Peer]
		if !ok {
			out = append(out, widgets.In(widgets.Bad, textf("! %s is gone: layers %s", s.Name, usage.LayerRange(s.Lo, s.Hi))))
			continue
		}
		text := textf(" %2d %s", s.Hi-s.Lo, plural(s.Hi-s.Lo, "layer"))
		if p, _ := peerByID(st, s.Peer); s.Held > 0 {
			text += textf("  %s of %s", catalog.FormatBytes(s.Held), usage.GB(p.PledgeBytes))
		}
		out = append(out, widgets.Line{{Text: letterOf(n), Role: widgets.Hue(n)}, {Text: text}})
	}
	if len(out) == 0 {
		out = append(out, widgets.In(widgets.Dim, "no layers dealt yet"))
	}
	return append(out, figures(st)...)
}

// figures are the lap and the context.
func figures(st *session.State) []widgets.Line {
	var out []widgets.Line
	if l := st.Lap; l != nil && l.Hops > 0 {
		out = append(out, widgets.Plain(textf("lap %.1f ms = host %.1f + others %.1f (%s)", l.TotalMs, l.HostMs,
			max(0, l.TotalMs-l.HostMs), count(l.Hops, "hop"))))
	} else if l != nil {
		out = append(out, widgets.Plain(textf("lap %.1f ms", l.TotalMs)))
	}
	if st.Context.Max > 0 {
		out = append(out, widgets.Plain(textf("context %s of %s", thousands(st.Context.Used),
			thousands(st.Context.Max))))
	}
	return out
}

// logModel is the log pane: the room's notices and the page's journal, by time, with times in zone.
func logModel(st *session.State, extra []logged, zone *time.Location) widgets.LogModel {
	var m widgets.LogModel
	id := int64(0)
	add := func(at time.Time, role widgets.Role, text string) {
		id = max(id+1, at.UnixNano())
		m.Lines = append(m.Lines, widgets.LogLine{ID: id, When: textf("%s", at.In(zone).Format("15:04:05")),
			Text: widgets.Safe(text, widgets.MaxLine), Role: role})
	}
	for _, l := range st.Log {
		for len(extra) > 0 && extra[0].at.Before(l.At) {
			add(extra[0].at, extra[0].role, extra[0].text)
			extra = extra[1:]
		}
		role := widgets.Normal
		switch l.Level {
		case session.Error:
			role = widgets.Bad
		case session.Hint:
			role = widgets.Accent
		}
		add(l.At, role, l.Text)
	}
	for _, n := range extra {
		add(n.at, n.role, n.text)
	}
	return m
}
