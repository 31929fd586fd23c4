package widgets

import (
	"fmt"
	"strings"

	"github.com/gdamore/tcell/v2"
)

// Gauge is a labelled progress bar on one line: label, bar, percent, and a text after it.
type Gauge struct {
	base
	m GaugeModel
}

// GaugeModel is what a Gauge shows.
type GaugeModel struct {
	Label   Text
	Percent int // 0..100
	Text    Text
}

// Widths of a gauge (spec cli.md 3.4).
const (
	gaugeLabel = 10
	gaugeBar   = 20
	gaugeLeast = 6 // a bar under this is left out
)

// NewGauge returns an empty gauge.
func NewGauge(look *Look) *Gauge { return &Gauge{base: newBase(look)} }

// SetModel replaces what is shown.
func (g *Gauge) SetModel(m GaugeModel) { g.m = m }

// Bar returns a bar of w cells, end caps included, filled to percent. Under 6 cells of bar it is empty.
func Bar(percent, w int) Text {
	w -= 2
	if w < gaugeLeast {
		return ""
	}
	full := w * max(0, min(100, percent)) / 100
	return Text("▕" + strings.Repeat("█", full) + strings.Repeat("░", w-full) + "▏")
}

// gaugeLine lays the gauge out for w cells.
func gaugeLine(m GaugeModel, w int) Line {
	pct := Text(fmt.Sprintf("%3d%%", max(0, min(100, m.Percent))))
	l := Line{{Pad(m.Label, gaugeLabel), Dim}}
	room := w - gaugeLabel - Width(pct) - 1
	if m.Text != "" {
		room -= Width(m.Text) + 2
	}
	if bar := Bar(m.Percent, min(gaugeBar+2, room)); bar != "" {
		l = append(l, Span{bar, Accent}, Span{Text: " "})
	}
	l = append(l, Span{Text: pct})
	if m.Text != "" {
		l = append(l, Span{"  " + m.Text, Dim})
	}
	return l
}

// Draw draws the gauge.
func (g *Gauge) Draw(screen tcell.Screen) {
	c := g.canvas(screen)
	c.sub(1, 0, c.w-2, c.h).line(0, 0, gaugeLine(g.m, c.w-2))
}
