package widgets

import (
	"fmt"

	"github.com/gdamore/tcell/v2"
)

// row is one drawn line with a name that survives rebuilding: the line n of the thing key.
type row struct {
	key  int64
	n    int
	line Line
}

// viewport shows a window of rows. It either follows the end or stays where the person scrolled: the row at its top is
// remembered by name, so lines that are added, wrapped anew or dropped from the ring don't move the text being read.
type viewport struct {
	rows    []row
	fromTop bool // stays at the beginning instead of following the end
	held    bool // the person scrolled away from the resting end
	key     int64
	n       int
	height  int // as drawn last
}

func (v *viewport) set(rows []row) { v.rows = rows }

// top returns the index of the first row shown.
func (v *viewport) top() int {
	last := max(0, len(v.rows)-v.height)
	if !v.held {
		if v.fromTop {
			return 0
		}
		return last
	}
	at := 0
	for i, r := range v.rows {
		if r.key == v.key {
			at = i
			if r.n >= v.n {
				break
			}
		}
	}
	return min(at, last)
}

// move scrolls by rows. Reaching the end it rests at lets go again.
func (v *viewport) move(by int) {
	if len(v.rows) <= v.height || v.height <= 0 {
		v.held = false
		return
	}
	last := len(v.rows) - v.height
	to := max(0, min(last, v.top()+by))
	if v.held = to < last; v.fromTop {
		v.held = to > 0
	}
	v.key, v.n = v.rows[to].key, v.rows[to].n
}

// handle scrolls by a key and says whether the key was one for scrolling.
func (v *viewport) handle(ev *tcell.EventKey) bool {
	page := max(1, v.height-2)
	switch ev.Key() {
	case tcell.KeyUp:
		v.move(-1)
	case tcell.KeyDown:
		v.move(1)
	case tcell.KeyPgUp:
		v.move(-page)
	case tcell.KeyPgDn:
		v.move(page)
	case tcell.KeyHome:
		v.move(-len(v.rows))
	case tcell.KeyEnd:
		v.move(len(v.rows))
	default:
		return false
	}
	return true
}

// draw shows the rows; when more are below, the last row of the canvas says how many.
func (v *viewport) draw(c canvas) {
	v.height = c.h
	top := v.top()
	below := len(v.rows) - top - c.h
	for y := range min(c.h, len(v.rows)-top) {
		c.line(0, y, v.rows[top+y].line)
	}
	if below <= 0 || c.h < 2 {
		return
	}
	c.fill(0, c.h-1, c.w, tcell.StyleDefault)
	c.line(0, c.h-1, In(Accent, Safe(fmt.Sprintf("↓ %s below", count(below+1, "line")), MaxLabel)))
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
