package widgets

import "github.com/gdamore/tcell/v2"

// Keyline is the last line of a screen: what the keys do here, or a question that waits for y or n.
type Keyline struct {
	base
	m KeylineModel
}

// KeylineModel is what a Keyline shows.
type KeylineModel struct {
	Hints []Hint // the primary one first, the one that leaves last
	Ask   Text   // a question in place of the hints
}

// Hint names a key and what it does.
type Hint struct{ Key, Does Text }

// NewKeyline returns an empty key line.
func NewKeyline(look *Look) *Keyline { return &Keyline{base: newBase(look)} }

// SetModel replaces what is shown.
func (k *Keyline) SetModel(m KeylineModel) { k.m = m }

const hintGap = 2

// FitHints returns the hints that fit into w cells whole. Hints go from the right; the last one (how to leave) goes
// last, the first one (the primary key) never.
func FitHints(hints []Hint, w int) []Hint {
	out := append([]Hint(nil), hints...)
	for len(out) > 1 && hintsWidth(out) > w {
		at := len(out) - 2
		if at == 0 {
			at = 1
		}
		out = append(out[:at], out[at+1:]...)
	}
	return out
}

func hintsWidth(hints []Hint) int {
	n := 0
	for i, h := range hints {
		if i > 0 {
			n += hintGap
		}
		n += Width(h.Key) + 1 + Width(h.Does)
	}
	return n
}

// Draw draws the question or the hints that fit.
func (k *Keyline) Draw(screen tcell.Screen) {
	c := k.canvas(screen)
	c = c.sub(1, 0, c.w-2, c.h)
	if k.m.Ask != "" {
		c.line(0, 0, In(Accent, k.m.Ask))
		return
	}
	var l Line
	for i, h := range FitHints(k.m.Hints, c.w) {
		if i > 0 {
			l = append(l, Span{Text: "  "})
		}
		l = append(l, Span{h.Key, Accent}, Span{" " + h.Does, Dim})
	}
	c.line(0, 0, l)
}
