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

// native is a line that something outside the program's control wrote to the standard streams, as an event of its own,
// so that it reaches a page in order with the room's.
type native struct {
	session.Notice
	at time.Time
}

// maxNative is the most native lines a page keeps.
const maxNative = 200

// nativeLines is a ring of what native code wrote.
type nativeLines struct{ lines []native }

// take picks the native lines out of events.
func (n *nativeLines) take(events []session.Event) {
	for _, ev := range events {
		if l, ok := ev.(native); ok {
			n.lines = append(n.lines, l)
		}
	}
	if over := len(n.lines) - maxNative; over > 0 {
		n.lines = append([]native(nil), n.lines[over:]...)
	}
}
