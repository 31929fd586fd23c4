package screens

import (
	"fmt"

	"github.com/gdamore/tcell/v2"

	"pooled/widgets"
)

// textf formats one line of text to be drawn.
func textf(format string, a ...any) widgets.Text {
	return widgets.Safe(fmt.Sprintf(format, a...), widgets.MaxLine)
}

// scrollKeys are the keys that scroll a pane.
var scrollKeys = []Key{code(tcell.KeyUp), code(tcell.KeyDown), code(tcell.KeyPgUp), code(tcell.KeyPgDn),
	code(tcell.KeyHome), code(tcell.KeyEnd)}

// common returns the bindings every page has.
func (c *console) common() []Binding {
	many := func() bool { return len(c.panes) > 1 || c.panes[0].typing }
	next := widgets.Text("next pane")
	switch {
	case len(c.panes) == 1 && c.inText:
		next = "transcript"
	case len(c.panes) == 1:
		next = "prompt"
	}
	list := []Binding{
		{Keys: []Key{code(tcell.KeyTab)}, Name: "Tab", Hint: next, Help: "to the next pane or prompt",
			Typing: true, On: many, Do: func(*tcell.EventKey) { c.next(1) }},
		{Keys: []Key{code(tcell.KeyBacktab)}, Name: "Shift-Tab", Help: "to the one before", Typing: true, On: many,
			Do: func(*tcell.EventKey) { c.next(-1) }},
		{Keys: scrollKeys, Name: "↑ ↓ PgUp PgDn Home End", Help: "scroll",
			Do: c.scroll},
		{Keys: []Key{code(tcell.KeyPgUp), code(tcell.KeyPgDn)}, Name: "PgUp PgDn", Where: promptName,
			Help: "scroll the chat without leaving the prompt", Do: c.scroll},
	}
	if len(c.panes) > 1 {
		list = append(list, Binding{Keys: []Key{letter('z')}, Name: "z", Hint: "zoom",
			Help: "the focused pane alone, and back", On: func() bool { return c.size != tabbed },
			Do: func(*tcell.EventKey) { c.zoomed = !c.zoomed }})
		digits := Binding{Name: textf("1-%d", len(c.panes)), Help: "show that pane (small screens)",
			On: func() bool { return c.size == tabbed },
			Do: func(ev *tcell.EventKey) { c.focus(c.panes[ev.Rune()-'1'].name, false) }}
		for i := range c.panes {
			digits.Keys = append(digits.Keys, letter('1'+rune(i)))
		}
		list = append(list, digits)
	}
	return append(list,
		Binding{Keys: []Key{letter('?'), code(tcell.KeyF1)}, Name: "?", Hint: "keys", Help: "this page",
			Do: c.showHelp},
		Binding{Keys: []Key{code(tcell.KeyF1)}, Name: "F1", Hint: "keys", Help: "this page", Where: promptName,
			Do: c.showHelp},
		Binding{Keys: []Key{code(tcell.KeyCtrlC)}, Name: "Ctrl-C", Typing: true,
			Help: "stop the answer, else clear the prompt, else leave; twice at once: exit", Do: c.interrupt},
	)
}

// quitBinding is q. does is its hint, sentence its help.
func (c *console) quitBinding(does, sentence widgets.Text) Binding {
	return Binding{Keys: []Key{letter('q')}, Name: "q", Hint: does, Help: sentence,
		Do: func(*tcell.EventKey) { c.wantLeave() }}
}
