package screens

import (
	"github.com/rivo/tview"

	"pooled/session"
	"pooled/widgets"
)

// chatScreen is `pooled chat`: a transcript and a prompt.
type chatScreen struct{ chatter }

// Build makes the page.
func (s *chatScreen) Build(o BuildOptions) tview.Primitive {
	p := s.newChatPane(o)
	p.typing = true
	s.init(o, s.Keys, nil, p)
	s.canStop = func() bool { return s.busy() }
	s.guests = func() int { return 0 }
	s.wayOut = s.wantLeave
	s.focus(chatName, true)
	return s
}

// Apply shows the state.
func (s *chatScreen) Apply(st *session.State, events []session.Event) {
	s.parts = headerParts(st, s.leaving, s.o.Now())
	s.waiting = ""
	switch st.Phase {
	case session.Connecting:
		s.waiting = textf("joining room %s", st.Code)
	case session.Waiting, session.Loading:
		s.waiting = "waiting for the room's model"
	}
	s.bar = nil
	if st.Phase == session.Degraded || st.Phase == session.HostGone {
		s.bar = widgets.In(widgets.Bad, phaseText(st, s.o.Now()))
	}
	s.applyChat(st, events)
}

// Keys lists what can be done.
func (s *chatScreen) Keys() []Binding {
	list := append(s.chatBindings(), s.common()...)
	return append(list, s.quitBinding("leave", "leave the room"), s.exitBinding("leave"))
}
