package widgets

import (
	"slices"

	"github.com/gdamore/tcell/v2"
)

// MaxLogLines is the most lines a Log keeps; older ones go first.
const MaxLogLines = 500

// Log shows lines with their time, wrapped, the newest at the bottom. It keeps its place when scrolled up.
type Log struct {
	base
	m     LogModel
	v     viewport
	width int
}

// LogModel is what a Log shows, oldest first.
type LogModel struct{ Lines []LogLine }

// LogLine is one line. ID rises from line to line and stays with it.
type LogLine struct {
	ID   int64
	When Text // of the same width for all lines
	Text Text
	Role Role
}

// NewLog returns an empty log.
func NewLog(look *Look) *Log { return &Log{base: newBase(look)} }

// SetModel replaces what is shown; only the last MaxLogLines lines are kept.
func (l *Log) SetModel(m LogModel) {
	if n := len(m.Lines); n > MaxLogLines {
		m.Lines = m.Lines[n-MaxLogLines:]
	}
	if slices.Equal(l.m.Lines, m.Lines) {
		return
	}
	l.m, l.width = m, 0
}

// Draw draws the lines.
func (l *Log) Draw(screen tcell.Screen) {
	c := l.canvas(screen)
	if l.width != c.w {
		l.width = c.w
		l.v.set(logRows(l.m.Lines, c.w))
	}
	l.v.draw(c)
}

func logRows(lines []LogLine, w int) []row {
	var rows []row
	for _, ln := range lines {
		indent := 0
		if ln.When != "" {
			indent = Width(ln.When) + 1
		}
		for n, part := range wrap(string(ln.Text), max(8, w-indent)) {
			lead := Span{Pad("", indent), Dim}
			if n == 0 && indent > 0 {
				lead.Text = ln.When + " "
			}
			rows = append(rows, row{ln.ID, n, Line{lead, {Text(part), ln.Role}}})
		}
	}
	return rows
}

// Scroll moves by a scrolling key and says whether it was one.
func (l *Log) Scroll(ev *tcell.EventKey) bool { return l.v.handle(ev) }
