package widgets

import "github.com/gdamore/tcell/v2"

// Role says what a piece of text is; a Look says how that looks. A role never carries information of its own.
type Role uint8

// Roles.
const (
	Normal Role = iota
	Dim
	Strong
	Accent
	Bad
	hue0 // devices: hue0..hue0+hues-1
)

const hues = 5

// Hue is the role of the n-th device, n from 0.
func Hue(n int) Role { return hue0 + Role(n%hues) }

// Look is how roles and marks appear on this terminal. The zero value is monochrome with Unicode marks.
type Look struct {
	Color bool // colours at all
	True  bool // exact colours, else the terminal's palette
	Light bool // the background is light
	ASCII bool // no character beyond ASCII in what the program draws itself
}

// Style returns the style of a role. Without colour only bold and dim remain.
func (l *Look) Style(r Role) tcell.Style {
	st := tcell.StyleDefault
	switch {
	case r == Dim:
		return st.Dim(true)
	case r == Strong:
		return st.Bold(true)
	case !l.Color && (r == Accent || r == Bad):
		return st.Bold(true)
	case !l.Color:
		return st
	case r == Accent:
		return st.Foreground(l.accent())
	case r == Bad:
		return st.Foreground(tcell.ColorMaroon).Bold(true)
	case r >= hue0:
		return st.Foreground(l.hue(int(r - hue0)))
	}
	return st
}

// accent is #2A45E0 on light and #7F93FF on dark (spec cli.md 3.2), or the nearest of the 256 palette.
func (l *Look) accent() tcell.Color {
	switch {
	case l.True && l.Light:
		return tcell.NewHexColor(0x2a45e0)
	case l.True:
		return tcell.NewHexColor(0x7f93ff)
	case l.Light:
		return tcell.PaletteColor(26)
	}
	return tcell.PaletteColor(105)
}

// hue picks from the sixteen base colours, which follow the person's own theme.
func (l *Look) hue(n int) tcell.Color {
	light := [hues]tcell.Color{tcell.ColorTeal, tcell.ColorPurple, tcell.ColorGreen, tcell.ColorNavy, tcell.ColorOlive}
	dark := [hues]tcell.Color{tcell.ColorAqua, tcell.ColorYellow, tcell.ColorLime, tcell.ColorFuchsia, tcell.ColorBlue}
	if l.Light {
		return light[n%hues]
	}
	return dark[n%hues]
}

// asciiMarks are the stand-ins for the marks the program draws, all one cell wide.
var asciiMarks = map[string]string{
	"─": "-", "│": "|", "┌": "+", "┐": "+", "└": "+", "┘": "+", "·": "-", "…": "~", "▐": "|", "▕": "[", "▏": "]",
	"█": "#", "░": ".", "✓": "*", "↑": "^", "↓": "v",
}

// mark returns what is put into a cell for a cluster.
func (l *Look) mark(cluster string) string {
	if l.ASCII && len(cluster) > 1 {
		if a, ok := asciiMarks[cluster]; ok {
			return a
		}
	}
	return cluster
}
