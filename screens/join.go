package screens

import (
	"fmt"

	"github.com/rivo/tview"

	"pooled/catalog"
	"pooled/session"
	"pooled/session/usage"
	"pooled/widgets"
)

// joinScreen is `pooled join`: this computer, its layers, the log and the status line.
type joinScreen struct {
	console
	device  *widgets.Lines
	layers  *widgets.LayerMap
	log     *widgets.Log
	load    *widgets.Gauge
	st      *session.State
	journal journal
}

// Build makes the page.
func (s *joinScreen) Build(o BuildOptions) tview.Primitive {
	s.device, s.layers = widgets.NewLines(o.Look), widgets.NewLayerMap(o.Look)
	s.log, s.load = widgets.NewLog(o.Look), widgets.NewGauge(o.Look)
	s.init(o, s.Keys, s.layout,
		&pane{name: devicesName, title: "this computer", body: s.device},
		&pane{name: layersName, title: "layers", body: unscrolled{s.layers}},
		&pane{name: logName, title: "log", body: s.log})
	s.extra = s.gauge
	s.canStop = func() bool { return false }
	s.guests = func() int { return 0 }
	s.focus(logName, false)
	s.journal.trust(session.Worker, o.Now())
	return s
}

// layout puts this computer beside its layers, the log below.
func (s *joinScreen) layout(_ shape, r rect) []placed {
	left := r.w * 11 / 20
	top := min(2+max(s.device.Height(left-3), s.layers.Height(), 4), r.h-4)
	return []placed{
		{s.panes[0], rect{r.x, r.y, left, top}},
		{s.panes[1], rect{r.x + left, r.y, r.w - left, top}},
		{s.panes[2], rect{r.x, r.y + top, r.w, r.h - top}},
	}
}

// gauge is the load bar, there only while layers load here.
func (s *joinScreen) gauge(shape, int) *widgets.Gauge {
	if s.st == nil || s.st.Phase != session.Loading {
		return nil
	}
	m := widgets.GaugeModel{Label: "loading", Percent: s.st.LoadPct}
	if p, ok := self(s.st); ok && p.Hi > p.Lo {
		m.Text = textf("layers %s", usage.LayerRange(p.Lo, p.Hi))
	}
	s.load.SetModel(m)
	return s.load
}

// Apply shows the state.
func (s *joinScreen) Apply(st *session.State, events []session.Event) {
	s.st = st
	s.journal.take(events, st, s.o.Now())
	now := s.o.Now()
	s.parts = headerParts(st, s.leaving, now)
	s.device.SetModel(widgets.LinesModel{Lines: deviceLines(st)})
	s.panes[1].title = layersTitle(st)
	s.layers.SetModel(widgets.LayerMapModel{Layers: st.Model.Layers, Runs: layerRuns(st, true), Lines: ownLines(st)})
	s.log.SetModel(logModel(st, s.journal.lines, s.o.Now().Location()))
	s.bar = widgets.Plain(widgets.Safe(usage.StatusLine(usage.Of(st)), widgets.MaxLine))
}

// Keys lists what can be done.
func (s *joinScreen) Keys() []Binding {
	const leave = "leave the room and free the GPU"
	return append([]Binding{s.quitBinding(leave, leave)}, s.common()...)
}

// deviceLines says what this computer is and lends.
func deviceLines(st *session.State) []widgets.Line {
	row := func(label, value widgets.Text) widgets.Line {
		return widgets.Line{{Text: widgets.Pad(label, 10), Role: widgets.Dim}, {Text: value}}
	}
	d := st.Device
	gpu := textf("%s", d.GPU)
	if d.Backend != "" {
		gpu = textf("%s (%s)", d.GPU, d.Backend)
	}
	if d.Software {
		gpu += ", software: slow"
	}
	lends := textf("%s", usage.GB(d.PledgeBytes))
	if d.PledgeWhy != "" {
		lends += "  (" + widgets.Safe(d.PledgeWhy, widgets.MaxReason) + ")"
	}
	out := []widgets.Line{row("node", widgets.Safe(st.SelfName, widgets.MaxName)), row("GPU", gpu), row("lends", lends)}
	for _, p := range st.Peers {
		if p.Host && !p.Self {
			out = append(out, row("host", textf("%s", hostLink(p))))
		}
	}
	return append(out, widgets.In(widgets.Dim, advice(st)))
}

// hostLink names the host and how it is reached.
func hostLink(p session.Peer) string {
	s := p.Name
	if p.Path != "" {
		s += ", " + p.Path
	}
	if p.RTTms > 0 {
		s += fmt.Sprintf(", %.0f ms", p.RTTms)
	}
	return s
}

// advice is one sentence on what happens next (spec cli.md 6.3).
func advice(st *session.State) widgets.Text {
	switch st.Phase {
	case session.Connecting:
		return "looking for the room"
	case session.Waiting:
		return "starts once the host deals the layers"
	case session.Loading:
		return "its layers are on their way to the GPU"
	case session.Loaded:
		return "loaded: waits for the rest of the room"
	case session.Guest:
		s := usage.Of(st)
		return textf("%s", usage.GuestText(s.Unneeded, s.Small))
	case session.Online:
		return "closing takes these layers out of the room"
	case session.Degraded:
		return "the host can re-deal, or the device comes back"
	case session.HostGone:
		return "knocking; the layers stay loaded"
	}
	return "freeing the GPU"
}

// ownLines are the figures of this device's layers.
func ownLines(st *session.State) []widgets.Line {
	p, ok := self(st)
	if !ok || p.Hi <= p.Lo {
		return []widgets.Line{widgets.In(widgets.Dim, "no layers dealt here yet")}
	}
	text := textf("here %s", usage.LayerRange(p.Lo, p.Hi))
	if st.Device.UsedBytes > 0 {
		text += textf("   %s of %s", catalog.FormatBytes(st.Device.UsedBytes), usage.GB(st.Device.PledgeBytes))
	}
	return append([]widgets.Line{widgets.Plain(text)}, figures(st)...)
}
