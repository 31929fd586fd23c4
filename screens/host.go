package screens

import (
	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"pooled/session"
	"pooled/session/usage"
	"pooled/widgets"
)

// hostScreen is `pooled host`: devices, layers, the chat (before the room is online: what is missing), the log.
type hostScreen struct {
	chatter
	roster  *widgets.Roster
	layers  *widgets.LayerMap
	step    *widgets.Lines
	log     *widgets.Log
	journal journal
	opened  bool         // the chat was offered once
	why     widgets.Text // why Enter did not start
}

// Build makes the page.
func (s *hostScreen) Build(o BuildOptions) tview.Primitive {
	s.roster, s.layers = widgets.NewRoster(o.Look), widgets.NewLayerMap(o.Look)
	s.step, s.log = widgets.NewLines(o.Look), widgets.NewLog(o.Look)
	chat := s.newChatPane(o)
	s.init(o, s.Keys, s.layout,
		&pane{name: devicesName, title: "devices", body: s.roster},
		&pane{name: layersName, title: "layers", body: unscrolled{s.layers}},
		chat,
		&pane{name: logName, title: "log", body: s.log})
	s.canStop = func() bool { return s.st != nil && s.st.Answering }
	s.guests = func() int { return max(0, len(s.st.Peers)-1) }
	s.wayOut = func() { s.focus(devicesName, false) }
	s.journal.trust(session.Host, o.Now())
	if o.Invite != "" {
		s.below = widgets.Line{{Text: "invite  ", Role: widgets.Dim}, {Text: widgets.Safe(o.Invite, widgets.MaxReason)}}
	}
	return s
}

// layout puts devices beside layers where there is room, else one over the other; chat and log below.
func (s *hostScreen) layout(sh shape, r rect) []placed {
	dev, lay, logH := 2+s.roster.Height(), 2+s.layers.Height(), 4
	if sh == wide {
		top := max(5, min(max(dev, lay), r.h/3))
		left := r.w / 2
		return []placed{
			{s.panes[0], rect{r.x, r.y, left, top}},
			{s.panes[1], rect{r.x + left, r.y, r.w - left, top}},
			{s.panes[2], rect{r.x, r.y + top, r.w, r.h - top - logH}},
			{s.panes[3], rect{r.x, r.y + r.h - logH, r.w, logH}},
		}
	}
	dev = max(4, min(dev, (r.h-logH)/3))
	lay = 3 // the map alone: its figures are dropped first
	return []placed{
		{s.panes[0], rect{r.x, r.y, r.w, dev}},
		{s.panes[1], rect{r.x, r.y + dev, r.w, lay}},
		{s.panes[2], rect{r.x, r.y + dev + lay, r.w, r.h - dev - lay - logH}},
		{s.panes[3], rect{r.x, r.y + r.h - logH, r.w, logH}},
	}
}

// Apply shows the state.
func (s *hostScreen) Apply(st *session.State, events []session.Event) {
	s.journal.take(events, st, s.o.Now())
	s.parts = headerParts(st, s.leaving, s.o.Now())
	s.panes[0].title = textf("devices %d", devices(st))
	s.roster.SetModel(rosterModel(st))
	s.panes[1].title = layersTitle(st)
	s.layers.SetModel(widgets.LayerMapModel{Layers: st.Model.Layers, Runs: layerRuns(st, false), Lines: layerLines(st)})
	s.log.SetModel(logModel(st, s.journal.lines, s.o.Now().Location()))
	if st.Phase != session.Waiting {
		s.why = ""
	}
	s.applyChat(st, events)
	s.showStep(st)
}

// showStep puts the chat or, before there is something to chat with, the step into the chat's place.
func (s *hostScreen) showStep(st *session.State) {
	chat := s.panes[2]
	talks := st.Phase == session.Online || st.Phase == session.Degraded || len(st.Chat) > 0 || st.Answer != nil
	chat.typing = talks
	if !talks {
		if s.inText {
			s.focus(chatName, false)
		}
		chat.title, chat.body = "start", s.step
		if loading(st) {
			chat.title = "loading the layers"
		}
		s.step.SetModel(widgets.LinesModel{Lines: stepLines(st, s.o.Invite, s.why)})
		return
	}
	chat.title, chat.body = "chat · everyone in the room sees this", s.talk
	if s.o.Chat && !s.opened && st.Phase == session.Online {
		s.opened = true
		s.offer(chatName)
	}
}

