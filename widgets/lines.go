package widgets

import "github.com/gdamore/tcell/v2"

// Lines shows a few lines from the top; longer lists scroll.
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

// Height returns the lines it takes to show everything in w cells.
func (l *Lines) Height(w int) int { return len(l.rows(w)) }

// rows lays the lines out. The last span of a line that is too long is wrapped under itself.
func (l *Lines) rows(w int) []row {
	var out []row
	for i, ln := range l.m.Lines {
		indent := 0
		if n := len(ln); n > 0 {
			indent = ln[:n-1].Width()
		}
		if ln.Width() <= w || indent > w/2 {
			out = append(out, row{int64(i), 0, ln})
			continue
		}
		last := ln[len(ln)-1]
		lead := ln[:len(ln)-1]
		for n, part := range wrap(string(last.Text), w-indent) {
			out = append(out, row{int64(i), n, append(lead[:len(lead):len(lead)], Span{Text(part), last.Role})})
			lead = Line{{Text: Pad("", indent)}}
		}
	}
	return out
}

// Draw draws the lines.
func (l *Lines) Draw(screen tcell.Screen) {
	c := l.canvas(screen)
	l.v.set(l.rows(c.w))
	l.v.draw(c)
}

// Scroll moves by a scrolling key and says whether it was one.
func (l *Lines) Scroll(ev *tcell.EventKey) bool { return l.v.handle(ev) }
