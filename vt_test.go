package main

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// vt is as much of a terminal as the program's screens use: text at a cursor, erasing, and modes that are on or off.
// What it does not know it skips.
type vt struct {
	rows  [][]string // cells; "" is the right half of a wide one
	x, y  int
	modes map[string]bool // private modes set or reset, by number
	rest  []byte          // the beginning of something unfinished
}

func newVT(rows, cols int) *vt {
	v := &vt{rows: make([][]string, rows), modes: map[string]bool{"25": true}}
	for i := range v.rows {
		v.rows[i] = make([]string, cols)
	}
	v.erase(0, rows)
	return v
}

// String is what the screen shows, without spaces at the ends of lines.
func (v *vt) String() string {
	var b strings.Builder
	for _, row := range v.rows {
		b.WriteString(strings.TrimRight(strings.Join(row, ""), " ") + "\n")
	}
	return b.String()
}

func (v *vt) erase(from, to int) {
	for y := max(0, from); y < min(to, len(v.rows)); y++ {
		v.eraseLine(y, 0, len(v.rows[y]))
	}
}

func (v *vt) eraseLine(y, from, to int) {
	for x := max(0, from); x < min(to, len(v.rows[y])); x++ {
		v.rows[y][x] = " "
	}
}

// Write takes the next bytes.
func (v *vt) Write(b []byte) (int, error) {
	v.rest = append(v.rest, b...)
	for len(v.rest) > 0 {
		n := v.step(string(v.rest))
		if n == 0 {
			break // unfinished
		}
		v.rest = v.rest[n:]
	}
	return len(b), nil
}

// step takes one character or sequence from the front and returns its length, 0 when it is not whole yet.
func (v *vt) step(s string) int {
	switch s[0] {
	case '\r':
		v.x = 0
		return 1
	case '\n':
		v.y = min(v.y+1, len(v.rows)-1)
		return 1
	case '\b':
		v.x = max(0, v.x-1)
		return 1
	case 0x1b:
		return v.escape(s)
	}
	if s[0] < ' ' {
		return 1
	}
	if !utf8.FullRuneInString(s) {
		return 0
	}
	cluster, _, width, _ := uniseg.FirstGraphemeClusterInString(s, -1)
	if v.x < len(v.rows[v.y]) {
		v.rows[v.y][v.x] = cluster
		if width > 1 && v.x+1 < len(v.rows[v.y]) {
			v.rows[v.y][v.x+1] = ""
		}
	}
	v.x += width
	return len(cluster)
}

func (v *vt) escape(s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '[':
		end := strings.IndexFunc(s[2:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
		if end < 0 {
			return 0
		}
		v.control(s[2:2+end], s[2+end])
		return end + 3
	case ']', 'P', '_', '^': // strings, up to BEL or ST
		for i := 2; i < len(s); i++ {
			switch {
			case s[i] == 7:
				return i + 1
			case s[i] == 0x1b && i+1 < len(s):
				return i + 2
			}
		}
		return 0
	case '(', ')', '*', '+', '#', ' ':
		if len(s) < 3 {
			return 0
		}
		return 3
	}
	return 2
}

// control performs one control sequence.
func (v *vt) control(params string, final byte) {
	if private, ok := strings.CutPrefix(params, "?"); ok {
		for mode := range strings.SplitSeq(private, ";") {
			v.modes[mode] = final == 'h'
		}
		return
	}
	list := strings.Split(params, ";")
	arg := func(i, otherwise int) int {
		if i < len(list) {
			if n, err := strconv.Atoi(list[i]); err == nil && n > 0 {
				return n
			}
		}
		return otherwise
	}
	switch final {
	case 'H', 'f':
		v.y, v.x = arg(0, 1)-1, arg(1, 1)-1
	case 'A':
		v.y -= arg(0, 1)
	case 'B':
		v.y += arg(0, 1)
	case 'C':
		v.x += arg(0, 1)
	case 'D':
		v.x -= arg(0, 1)
	case 'G':
		v.x = arg(0, 1) - 1
	case 'd':
		v.y = arg(0, 1) - 1
	case 'J':
		switch arg(0, 0) {
		case 0:
			v.eraseLine(v.y, v.x, len(v.rows[v.y]))
			v.erase(v.y+1, len(v.rows))
		default:
			v.erase(0, len(v.rows))
		}
	case 'K':
		v.eraseLine(v.y, v.x, len(v.rows[v.y]))
	case 'X':
		v.eraseLine(v.y, v.x, v.x+arg(0, 1))
	}
	v.y = min(max(0, v.y), len(v.rows)-1)
	v.x = max(0, v.x)
}
