package widgets

import (
	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"github.com/rivo/uniseg"
)

// Span is a piece of a line in one role.
type Span struct {
	Text Text
	Role Role
}

// Line is one line of spans.
type Line []Span

// Plain makes a line of one span in the normal role.
func Plain(t Text) Line { return Line{{Text: t}} }

// In makes a line of one span.
func In(r Role, t Text) Line { return Line{{Text: t, Role: r}} }

// Width returns the cells the line takes.
func (l Line) Width() int {
	n := 0
	for _, s := range l {
		n += Width(s.Text)
	}
	return n
}

// String returns the line's text without roles.
func (l Line) String() string {
	out := ""
	for _, s := range l {
		out += string(s.Text)
	}
	return out
}

// base is what every widget is built on.
type base struct {
	*tview.Box
	look *Look
}

func newBase(look *Look) base {
	b := base{Box: tview.NewBox(), look: look}
	b.SetBackgroundColor(tcell.ColorDefault)
	return b
}

// canvas returns the widget's rectangle, cleared.
func (b *base) canvas(screen tcell.Screen) canvas {
	x, y, w, h := b.GetRect()
	c := canvas{screen: screen, look: b.look, x: x, y: y, w: w, h: h}
	for r := range h {
		c.fill(0, r, w, tcell.StyleDefault)
	}
	return c
}

// canvas is a rectangle of a screen. Coordinates are cells from its corner; nothing is drawn outside it.
type canvas struct {
	screen     tcell.Screen
	look       *Look
	x, y, w, h int
}

// sub returns a part of the canvas.
func (c canvas) sub(x, y, w, h int) canvas {
	c.x, c.y = c.x+x, c.y+y
	c.w, c.h = max(0, min(w, c.w-x)), max(0, min(h, c.h-y))
	return c
}

func (c canvas) fill(x, y, n int, st tcell.Style) {
	for ; n > 0 && x < c.w; x, n = x+1, n-1 {
		c.screen.Put(c.x+x, c.y+y, " ", st)
	}
}

// put draws t from x on row y, cut at the right edge without a mark, and returns the column after it.
func (c canvas) put(x, y int, t Text, st tcell.Style) int {
	if y < 0 || y >= c.h {
		return x
	}
	s, state := string(t), -1
	for s != "" {
		var g string
		var w int
		g, s, w, state = uniseg.FirstGraphemeClusterInString(s, state)
		if w == 0 {
			continue
		}
		if x+w > c.w {
			break
		}
		if x >= 0 {
			c.screen.Put(c.x+x, c.y+y, c.look.mark(g), st)
		}
		x += w
	}
	return x
}

// line draws l on row y from column x, ending in "…" when it does not fit.
func (c canvas) line(x, y int, l Line) {
	room := c.w - x
	full := l.Width() <= room
	for _, s := range l {
		t := s.Text
		if !full && Width(t) >= room {
			if Width(t) > room {
				t = Cut(t, room)
			} else {
				t = Cut(t+" ", room) // fits exactly, but more follows
			}
		}
		x = c.put(x, y, t, c.look.Style(s.Role))
		if room -= Width(t); room <= 0 {
			return
		}
	}
}
