package session

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Caps on text from peers, in characters (spec cli.md 3.5).
const (
	maxName   = 40
	maxLabel  = 80
	maxReason = 300
	maxLine   = 500
	maxAsk    = 8000
	maxPiece  = 64 << 10 // one piece of an answer
	maxAnswer = 1 << 20  // a whole answer, in bytes
	maxID     = 64       // peer ids and model keys
)

// fields reads a control message from the wire. Every getter is total: what is missing, of another type or out of
// bounds is the zero value or the given default. Numbers come as int64, uint64 or float64, and a whole float64 may come
// as an integer.
type fields map[string]any

// line returns text for one line on a screen: valid UTF-8 without control characters, at most most characters.
func (f fields) line(key string, most int) string {
	s, _ := f[key].(string)
	return cleanLine(s, most)
}

// raw returns text as it came, cut to most characters, valid UTF-8.
func (f fields) raw(key string, most int) string {
	s, _ := f[key].(string)
	return cutText(s, most)
}

// id returns a peer id, a model key or the like: printable ASCII without spaces, else "".
func (f fields) id(key string) string {
	s, _ := f[key].(string)
	if len(s) > maxID {
		return ""
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return ""
		}
	}
	return s
}

// num returns a finite number.
func (f fields) num(key string) (float64, bool) { return number(f[key]) }

// number reads a finite number; older peers send some as text.
func number(v any) (float64, bool) {
	var n float64
	switch v := v.(type) {
	case int64:
		n = float64(v)
	case uint64:
		n = float64(v)
	case float64:
		n = v
	case string:
		p, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err != nil {
			return 0, false
		}
		n = p
	default:
		return 0, false
	}
	return n, !math.IsNaN(n) && !math.IsInf(n, 0)
}

// whole returns a whole number in [lo, hi].
func (f fields) whole(key string, lo, hi int) (int, bool) { return wholeOf(f[key], lo, hi) }

func wholeOf(v any, lo, hi int) (int, bool) {
	if _, text := v.(string); text {
		return 0, false
	}
	n, ok := number(v)
	if !ok || n != math.Trunc(n) || n < float64(lo) || n > float64(hi) {
		return 0, false
	}
	return int(n), true
}

// flag is true for true and for numbers other than 0.
func (f fields) flag(key string) bool {
	if b, ok := f[key].(bool); ok {
		return b
	}
	n, ok := f.num(key)
	return ok && n != 0
}

// object returns a nested map.
func (f fields) object(key string) fields {
	m, _ := f[key].(map[string]any)
	return m
}

// list returns at most most elements.
func (f fields) list(key string, most int) []any {
	l, _ := f[key].([]any)
	return l[:min(len(l), most)]
}

// cleanLine makes text fit for one line of a screen.
func cleanLine(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, cutText(s, 4*most))
	return strings.TrimSpace(cutText(s, most))
}

// cleanText makes text fit for several lines: it keeps line feeds and tabs, CR LF becomes LF, other control characters
// go.
func cleanText(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// path is an absolute path up to its last element.
var path = regexp.MustCompile(`(^|[\s"'(=:])(?:[A-Za-z]:)?[/\\][^\s"']*[/\\]`)

// withoutFolders leaves the last element of every path in a text: folders tell who somebody is, and are nobody's business
// on another computer.
func withoutFolders(s string) string { return path.ReplaceAllString(s, "$1") }

// cutText returns s as valid UTF-8 of at most most characters.
func cutText(s string, most int) string {
	if len(s) > 4*most {
		s = s[:4*most]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	n := 0
	for i := range s {
		if n == most {
			return s[:i]
		}
		n++
	}
	return s
}
