package screens

import (
	"time"

	"github.com/rivo/tview"

	"pooled/session"
	"pooled/widgets"
)

// Screen is one full page. All its methods run in the event loop.
type Screen interface {
	// Build makes the page's primitive. It is called once, first.
	Build(o BuildOptions) tview.Primitive
	// Apply shows the state and reacts to the events since the last call.
	Apply(st *session.State, events []session.Event)
	// Keys returns what the person can do, the primary key first and leaving last.
	Keys() []Binding
}

// BuildOptions is what a page needs of its surroundings.
type BuildOptions struct {
	View   session.View
	Look   *widgets.Look
	Now    func() time.Time
	Invite string // how others get in, for the header; empty: not shown
	Chat   bool   // host: go to the chat once the room is online
	Think  bool   // the room starts with thinking on

	Leave func()            // leave the room, then end
	Exit  func(code int)    // end at once
	Copy  func(text string) // put text into the terminal's clipboard
}

// New returns the page of a role.
func New(role session.Role) Screen {
	switch role {
	case session.Host:
		return &hostScreen{}
	case session.Worker:
		return &joinScreen{}
	}
	return &chatScreen{}
}
