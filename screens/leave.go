package screens

import (
	"github.com/gdamore/tcell/v2"

	"pooled/session"
	"pooled/widgets"
)

// interrupt is Ctrl-C: it stops the running answer, else clears the prompt, else asks to leave. A second one while the
// way out is already being taken or asked about exits at once.
func (c *console) interrupt(*tcell.EventKey) {
	switch {
	case c.leaving || c.ask != nil:
		c.o.Exit(session.ExitInterrupted)
	case !c.stopping && c.canStop() && c.o.View.Stop() == nil:
		c.stopping = true
	case c.clearPrompts():
	default:
		c.wantLeave()
	}
}

// clearPrompts empties the prompt and says whether there was anything in it.
func (c *console) clearPrompts() bool {
	for _, p := range c.panes {
		if p.prompt != nil && p.typing && p.prompt.Text() != "" {
			p.prompt.Clear()
			return true
		}
	}
	return false
}

// wantLeave leaves, after a yes where other devices would lose the room.
func (c *console) wantLeave() {
	if c.guests() == 0 {
		c.leave()
		return
	}
	c.ask = &question{func() widgets.Text { return textf("close the room for %s? y/n", count(c.guests(), "device")) }, c.leave}
}

func (c *console) leave() {
	c.leaving = true
	c.o.Leave()
}
