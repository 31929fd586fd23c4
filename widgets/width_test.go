package widgets

import (
	"slices"
	"strings"
	"testing"
)

func TestCutAndPad(t *testing.T) {
	cases := []struct {
		name     string
		in       Text
		w        int
		cut, pad Text
		left     Text
	}{
		{"fits", "abc", 5, "abc", "abc  ", "  abc"},
		{"exactly", "abc", 3, "abc", "abc", "abc"},
		{"too long", "abcdef", 4, "abc…", "abc…", "abc…"},
		{"wide does not fit before the mark", "日本語", 4, "日…", "日… ", " 日…"},
		{"a family is two cells", "👩‍👩‍👧‍👦ab", 3, "👩‍👩‍👧‍👦…", "👩‍👩‍👧‍👦…", "👩‍👩‍👧‍👦…"},
		{"accents are kept with their letter", "e\u0301e\u0301e\u0301", 2, "e\u0301…", "e\u0301…", "e\u0301…"},
		{"nothing", "abc", 0, "", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Cut(c.in, c.w); got != c.cut {
				t.Errorf("cut %q, want %q", got, c.cut)
			}
			if got := Pad(c.in, c.w); got != c.pad {
				t.Errorf("padded %q, want %q", got, c.pad)
			}
			if got := PadLeft(c.in, c.w); got != c.left {
				t.Errorf("padded on the left %q, want %q", got, c.left)
			}
		})
	}
}

func TestWrap(t *testing.T) {
	cases := []struct {
		name, in string
		w        int
		want     []string
	}{
		{"empty", "", 5, []string{""}},
		{"words", "one two three", 7, []string{"one two", "three"}},
		{"spaces at the break go", "one   two", 4, []string{"one", "two"}},
		{"a word longer than a line", "abcdefgh ij", 3, []string{"abc", "def", "gh", "ij"}},
		{"a long word after a short one", "a bcdefg", 4, []string{"a", "bcde", "fg"}},
		{"indentation stays", "  code here", 7, []string{"  code", "here"}},
		{"an option stays whole", "lends (--gb sets it) well-known", 9, []string{"lends", "(--gb", "sets it)", "well-", "known"}},
		{"wide characters", "木星は大きい", 5, []string{"木星", "は大", "きい"}},
		{"wide in one cell", "木a", 1, []string{"木", "a"}},
		{"emoji stay whole", "👩‍👩‍👧‍👦👩‍👩‍👧‍👦x", 4, []string{"👩‍👩‍👧‍👦👩‍👩‍👧‍👦", "x"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := wrap(c.in, c.w); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWrapCacheWrapsOnlyWhatChanged(t *testing.T) {
	var c wrapCache
	long := strings.Repeat("word ", 50)
	c.lines(long+"\nlast", 20)
	first := &c.paras[0].lines[0]
	got := c.lines(long+"\nlast words\nmore", 20)
	if &c.paras[0].lines[0] != first {
		t.Error("the unchanged paragraph was wrapped again")
	}
	if tail := got[len(got)-2:]; !slices.Equal(tail, []string{"last words", "more"}) {
		t.Errorf("tail %q, want the new words", tail)
	}
	if got := c.lines("short", 20); !slices.Equal(got, []string{"short"}) {
		t.Errorf("after it shrank %q, want one line", got)
	}
	if got := c.lines("one two", 3); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("at another width %q, want two lines", got)
	}
}
