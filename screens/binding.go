package screens

import (
	"github.com/gdamore/tcell/v2"

	"pooled/widgets"
)

// Key is one key press. Rune counts only for tcell.KeyRune; letters match in either case.
type Key struct {
	Code tcell.Key
	Rune rune
	Alt  bool
}

// Binding is something a person can do with a key. The list of a screen draws the key line, fills the help page and
// dispatches, so what is shown is what works.
type Binding struct {
	Keys   []Key
	Name   widgets.Text // how the keys are written
	Hint   widgets.Text // in the key line; empty: not there
	Help   widgets.Text // on the help page; empty: not there
	Where  string       // the pane it belongs to ("prompt" for the prompt), empty for all
	Typing bool         // with Where empty: also works in the prompt
	On     func() bool  // whether it can be done now; nil: always
	Do     func(ev *tcell.EventKey)
}

// letter is the key of a letter, digit or sign.
func letter(r rune) Key { return Key{Code: tcell.KeyRune, Rune: r} }

// code is the key of a named key.
func code(c tcell.Key) Key { return Key{Code: c} }

// matches says whether ev is this key.
func (k Key) matches(ev *tcell.EventKey) bool {
	if ev.Key() != k.Code || k.Alt != (ev.Modifiers()&tcell.ModAlt != 0) {
		return false
	}
	return k.Code != tcell.KeyRune || lower(ev.Rune()) == lower(k.Rune) && ev.Modifiers()&tcell.ModCtrl == 0
}

func lower(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// active says whether the binding works with the keyboard at where.
func (b *Binding) active(where string) bool {
	if b.Where != "" && b.Where != where || b.Where == "" && where == promptName && !b.Typing {
		return false
	}
	return b.On == nil || b.On()
}

// matches says whether one of the binding's keys is ev.
func (b *Binding) matches(ev *tcell.EventKey) bool {
	for _, k := range b.Keys {
		if k.matches(ev) {
			return true
		}
	}
	return false
}

// hints returns the key line for the keyboard at where.
func hints(list []Binding, where string) []widgets.Hint {
	var out []widgets.Hint
	for i := range list {
		if b := &list[i]; b.Hint != "" && b.active(where) {
			out = append(out, widgets.Hint{Key: b.Name, Does: b.Hint})
		}
	}
	return out
}

// helpLines returns the help page: every binding with a sentence, whether it works right now or not.
func helpLines(list []Binding) []widgets.Line {
	wide := 0
	for _, b := range list {
		wide = max(wide, widgets.Width(b.Name))
	}
	var out []widgets.Line
	for _, b := range list {
		if b.Help == "" {
			continue
		}
		text := b.Help
		if b.Where != "" {
			text += widgets.Text(" (" + b.Where + ")")
		}
		out = append(out, widgets.Line{{Text: widgets.Pad(b.Name, wide) + "  ", Role: widgets.Accent}, {Text: text}})
	}
	return out
}
