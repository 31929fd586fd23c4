package widgets

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"
)

// press sends named keys and, for strings, their characters.
func press(p *Prompt, keys ...any) {
	h := p.InputHandler()
	for _, k := range keys {
		switch k := k.(type) {
		case tcell.Key:
			h(tcell.NewEventKey(k, 0, tcell.ModNone), nil)
		case *tcell.EventKey:
			h(k, nil)
		case string:
			for _, r := range k {
				h(tcell.NewEventKey(tcell.KeyRune, r, tcell.ModNone), nil)
			}
		}
	}
}

func alt(k tcell.Key, r rune) *tcell.EventKey { return tcell.NewEventKey(k, r, tcell.ModAlt) }

func TestPromptEditing(t *testing.T) {
	const family = "👩‍👩‍👧‍👦"
	cases := []struct {
		name string
		keys []any
		want string // the cursor is |
	}{
		{"typing", []any{"abc"}, "abc|"},
		{"backspace takes a whole cluster", []any{"a" + family + "e\u0301", tcell.KeyBackspace2, tcell.KeyBackspace2}, "a|"},
		{"delete takes a whole cluster", []any{family + "b", tcell.KeyHome, tcell.KeyDelete}, "|b"},
		{"left and right step over clusters", []any{"日" + family + "x", tcell.KeyLeft, tcell.KeyLeft, "-"}, "日-|" + family + "x"},
		{"right at the end stays", []any{"a", tcell.KeyRight, tcell.KeyRight, "b"}, "ab|"},
		{"left at the start stays", []any{"a", tcell.KeyLeft, tcell.KeyLeft, "b"}, "b|a"},
		{"an accent joins the letter before", []any{"e", "\u0301", "x"}, "e\u0301x|"},
		{"words", []any{"one two", alt(tcell.KeyRune, 'b'), "x", alt(tcell.KeyLeft, 0), alt(tcell.KeyLeft, 0), "y"}, "y|one xtwo"},
		{"word right", []any{"one two", tcell.KeyHome, alt(tcell.KeyRune, 'f'), "x"}, "onex| two"},
		{"delete word back", []any{"one two", tcell.KeyCtrlW}, "one |"},
		{"delete word on", []any{"one two", tcell.KeyHome, alt(tcell.KeyRune, 'd')}, "| two"},
		{"to the line's start", []any{"one", alt(tcell.KeyEnter, 0), "two", tcell.KeyCtrlU}, "one\n|"},
		{"to the line's end", []any{"one two", tcell.KeyHome, tcell.KeyCtrlK}, "|"},
		{"a break by alt-enter", []any{"one", alt(tcell.KeyEnter, 0), "two"}, "one\ntwo|"},
		{"a break by a backslash", []any{"one\\", tcell.KeyEnter, "two"}, "one\ntwo|"},
		{"a backslash inside is a character", []any{`a\b`, tcell.KeyLeft}, `a\|b`},
		{"up goes to the line above", []any{"one", alt(tcell.KeyEnter, 0), "two", tcell.KeyUp, "x"}, "onex|\ntwo"},
		{"up keeps the column in cells", []any{"日本語", alt(tcell.KeyEnter, 0), "abc", tcell.KeyUp, "x"}, "日x|本語\nabc"},
		{"up on the first line stays", []any{"one", tcell.KeyUp, "x"}, "onex|"},
		{"controls are not typed", []any{"a", alt(tcell.KeyRune, 'q'), "\u202e"}, "a|"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := NewPrompt(&Look{})
			press(p, c.keys...)
			if got := p.ed.text[:p.ed.at] + "|" + p.ed.text[p.ed.at:]; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestPromptSubmit(t *testing.T) {
	var got []string
	take := true
	p := NewPrompt(&Look{})
	p.OnSubmit = func(s string) bool {
		got = append(got, s)
		return take
	}
	press(p, "  one ", tcell.KeyEnter, tcell.KeyEnter, "  ", tcell.KeyEnter)
	if p.Clear(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("submitted %q, want the line once, trimmed", got)
	}
	take = false
	press(p, "two", tcell.KeyEnter)
	if p.Text() != "two" {
		t.Errorf("text %q after a refusal, want it kept", p.Text())
	}
	p.Clear()
	press(p, tcell.KeyUp)
	if p.Text() != "one" {
		t.Errorf("history %q, want only what was taken", p.Text())
	}
}

func TestPromptHistory(t *testing.T) {
	p := NewPrompt(&Look{})
	p.OnSubmit = func(string) bool { return true }
	for i := range MaxHistory + 5 {
		press(p, fmt.Sprintf("line %d", i), tcell.KeyEnter)
	}
	press(p, "line 204", tcell.KeyEnter) // the same again is not kept twice
	if len(p.history) != MaxHistory || p.history[0] != "line 5" {
		t.Errorf("%d lines from %q, want %d from line 5", len(p.history), p.history[0], MaxHistory)
	}
	steps := []struct {
		key  any
		want string
	}{{tcell.KeyUp, "line 204"}, {tcell.KeyUp, "line 203"}, {tcell.KeyDown, "line 204"}, {tcell.KeyDown, ""},
		{tcell.KeyDown, ""}, {tcell.KeyUp, "line 204"}, {"x", "line 204x"}, {tcell.KeyUp, "line 204x"}}
	for i, s := range steps {
		if press(p, s.key); p.Text() != s.want {
			t.Errorf("step %d: %q, want %q", i, p.Text(), s.want)
		}
	}
	p.Clear()
	for range MaxHistory + 10 {
		press(p, tcell.KeyUp)
	}
	if p.Text() != "line 5" {
		t.Errorf("at the top %q, want the oldest line", p.Text())
	}
}

func TestPromptPaste(t *testing.T) {
	p := NewPrompt(&Look{})
	p.OnSubmit = func(string) bool {
		t.Error("a pasted line break submitted")
		return true
	}
	press(p, "ab", tcell.KeyLeft)
	p.PasteHandler()("1\r\n2\x1b[31m\t3\n", nil)
	if want := "a1\n2   3\nb"; p.Text() != want {
		t.Errorf("got %q, want %q", p.Text(), want)
	}
	p.PasteHandler()(strings.Repeat("日", MaxPrompt), nil)
	if n := len(p.Text()); n > MaxPrompt {
		t.Errorf("%d bytes, at most %d allowed", n, MaxPrompt)
	}
}

func TestPromptCursor(t *testing.T) {
	cases := []struct {
		name   string
		keys   []any
		w      int
		x, y   int
		height int
	}{
		{"empty", nil, 40, 4, 0, 1},
		{"after wide characters", []any{"日本"}, 40, 8, 0, 1},
		{"on the second line", []any{"ab", alt(tcell.KeyEnter, 0), "c"}, 40, 5, 1, 2},
		{"a full line wraps", []any{"abcdefghijk"}, 16, 4, 1, 2},
		{"back at the start of a wrapped line", []any{"abcdefghijklm", tcell.KeyLeft, tcell.KeyLeft}, 16, 4, 1, 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := NewPrompt(&Look{})
			press(p, c.keys...)
			p.Focus(nil)
			d := draw(t, p, c.w, 5)
			d.sim.Show()
			if x, y, on := d.sim.GetCursor(); x != c.x || y != c.y || !on {
				t.Errorf("cursor %d,%d shown %v, want %d,%d:\n%s", x, y, on, c.x, c.y, d.text)
			}
			if got := p.Height(c.w); got != c.height {
				t.Errorf("height %d, want %d", got, c.height)
			}
		})
	}
}

func TestPromptShowsTheCursorsPart(t *testing.T) {
	p := NewPrompt(&Look{})
	p.ed.set("1\n2\n3\n4\n5\n6\n7\n8\n9")
	if got := p.Height(40); got != maxRows {
		t.Errorf("height %d, want the most, %d", got, maxRows)
	}
	if got := draw(t, p, 40, 3).text; got != "    7\n    8\n    9\n" {
		t.Errorf("got\n%s", got)
	}
	press(p, tcell.KeyUp, tcell.KeyUp, tcell.KeyUp, tcell.KeyUp)
	if got := draw(t, p, 40, 3).text; !strings.Contains(got, "5") {
		t.Errorf("the cursor's line is not shown:\n%s", got)
	}
}

func FuzzEditor(f *testing.F) {
	f.Add("abc日本e\u0301👩‍👩‍👧‍👦\n", []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Fuzz(func(t *testing.T, text string, moves []byte) {
		e := &editor{}
		e.insert(string(SafeLines(text, 1000)))
		for i, m := range moves {
			if i > 200 {
				break
			}
			switch m % 12 {
			case 0:
				e.left()
			case 1:
				e.right()
			case 2:
				e.wordLeft()
			case 3:
				e.wordRight()
			case 4:
				e.lineStart()
			case 5:
				e.lineEnd()
			case 6:
				e.cutTo(e.left)
			case 7:
				e.cutTo(e.right)
			case 8:
				e.insert("é日")
			case 9:
				e.moveRow(-1, int(m)%20)
			case 10:
				e.moveRow(1, int(m)%20)
			case 11:
				e.insert("\u0301")
			}
			if !slices.Contains(e.borders(), e.at) {
				t.Fatalf("move %d: the cursor stands inside a cluster of %q at %d", m%12, e.text, e.at)
			}
			v := e.wrapAt(int(m) % 20)
			if v.row >= len(v.lines) {
				t.Fatalf("the cursor is in row %d of %d", v.row, len(v.lines))
			}
		}
	})
}
