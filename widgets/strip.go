package widgets

import "github.com/gdamore/tcell/v2"

// Strip is one line: a status, a notice, tabs. It is cut with "…" one cell before the right edge.
type Strip struct {
	base
	m StripModel
}

// StripModel is what a Strip shows.
type StripModel struct{ Line Line }

// NewStrip returns an empty strip.
func NewStrip(look *Look) *Strip { return &Strip{base: newBase(look)} }

// SetModel replaces what is shown.
func (s *Strip) SetModel(m StripModel) { s.m = m }

// Draw draws the line from the second column on.
func (s *Strip) Draw(screen tcell.Screen) {
	c := s.canvas(screen)
	c.sub(1, 0, c.w-2, c.h).line(0, 0, s.m.Line)
}
