package widgets

import (
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
)

// Caps of a Prompt.
const (
	MaxPrompt  = 64 << 10 // bytes
	MaxHistory = 200      // lines
	maxRows    = 6        // lines shown at once
)

// Prompt is where a person types. Enter submits; Alt-Enter, or a backslash at the end of the line, breaks the line. A
// pasted line break is text. Up and Down walk the history while the text is empty or one of the history's own.
type Prompt struct {
	base
	// OnSubmit gets the text when Enter is pressed, without surrounding space. When it returns false, the text stays.
	OnSubmit func(text string) bool

	m       PromptModel
	ed      editor
	history []string
	walk    int // index into history while walking, len(history) else
	width   int // of the text, as drawn last
}

// PromptModel is what a Prompt shows besides the text.
type PromptModel struct {
	Busy Text // in place of ">>>" while nothing can be submitted; empty when it can
	Hint Text // dim text in the empty prompt
	Away Text // the same while the keyboard is elsewhere; empty for Hint
}

const promptMark = ">>> "

// NewPrompt returns an empty prompt.
func NewPrompt(look *Look) *Prompt { return &Prompt{base: newBase(look), width: 60} }

// SetModel replaces what is shown besides the text.
func (p *Prompt) SetModel(m PromptModel) { p.m = m }

// Text returns what was typed so far.
func (p *Prompt) Text() string { return p.ed.text }

// Clear forgets what was typed.
func (p *Prompt) Clear() {
	p.ed.set("")
	p.walk = len(p.history)
}

// mark returns what stands before the text.
func (p *Prompt) mark() Text {
	if p.m.Busy != "" {
		return p.m.Busy + " "
	}
	return promptMark
}

// Height returns the lines the prompt wants in w cells.
func (p *Prompt) Height(w int) int {
	return min(maxRows, len(p.ed.wrapAt(w-Width(p.mark())-1).lines))
}

// Draw draws the text and, with the keyboard here, the cursor.
func (p *Prompt) Draw(screen tcell.Screen) {
	c := p.canvas(screen)
	mark, role := p.mark(), Accent
	if p.m.Busy != "" {
		role = Dim
	}
	indent := Width(mark)
	p.width = c.w - indent - 1
	v := p.ed.wrapAt(p.width)
	first := max(0, min(v.row, len(v.lines)-1)-c.h+1)
	if p.ed.text == "" {
		hint := p.m.Hint
		if !p.HasFocus() && p.m.Away != "" {
			hint = p.m.Away
		}
		c.line(indent+1, 0, In(Dim, hint))
	}
	for y := 0; y < c.h && first+y < len(v.lines); y++ {
		if first+y == 0 {
			c.put(0, 0, mark, p.look.Style(role))
		}
		c.put(indent, y, Text(v.lines[first+y]), tcell.StyleDefault)
	}
	if p.HasFocus() {
		screen.ShowCursor(c.x+min(indent+v.col, c.w-1), c.y+v.row-first)
	}
}

// InputHandler edits the text.
func (p *Prompt) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return p.WrapInputHandler(func(ev *tcell.EventKey, _ func(tview.Primitive)) { p.key(ev) })
}

// PasteHandler puts pasted text in as it is, line breaks included.
func (p *Prompt) PasteHandler() func(string, func(tview.Primitive)) {
	return p.WrapPasteHandler(func(s string, _ func(tview.Primitive)) { p.ed.insert(string(SafeLines(s, MaxPrompt))) })
}

func (p *Prompt) key(ev *tcell.EventKey) {
	alt, ctrl := ev.Modifiers()&tcell.ModAlt != 0, ev.Modifiers()&tcell.ModCtrl != 0
	e := &p.ed
	switch ev.Key() {
	case tcell.KeyEnter:
		p.enter(ev.Modifiers()&(tcell.ModAlt|tcell.ModShift) != 0)
	case tcell.KeyRune:
		p.rune(ev.Rune(), alt, ctrl)
	case tcell.KeyBackspace, tcell.KeyBackspace2:
		if alt {
			e.cutTo(e.wordLeft)
		} else {
			e.cutTo(e.left)
		}
	case tcell.KeyDelete:
		e.cutTo(e.right)
	case tcell.KeyLeft:
		pick(alt || ctrl, e.wordLeft, e.left)()
	case tcell.KeyRight:
		pick(alt || ctrl, e.wordRight, e.right)()
	case tcell.KeyHome, tcell.KeyCtrlA:
		e.lineStart()
	case tcell.KeyEnd, tcell.KeyCtrlE:
		e.lineEnd()
	case tcell.KeyCtrlU:
		e.cutTo(e.lineStart)
	case tcell.KeyCtrlK:
		e.cutTo(e.lineEnd)
	case tcell.KeyCtrlW:
		e.cutTo(e.wordLeft)
	case tcell.KeyCtrlJ:
		e.insert("\n")
	case tcell.KeyUp:
		p.vertical(-1)
	case tcell.KeyDown:
		p.vertical(1)
	}
}

func pick(first bool, a, b func()) func() {
	if first {
		return a
	}
	return b
}

// rune types a character or, with Alt, moves by words.
func (p *Prompt) rune(r rune, alt, ctrl bool) {
	switch {
	case ctrl:
	case alt && r == 'b':
		p.ed.wordLeft()
	case alt && r == 'f':
		p.ed.wordRight()
	case alt && r == 'd':
		p.ed.cutTo(p.ed.wordRight)
	case alt:
	case r != ' ' && dropped(r):
	default:
		p.ed.insert(string(r))
	}
}

// enter submits or breaks the line.
func (p *Prompt) enter(breakLine bool) {
	e := &p.ed
	if !breakLine && e.at == len(e.text) && strings.HasSuffix(e.text, `\`) {
		e.cutTo(e.left)
		breakLine = true
	}
	if breakLine {
		e.insert("\n")
		return
	}
	text := strings.TrimSpace(e.text)
	if text == "" || p.OnSubmit == nil || !p.OnSubmit(text) {
		return
	}
	p.remember(text)
	p.Clear()
}

// remember appends to the history, without repeating its last line.
func (p *Prompt) remember(text string) {
	if n := len(p.history); n == 0 || p.history[n-1] != text {
		p.history = append(p.history, text)
	}
	if n := len(p.history); n > MaxHistory {
		p.history = append([]string(nil), p.history[n-MaxHistory:]...)
	}
}

// vertical walks the history when the text is empty or untouched from there, else moves the cursor by a line.
func (p *Prompt) vertical(by int) {
	walking := p.walk < len(p.history) && p.ed.text == p.history[p.walk]
	if p.ed.text != "" && !walking {
		p.ed.moveRow(by, p.width)
		return
	}
	if !walking {
		p.walk = len(p.history)
	}
	to := p.walk + by
	switch {
	case to < 0 || to > len(p.history):
	case to == len(p.history):
		p.Clear()
	default:
		p.walk = to
		p.ed.set(p.history[to])
	}
}
