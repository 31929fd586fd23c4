package widgets

import "github.com/gdamore/tcell/v2"

// Lines shows a few lines from the top, cut at the right edge; longer lists scroll.
type Lines struct {
	base
	m LinesModel
	v viewport
}

// LinesModel is what Lines shows.
type LinesModel struct{ Lines []Line }

// NewLines returns an empty list of lines.
func NewLines(look *Look) *Lines {
	return &Lines{base: newBase(look), v: viewport{fromTop: true}}
}

// SetModel replaces what is shown.
func (l *Lines) SetModel(m LinesModel) { l.m = m }

// Height returns the lines it takes to show everything.
func (l *Lines) Height() int { return len(l.m.Lines) }

// Draw draws the lines.
func (l *Lines) Draw(screen tcell.Screen) {
	rows := make([]row, len(l.m.Lines))
	for i, ln := range l.m.Lines {
		rows[i] = row{int64(i), 0, ln}
	}
	l.v.set(rows)
	l.v.draw(l.canvas(screen))
}

// Scroll moves by a scrolling key and says whether it was one.
func (l *Lines) Scroll(ev *tcell.EventKey) bool { return l.v.handle(ev) }
