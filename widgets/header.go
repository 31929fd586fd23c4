package widgets

import "github.com/gdamore/tcell/v2"

// Header is the first line or two of a screen: parts side by side, the least important dropped whole where they don't
// fit.
type Header struct {
	base
	m HeaderModel
}

// HeaderModel is what a Header shows.
type HeaderModel struct {
	Parts []Part
	Below Line // a line of its own under the parts; none when empty
}

// Part is one item of a header or a status line. Among parts that don't fit the one with the highest Drop goes first;
// 0 never goes.
type Part struct {
	Text Text
	Role Role
	Drop int
}

const partGap = 3

// NewHeader returns an empty header.
func NewHeader(look *Look) *Header { return &Header{base: newBase(look)} }

// SetModel replaces what is shown.
func (h *Header) SetModel(m HeaderModel) { h.m = m }

// FitParts packs parts into at most rows lines of w cells, three spaces between parts, and drops the least important
// ones until it works. A part that can't be dropped is cut.
func FitParts(parts []Part, w, rows int) []Line {
	keep := append([]Part(nil), parts...)
	for {
		lines, over := packParts(keep, w)
		worst := -1
		for i, p := range keep {
			if p.Drop > 0 && (worst < 0 || p.Drop >= keep[worst].Drop) {
				worst = i
			}
		}
		if (len(lines) <= rows && !over) || worst < 0 {
			return lines[:min(rows, len(lines))]
		}
		keep = append(keep[:worst], keep[worst+1:]...)
	}
}

// packParts fills lines greedily; over says that a part alone is longer than a line.
func packParts(parts []Part, w int) (lines []Line, over bool) {
	var cur Line
	used := 0
	for _, p := range parts {
		if p.Text == "" {
			continue
		}
		n := Width(p.Text)
		over = over || n > w
		if len(cur) > 0 && used+partGap+n > w {
			lines, cur, used = append(lines, cur), nil, 0
		}
		if len(cur) > 0 {
			cur = append(cur, Span{Text: "   "})
			used += partGap
		}
		cur = append(cur, Span{p.Text, p.Role})
		used += n
	}
	return append(lines, cur), over
}

// Draw draws the parts from the second column on, and never in the last one.
func (h *Header) Draw(screen tcell.Screen) {
	c := h.canvas(screen)
	c = c.sub(1, 0, c.w-2, c.h)
	rows := c.h
	if len(h.m.Below) > 0 && rows > 1 {
		rows--
	}
	lines := FitParts(h.m.Parts, c.w, rows)
	for y, l := range lines {
		c.line(0, y, l)
	}
	if len(h.m.Below) > 0 && len(lines) < c.h {
		c.line(0, len(lines), h.m.Below)
	}
}
