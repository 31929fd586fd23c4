package widgets

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/tview"
	"github.com/rivo/uniseg"
)

func TestSafe(t *testing.T) {
	cases := []struct {
		name, in string
		limit    int
		want     Text
	}{
		{"plain", "spark-host", 40, "spark-host"},
		{"style tags stay text", "[red]x[-]", 40, "[red]x[-]"},
		{"colour", "a\x1b[31mb\x1b[0m", 40, "ab"},
		{"clipboard, bell", "a\x1b]52;c;aGFjaw==\x07b", 40, "ab"},
		{"clipboard, ST", "a\x1b]52;c;aGFjaw==\x1b\\b", 40, "ab"},
		{"title without an end hides nothing", "a\x1b]0;title", 40, "a0;title"},
		{"C1 introducers", "a\u009b31mb\u009d0;x\x07c", 40, "abc"},
		{"C1 bytes that are not UTF-8", "a\x9b31m", 40, "a\uFFFD31m"},
		{"device control", "a\x1bPq#0\x1b\\b", 40, "ab"},
		{"charset, keypad, reset", "a\x1b(0b\x1b=c\x1bcd", 40, "abcd"},
		{"escape at the end", "a\x1b", 40, "a"},
		{"escape before a letter beyond ASCII", "a\x1bé", 40, "aé"},
		{"controls", "a\x00b\x08c\x7fd\u0085e", 40, "abcde"},
		{"line breaks and tabs", "a\r\nb\tc\nd", 40, "a b c d"},
		{"bidirectional overrides", "a\u202eb\u2066c\u200f", 40, "abc"},
		{"joiners inside an emoji stay", "👩‍👩‍👧‍👦", 40, "👩‍👩‍👧‍👦"},
		{"cut at clusters", "👩‍👩‍👧‍👦e\u0301日本", 3, "👩‍👩‍👧‍👦e\u0301…"},
		{"exactly the limit", "日本語", 3, "日本語"},
		{"broken UTF-8", "a\xffb", 40, "a\uFFFDb"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Safe(c.in, c.limit); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSafeLines(t *testing.T) {
	cases := []struct {
		name, in string
		limit    int
		want     Text
	}{
		{"line breaks stay", "a\nb\r\nc\rd", 100, "a\nb\nc\nd"},
		{"tabs go to columns", "a\tb\n\tc", 100, "a   b\n    c"},
		{"escapes go", "a\x1b[2Jb\x1b]8;;http://x\x07c\u009c", 100, "abc"},
		{"cut on a character", "日本語", 7, "日本…"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := SafeLines(c.in, c.limit); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSafeThinsTowersOfAccents(t *testing.T) {
	in := "a" + strings.Repeat("\u0301", 5000) + "b"
	got := Safe(in, 40)
	if n := utf8.RuneCountInString(string(got)); n != maxMarks+1 {
		t.Errorf("%d code points, want %d", n, maxMarks+1)
	}
	if !strings.HasSuffix(string(got), "b") {
		t.Errorf("got %q, want the b kept", got)
	}
}

func TestTagged(t *testing.T) {
	if got, want := Safe("[red]x", 40).Tagged(), tview.Escape("[red]x"); got != want || got == "[red]x" {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzSafe(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b]52;c;x\x07", "\x1b[31m", "\u009b1m", "👩‍👩‍👧‍👦e\u0301", "\xff\x9b", "a\r\nb\t", "\x1b", "\x1bP"} {
		f.Add(s, 5)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = max(1, limit%600)
		one, many := Safe(s, limit), SafeLines(s, limit)
		if n := uniseg.GraphemeClusterCount(string(one)); n > limit {
			t.Errorf("%d clusters, at most %d allowed", n, limit)
		}
		if len(many) > 4*limit+len("…") {
			t.Errorf("%d bytes from %d", len(many), limit)
		}
		for _, r := range one + "|" + many {
			if r != '\n' && dropped(r) {
				t.Errorf("%U is left of %q", r, s)
			}
		}
		if strings.Contains(string(one), "\n") {
			t.Errorf("a line break is left in %q", one)
		}
		if again := Safe(string(one), limit); again != one {
			t.Errorf("cleaned again: %q, first %q", again, one)
		}
	})
}
