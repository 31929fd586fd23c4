package screens

import (
	"github.com/gdamore/tcell/v2"

	"pooled/widgets"
)

// chatBindings are the keys of a chat pane and its prompt, but for the one that leaves it.
func (c *chatter) chatBindings() []Binding {
	idle := func() bool { return !c.busy() }
	return []Binding{
		{Keys: []Key{code(tcell.KeyEnter)}, Name: "Enter", Hint: "send", Help: "send what is typed", Where: promptName,
			On: idle, Do: c.toPrompt},
		{Keys: []Key{code(tcell.KeyCtrlC)}, Name: "Ctrl-C", Hint: "stop the answer", Where: promptName,
			On: func() bool { return c.busy() && c.canStop() }, Do: c.interrupt},
		{Keys: []Key{{Code: tcell.KeyEnter, Alt: true}}, Name: "Alt-Enter", Hint: "new line",
			Help: `break the line (a \ at its end does too)`, Where: promptName, Do: c.toPrompt},
		{Keys: []Key{code(tcell.KeyUp), code(tcell.KeyDown)}, Name: "↑ ↓", Where: promptName,
			Help: "in the empty prompt: earlier lines", Do: c.toPrompt},
		{Keys: []Key{code(tcell.KeyEsc)}, Name: "Esc", Where: promptName, Help: "from the prompt to the chat",
			Do: func(*tcell.EventKey) { c.focus(chatName, false) }},
		{Keys: []Key{code(tcell.KeyEnter)}, Name: "Enter", Hint: "write", Help: "back to the prompt", Where: chatName,
			On: func() bool { return c.panes[c.at].typing }, Do: func(*tcell.EventKey) { c.focus(chatName, true) }},
		{Keys: []Key{letter('y')}, Name: "y", Hint: "copy the answer", Help: "copy the last answer to the clipboard",
			Where: chatName, On: func() bool { return c.st != nil && lastAnswer(c.st) != "" },
			Do: func(*tcell.EventKey) { c.copyAnswer() }},
		{Keys: []Key{letter('t')}, Name: "t", Hint: "thinking", Help: "hide or show the thinking", Where: chatName,
			Do: func(*tcell.EventKey) { c.talk.Fold() }},
	}
}

// exitBinding is the key that leaves the prompt. to says where it leads.
func (c *chatter) exitBinding(to widgets.Text) Binding {
	return Binding{Keys: []Key{code(tcell.KeyCtrlD)}, Name: "Ctrl-D", Where: promptName, Hint: to,
		Help: "in the empty prompt: " + to, On: func() bool { return c.prompt.Text() == "" },
		Do: func(*tcell.EventKey) { c.wayOut() }}
}

// copyAnswer puts the last answer into the clipboard, cleaned like everything that reaches the terminal.
func (c *chatter) copyAnswer() {
	c.o.Copy(string(widgets.SafeLines(lastAnswer(c.st), widgets.MaxAnswer)))
	c.tell(false, "copied")
}
