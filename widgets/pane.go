package widgets

import "github.com/gdamore/tcell/v2"

// Pane draws a border with a title around the place where other primitives are drawn.
type Pane struct {
	base
	m PaneModel
}

// PaneModel is what a Pane shows.
type PaneModel struct {
	Title  Text
	Bright bool // has the keyboard
}

// NewPane returns an empty pane.
func NewPane(look *Look) *Pane { return &Pane{base: newBase(look)} }

// SetModel replaces what is shown.
func (p *Pane) SetModel(m PaneModel) { p.m = m }

// Inner returns the rectangle inside the border, with a column of air on the left.
func (p *Pane) Inner() (x, y, w, h int) {
	x, y, w, h = p.GetRect()
	return x + 2, y + 1, max(0, w-3), max(0, h-2)
}

// Draw draws the border.
func (p *Pane) Draw(screen tcell.Screen) {
	c := p.canvas(screen)
	if c.w < 4 || c.h < 2 {
		return
	}
	st := p.look.Style(Dim)
	for x := 1; x < c.w-1; x++ {
		c.put(x, 0, "─", st)
		c.put(x, c.h-1, "─", st)
	}
	for y := 1; y < c.h-1; y++ {
		c.put(0, y, "│", st)
		c.put(c.w-1, y, "│", st)
	}
	c.put(0, 0, "┌", st)
	c.put(c.w-1, 0, "┐", st)
	c.put(0, c.h-1, "└", st)
	c.put(c.w-1, c.h-1, "┘", st)
	role := Normal
	if p.m.Bright {
		role = Strong
	}
	if t := Cut(p.m.Title, c.w-4); t != "" {
		c.put(1, 0, " "+t+" ", p.look.Style(role))
	}
}
