package widgets

import (
	"strings"

	"github.com/rivo/uniseg"
)

// editor is a text with a cursor that only ever stands between grapheme clusters.
type editor struct {
	text string
	at   int // byte offset of the cursor
}

// insert puts s at the cursor, as much of it as the cap allows. The cursor goes to the next border between clusters,
// because what was typed may join its neighbour.
func (e *editor) insert(s string) {
	if room := MaxPrompt - len(e.text); len(s) > room {
		s = string(SafeLines(s, max(0, room-len("…"))))
		if len(s) > room {
			return
		}
	}
	e.text = e.text[:e.at] + s + e.text[e.at:]
	e.at += len(s)
	for _, b := range e.borders() {
		if b >= e.at {
			e.at = b
			break
		}
	}
}

// borders returns the byte offsets a cursor may stand at, 0 and the end included.
func (e *editor) borders() []int {
	out := []int{0}
	s, state := e.text, -1
	for s != "" {
		_, s, _, state = uniseg.FirstGraphemeClusterInString(s, state)
		out = append(out, len(e.text)-len(s))
	}
	return out
}

// near returns the borders before and after the cursor.
func (e *editor) near() (before, after int) {
	after = len(e.text)
	for _, b := range e.borders() {
		if b < e.at {
			before = b
		}
		if b > e.at {
			return before, b
		}
	}
	return before, after
}

func (e *editor) left()  { e.at, _ = e.near() }
func (e *editor) right() { _, e.at = e.near() }

// wordLeft goes to the start of the word before the cursor.
func (e *editor) wordLeft() {
	s := strings.TrimRight(e.text[:e.at], " \n")
	e.at = strings.LastIndexAny(s, " \n") + 1
}

// wordRight goes to the end of the word after the cursor.
func (e *editor) wordRight() {
	s := e.text[e.at:]
	skip := len(s) - len(strings.TrimLeft(s, " \n"))
	if i := strings.IndexAny(s[skip:], " \n"); i >= 0 {
		e.at += skip + i
		return
	}
	e.at = len(e.text)
}

// lineStart and lineEnd go to the ends of the line the cursor is in.
func (e *editor) lineStart() { e.at = strings.LastIndexByte(e.text[:e.at], '\n') + 1 }

func (e *editor) lineEnd() {
	if i := strings.IndexByte(e.text[e.at:], '\n'); i >= 0 {
		e.at += i
		return
	}
	e.at = len(e.text)
}

// cutTo removes what is between the cursor and where move takes it.
func (e *editor) cutTo(move func()) {
	from := e.at
	move()
	lo, hi := min(from, e.at), max(from, e.at)
	e.text = e.text[:lo] + e.text[hi:]
	e.at = lo
}

// set replaces the text and puts the cursor at its end.
func (e *editor) set(s string) { e.text, e.at = s, len(s) }

// visual is the text wrapped to a width with the cursor's place in it.
type visual struct {
	lines    []string
	starts   []int // byte offset of each line in the text
	row, col int   // of the cursor, col in cells
}

// wrapAt lays the text out in lines of w cells, broken between clusters, so that a cursor can stand anywhere.
func (e *editor) wrapAt(w int) visual {
	w = max(2, w)
	v := visual{}
	var line strings.Builder
	start, used, pos := 0, 0, 0
	mark := func() {
		if pos == e.at {
			v.row, v.col = len(v.lines), used
		}
	}
	end := func() {
		v.lines = append(v.lines, line.String())
		v.starts = append(v.starts, start)
		line.Reset()
		start, used = pos, 0
	}
	s, state := e.text, -1
	for s != "" {
		var g string
		var cw int
		g, s, cw, state = uniseg.FirstGraphemeClusterInString(s, state)
		if g == "\n" {
			mark()
			pos++
			end()
			continue
		}
		if used+cw > w {
			end()
		}
		mark()
		line.WriteString(g)
		used += cw
		pos += len(g)
	}
	if used >= w {
		end()
	}
	mark()
	end()
	return v
}

// moveRow moves the cursor by lines of the layout for w cells and keeps its column where it can. It returns false at
// the first or last line.
func (e *editor) moveRow(by, w int) bool {
	v := e.wrapAt(w)
	to := v.row + by
	if to < 0 || to >= len(v.lines) {
		return false
	}
	e.at = v.starts[to] + clusterAt(v.lines[to], v.col)
	return true
}

// clusterAt returns the byte offset of the cluster that covers cell col of s, at most len(s).
func clusterAt(s string, col int) int {
	rest, state, used := s, -1, 0
	for rest != "" {
		_, next, cw, st := uniseg.FirstGraphemeClusterInString(rest, state)
		if used+cw > col {
			break
		}
		used += cw
		rest, state = next, st
	}
	return len(s) - len(rest)
}
