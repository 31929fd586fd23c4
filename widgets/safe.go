package widgets

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/tview"
	"github.com/rivo/uniseg"
)

// Text is a string that may be drawn: a constant of the program, or made by Safe or SafeLines.
type Text string

// Tagged returns the text with tview's style tags escaped, for a tview primitive that reads them. The primitives of
// this package don't.
func (t Text) Tagged() string { return tview.Escape(string(t)) }

// Limits for text from outside, in characters (spec cli.md 3.5).
const (
	MaxName   = 40
	MaxLabel  = 80
	MaxReason = 300
	MaxLine   = 500
	MaxAnswer = 256 << 10 // of SafeLines, in bytes
)

// maxMarks is the most code points drawn in one cell: enough for a family emoji with skin tones, not for a tower of
// accents.
const maxMarks = 16

// Safe makes one line of text from outside fit to be drawn: control characters, terminal escapes and bidirectional
// overrides are dropped, line breaks and tabs become spaces, and what is longer than limit grapheme clusters is cut and
// ends in "…". Bytes that are not UTF-8 become U+FFFD.
func Safe(s string, limit int) Text {
	return Text(capClusters(clean(s, false), limit))
}

// SafeLines is Safe for text of several lines: it keeps line breaks (CR LF and CR become LF), turns a tab into spaces
// up to the next multiple of 4 columns, and keeps at most limit bytes, from the start.
func SafeLines(s string, limit int) Text {
	cut := false
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s, cut = s[:limit], true
	}
	s = clean(s, true)
	if cut {
		s += "…"
	}
	return Text(s)
}

// clean drops what must not reach a terminal.
func clean(s string, lines bool) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	col := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == 0x1b || r == 0x9b || r == 0x9d:
			i += escapeLen(s[i:])
			continue
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		case r == '\n' || r == '\r' || r == 0x2028 || r == 0x2029:
			col = -1
			if lines {
				b.WriteByte('\n')
			} else {
				b.WriteByte(' ')
			}
		case r == '\t' && lines:
			pad := 4 - col%4
			b.WriteString("    "[:pad])
			col += pad - 1
		case r == '\t':
			b.WriteByte(' ')
		case dropped(r):
			col--
		default:
			b.WriteRune(r)
		}
		col++
		i += n
	}
	return thin(b.String())
}

// plain says that s is printable ASCII only, which needs no cleaning.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// dropped says which code points never reach a cell: C0, DEL, C1, and the invisible ones that reorder or hide text.
func dropped(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r <= 0x9f:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	case r == 0xfeff, r == 0x200b, r == 0x00ad:
		return true
	}
	return false
}

// escapeLen returns the length of the escape sequence s starts with, at least the escape character itself. A string
// command (OSC, DCS, …) without an end gives only its introducer, so that it can't swallow what follows.
func escapeLen(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	kind := byte(0)
	switch {
	case r == 0x9b:
		kind = '['
	case r == 0x9d:
		kind = ']'
	case len(s) == n:
		return n
	default:
		kind = s[n]
		n++
	}
	switch {
	case kind == '[': // parameters, intermediates, one final byte
		i := n
		for i < len(s) && s[i] >= 0x20 && s[i] <= 0x3f {
			i++
		}
		if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
		return i
	case kind == ']' || kind == 'P' || kind == 'X' || kind == '^' || kind == '_':
		for i := n; i < len(s); i++ {
			switch {
			case s[i] == 0x07:
				return i + 1
			case s[i] == 0x1b && strings.HasPrefix(s[i+1:], "\\"):
				return i + 2
			case s[i] == '\n':
				return n
			}
		}
		return n
	case kind >= 0x20 && kind <= 0x2f: // charset choice and the like: one more byte
		if n < len(s) && s[n] < utf8.RuneSelf {
			return n + 1
		}
		return n
	case kind >= 0x30 && kind <= 0x7e:
		return n
	}
	return 1 // the escape character alone: what follows is not part of a sequence
}

// thin removes code points past maxMarks from each grapheme cluster.
func thin(s string) string {
	marks := 0
	for _, r := range s {
		if r >= 0x300 {
			marks++
		} else {
			marks = 0
		}
		if marks > maxMarks {
			break
		}
	}
	if marks <= maxMarks {
		return s
	}
	var b strings.Builder
	state := -1
	for s != "" {
		var c string
		c, s, _, state = uniseg.FirstGraphemeClusterInString(s, state)
		k := 0
		for _, r := range c {
			if k++; k > maxMarks {
				break
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// capClusters cuts s after limit clusters.
func capClusters(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	state, rest := -1, s
	for i := 0; rest != ""; i++ {
		at := len(s) - len(rest)
		if i == limit-1 {
			if _, after, _, _ := uniseg.FirstGraphemeClusterInString(rest, state); after != "" {
				return s[:at] + "…"
			}
			return s
		}
		_, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
	}
	return s
}
