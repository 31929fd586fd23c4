package widgets

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Width returns how many cells t takes on one line.
func Width(t Text) int {
	if plain(string(t)) {
		return len(t)
	}
	return uniseg.StringWidth(string(t))
}

// Cut returns t if it fits into w cells, else its beginning and "…", together at most w cells. It cuts between
// grapheme clusters.
func Cut(t Text, w int) Text {
	if Width(t) <= w {
		return t
	}
	if w <= 0 {
		return ""
	}
	s, state, used := string(t), -1, 0
	for s != "" {
		_, rest, cw, next := uniseg.FirstGraphemeClusterInString(s, state)
		if used+cw > w-1 {
			break
		}
		used += cw
		s, state = rest, next
	}
	return t[:len(t)-len(s)] + "…"
}

// Pad cuts t to w cells or fills it up with spaces on the right.
func Pad(t Text, w int) Text {
	t = Cut(t, w)
	return t + Text(strings.Repeat(" ", max(0, w-Width(t))))
}

// PadLeft cuts t to w cells or fills it up with spaces on the left.
func PadLeft(t Text, w int) Text {
	t = Cut(t, w)
	return Text(strings.Repeat(" ", max(0, w-Width(t)))) + t
}

// wrap breaks one paragraph (no line breaks inside) into lines of at most w cells, between words where it can (UAX 14)
// and between grapheme clusters where a word is longer than a line. Spaces at a break are dropped. The dashes of an
// option stay with its name.
func wrap(s string, w int) []string {
	if w < 1 {
		return nil
	}
	if len(s) <= w && plain(s) {
		return []string{s}
	}
	var lines []string
	var (
		start, pos   int // bytes: of the line, of the cluster
		used         int // cells since start
		brk, brkUsed int // last place to break, and the cells up to it
		state        = -1
		bounds       int
		cluster      string
	)
	for rest := s; rest != ""; {
		cluster, rest, bounds, state = uniseg.StepString(rest, state)
		cw := bounds >> uniseg.ShiftWidth
		if used+cw > w && cluster != " " {
			at, cells := pos, used
			if brk > start {
				at, cells = brk, brkUsed
			}
			if at > start {
				lines = append(lines, strings.TrimRight(s[start:at], " "))
				start, used = at, used-cells
			}
		}
		used += cw
		pos += len(cluster)
		if bounds&uniseg.MaskLine == uniseg.LineCanBreak && !(cluster == "-" && leadingDash(s[:pos])) {
			brk, brkUsed = pos, used
		}
	}
	last := s[start:]
	if used > w {
		last = strings.TrimRight(last, " ")
	}
	return append(lines, last)
}

// leadingDash reports whether the dashes at the end of s begin a word, as those of "--gb" do.
func leadingDash(s string) bool {
	before := strings.TrimRight(s, "-")
	return before == "" || strings.HasSuffix(before, " ") || strings.HasSuffix(before, "(")
}

// wrapCache wraps growing text: only paragraphs that changed are wrapped again.
type wrapCache struct {
	w     int
	paras []wrapped
}

type wrapped struct {
	src   string
	lines []string
}

// lines returns text wrapped to w cells. Paragraphs are separated by line breaks.
func (c *wrapCache) lines(text string, w int) []string {
	if c.w != w {
		c.w, c.paras = w, nil
	}
	var out []string
	n := 0
	for more := true; more; n++ {
		var p string
		p, text, more = strings.Cut(text, "\n")
		if n >= len(c.paras) {
			c.paras = append(c.paras, wrapped{p, wrap(p, w)})
		} else if c.paras[n].src != p {
			c.paras[n] = wrapped{p, wrap(p, w)}
		}
		out = append(out, c.paras[n].lines...)
	}
	c.paras = c.paras[:n]
	return out
}