// Keys lists what can be done.
func (s *hostScreen) Keys() []Binding {
	phase := func(want ...session.Phase) func() bool {
		return func() bool {
			for _, p := range want {
				if s.st != nil && s.st.Phase == p {
					return true
				}
			}
			return false
		}
	}
	elsewhere := func(on func() bool) func() bool {
		return func() bool { return on() && (s.where() != chatName || !s.panes[s.at].typing) }
	}
	list := []Binding{
		{Keys: []Key{code(tcell.KeyEnter)}, Name: "Enter", Hint: "start",
			Help: "deal the layers and load them, before the room is online", On: phase(session.Waiting), Do: func(*tcell.EventKey) { s.start() }},
		{Keys: []Key{letter('c')}, Name: "c", Hint: "chat", Help: "to the chat",
			On: func() bool { return s.panes[2].typing }, Do: func(*tcell.EventKey) { s.focus(chatName, true) }},
		{Keys: []Key{code(tcell.KeyEnter), letter('r')}, Name: "Enter", Hint: "re-deal",
			Help: "deal again over the devices that are here now (r too)",
			On:   elsewhere(phase(session.Online, session.Degraded)), Do: func(*tcell.EventKey) { s.redeal() }},
	}
	list = append(list, s.chatBindings()...)
	list = append(list, s.common()...)
	return append(list, s.quitBinding("quit", "close the room for everyone"), s.exitBinding("back to the room"))
}

func (s *hostScreen) start() {
	s.why = ""
	if err := s.o.View.Start(); err != nil {
		s.why = textf("%v", err)
	}
	s.showStep(s.st)
}

func (s *hostScreen) redeal() {
	if err := s.o.View.Redeal(); err != nil {
		s.tell(true, textf("no re-deal: %v", err))
	}
}

// stepLines says, before the room is online, what it waits for and what to do.
func stepLines(st *session.State, invite string, why widgets.Text) []widgets.Line {
	switch st.Phase {
	case session.Connecting:
		return []widgets.Line{widgets.Plain(textf("opening the room at %s", st.Server))}
	case session.Loading, session.Loaded:
		return loadLines(st)
	case session.Waiting:
	default:
		return []widgets.Line{widgets.In(widgets.Dim, phaseText(st, st.OpenedAt))}
	}
	var lent int64
	for _, p := range st.Peers {
		lent += p.PledgeBytes
	}
	model := modelName(st)
	if model == "" {
		model = "no model yet"
	}
	n := devices(st)
	verb := "lend"
	if n == 1 {
		verb = "lends"
	}
	if invite == "" {
		invite = "pooled join " + st.Code
	}
	out := []widgets.Line{
		{{Text: "model   ", Role: widgets.Dim}, {Text: textf("%s", model)}},
		{{Text: "room    ", Role: widgets.Dim}, {Text: textf("%s %s %s", count(n, "device"), verb, usage.GB(lent))}},
		{{Text: "others  ", Role: widgets.Dim}, {Text: textf("%s", invite)}},
		nil,
		{{Text: "Enter", Role: widgets.Accent}, {Text: " deals the layers over the devices that are here and loads them"}},
	}
	if why != "" {
		out = append(out, widgets.In(widgets.Bad, "not started: "+why))
	}
	return out
}

// loadLines shows how far each device's load is, in chain order.
func loadLines(st *session.State) []widgets.Line {
	var out []widgets.Line
	marks := letters(st)
	for _, s := range shares(st) {
		p, ok := peerByID(st, s.Peer)
		if !ok {
			out = append(out, widgets.In(widgets.Bad, textf("! %s left", s.Name)))
			continue
		}
		n := marks[s.Peer]
		l := widgets.Line{{Text: letterOf(n) + " ", Role: widgets.Hue(n)},
			{Text: widgets.Pad(widgets.Safe(p.Name, widgets.MaxName), 18) + " "},
			{Text: widgets.Pad(textf("%s", usage.LayerRange(s.Lo, s.Hi)), 8), Role: widgets.Dim}}
		if p.Ready {
			out = append(out, append(l, widgets.Span{Text: "loaded"}))
			continue
		}
		pct := loadPercent(st, p)
		out = append(out, append(l, widgets.Span{Text: widgets.Bar(pct, 22), Role: widgets.Accent},
			widgets.Span{Text: textf(" %3d%%", pct)}))
	}
	return out
}
