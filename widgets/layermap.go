package widgets

import (
	"strings"

	"github.com/gdamore/tcell/v2"
)

// LayerMap is one row that shows who holds which layers, and lines about it below. E and H stand for the embedding and
// the output head. A run shows its device's letter once per layer or more; while it loads, dots turn into letters; a
// lost run shows "!", layers that nobody holds show "·" ("-" in ASCII). A working run is bright.
type LayerMap struct {
	base
	m LayerMapModel
}

// LayerMapModel is what a LayerMap shows. Runs are in layer order and don't overlap.
type LayerMapModel struct {
	Layers int // of the model; 0 unknown
	Runs   []Run
	Lines  []Line
}

// RunState is how far a run of layers is.
type RunState uint8

// States of a run.
const (
	RunHeld RunState = iota
	RunLoading
	RunLost
)

// Run is the layers Lo..Hi-1 of one device.
type Run struct {
	Lo, Hi  int
	Letter  Text
	Hue     Role
	State   RunState
	Percent int // while loading
	Working bool
	Dim     bool
}

// NewLayerMap returns an empty map.
func NewLayerMap(look *Look) *LayerMap { return &LayerMap{base: newBase(look)} }

// SetModel replaces what is shown.
func (l *LayerMap) SetModel(m LayerMapModel) { l.m = m }

// Height returns the lines it takes to show everything.
func (l *LayerMap) Height() int { return 1 + len(l.m.Lines) }

// maxPerLayer keeps the map of a model with few layers from becoming a wall.
const maxPerLayer = 2

// mapRuns adds the layers nobody holds as runs without a letter.
func mapRuns(m LayerMapModel) []Run {
	var out []Run
	at := 0
	for _, r := range m.Runs {
		lo, hi := max(r.Lo, at), min(r.Hi, m.Layers)
		if hi <= lo {
			continue
		}
		if lo > at {
			out = append(out, Run{Lo: at, Hi: lo, Hue: Dim})
		}
		r.Lo, r.Hi = lo, hi
		out, at = append(out, r), hi
	}
	if at < m.Layers {
		out = append(out, Run{Lo: at, Hi: m.Layers, Hue: Dim})
	}
	return out
}

// mapWidths shares w cells among runs in proportion to their layers, at least one each. All layers get the same number
// of cells when there is a cell for each.
func mapWidths(runs []Run, layers, w int) []int {
	out := make([]int, len(runs))
	if layers <= 0 || len(runs) == 0 {
		return out
	}
	if per := min(w/layers, maxPerLayer); per >= 1 {
		for i, r := range runs {
			out[i] = per * (r.Hi - r.Lo)
		}
		return out
	}
	left := w - len(runs)
	used := 0
	for i, r := range runs {
		out[i] = 1 + max(0, left)*(r.Hi-r.Lo)/layers
		used += out[i]
	}
	for used < w { // what rounding left goes to the run that is shortest for its layers
		worst := 0
		for i, r := range runs {
			if out[i]*(runs[worst].Hi-runs[worst].Lo) < out[worst]*(r.Hi-r.Lo) {
				worst = i
			}
		}
		out[worst]++
		used++
	}
	return out
}

// runText returns the n cells of a run.
func (l *LayerMap) runText(r Run, n int) Text {
	mark := r.Letter
	switch {
	case r.State == RunLost:
		mark = "!"
	case r.Letter == "" && l.look.ASCII:
		mark = "-"
	case r.Letter == "":
		mark = "·"
	case r.State == RunLoading:
		full := n * max(0, min(100, r.Percent)) / 100
		return Text(strings.Repeat(string(mark), full) + strings.Repeat(".", n-full))
	}
	return Text(strings.Repeat(string(mark), n))
}

// mapLine returns the row for a width of w cells.
func (l *LayerMap) mapLine(w int) Line {
	if l.m.Layers <= 0 {
		return In(Dim, "no model yet")
	}
	runs := mapRuns(l.m)
	widths := mapWidths(runs, l.m.Layers, w-len(runs)-3)
	out := Line{{"E", Strong}}
	for i, r := range runs {
		role := r.Hue
		switch {
		case r.State == RunLost:
			role = Bad
		case r.Dim:
			role = Dim
		}
		out = append(out, Span{"▐", Dim}, Span{l.runText(r, widths[i]), role})
	}
	return append(out, Span{"▐", Dim}, Span{"H", Strong})
}

// Draw draws the row and as many lines as there is room for.
func (l *LayerMap) Draw(screen tcell.Screen) {
	c := l.canvas(screen)
	line := l.mapLine(c.w)
	x := 0
	runs := mapRuns(l.m)
	for i, s := range line {
		st := l.look.Style(s.Role)
		if at := i - 2; at >= 0 && at%2 == 0 && at/2 < len(runs) && runs[at/2].Working {
			st = st.Bold(true).Dim(false)
		}
		x = c.put(x, 0, s.Text, st)
	}
	for i, s := range l.m.Lines {
		if 1+i >= c.h {
			break
		}
		c.line(0, 1+i, s)
	}
}
