package screens

import (
	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"pooled/widgets"
)

// Names of panes.
const (
	devicesName = "devices"
	layersName  = "layers"
	chatName    = "chat"
	logName     = "log"
	promptName  = "prompt"
)

// scroller is a pane's content.
type scroller interface {
	tview.Primitive
	Scroll(ev *tcell.EventKey) bool
}

// unscrolled is content that always fits.
type unscrolled struct{ tview.Primitive }

func (unscrolled) Scroll(*tcell.EventKey) bool { return false }

// pane is a named part of the page.
type pane struct {
	name   string
	title  widgets.Text
	body   scroller
	prompt *widgets.Prompt // at the bottom of the pane; nil for none
	typing bool            // the prompt is shown
	frame  *widgets.Pane
}

// rect is a rectangle of cells.
type rect struct{ x, y, w, h int }

// placed is a pane with its place.
type placed struct {
	p *pane
	r rect
}

// shape is how panes share the screen.
type shape uint8

const (
	tiny shape = iota
	tabbed
	stacked
	wide
)

// Smallest sizes of the shapes.
const (
	minW, minH         = 60, 16
	stackedW, stackedH = 72, 20
	wideW, wideH       = 100, 26
)

// shapeOf returns the layout for a size.
func shapeOf(w, h int) shape {
	switch {
	case w < minW || h < minH:
		return tiny
	case w < stackedW || h < stackedH:
		return tabbed
	case w < wideW || h < wideH:
		return stacked
	}
	return wide
}

// question waits for y or n in the key line.
type question struct {
	text func() widgets.Text // of the newest state
	yes  func()
}

// console is the frame all pages share: header, panes, status line, key line, focus, zoom, help. It is the root
// primitive; the panes' own focus is kept here, not in the application.
type console struct {
	*tview.Box
	o       BuildOptions
	header  *widgets.Header
	tabs    *widgets.Strip
	status  *widgets.Strip
	keys    *widgets.Keyline
	help    *widgets.Lines
	helpBox *widgets.Pane

	bindings func() []Binding                    // of the page
	place    func(s shape, r rect) []placed      // of the page
	below    widgets.Line                        // second header line
	parts    []widgets.Part                      // header
	bar      widgets.Line                        // line above the keys
	extra    func(s shape, w int) *widgets.Gauge // a gauge above the status line, nil for none

	panes    []*pane
	at       int  // index into panes
	inText   bool // the keyboard is in that pane's prompt
	zoomed   bool
	helping  bool
	ask      *question
	leaving  bool
	stopping bool        // an answer was told to stop
	canStop  func() bool // an answer runs that this device may stop
	guests   func() int  // devices that lose the room when this one leaves
	size     shape
}

func (c *console) init(o BuildOptions, bindings func() []Binding, place func(shape, rect) []placed, panes ...*pane) {
	c.Box = tview.NewBox()
	c.o = o
	c.header = widgets.NewHeader(o.Look)
	c.tabs, c.status = widgets.NewStrip(o.Look), widgets.NewStrip(o.Look)
	c.keys, c.help = widgets.NewKeyline(o.Look), widgets.NewLines(o.Look)
	c.helpBox = widgets.NewPane(o.Look)
	c.bindings, c.place, c.panes = bindings, place, panes
	for _, p := range panes {
		p.frame = widgets.NewPane(o.Look)
	}
}

// where names what has the keyboard.
func (c *console) where() string {
	if c.inText {
		return promptName
	}
	return c.panes[c.at].name
}

// pane returns the pane of a name.
func (c *console) pane(name string) (int, *pane) {
	for i, p := range c.panes {
		if p.name == name {
			return i, p
		}
	}
	return 0, c.panes[0]
}

// focus gives the keyboard to a pane, or to its prompt.
func (c *console) focus(name string, inText bool) {
	i, p := c.pane(name)
	if old := c.panes[c.at].prompt; old != nil {
		old.Blur()
	}
	c.at, c.inText = i, inText && p.prompt != nil && p.typing
	if c.inText {
		p.prompt.Focus(nil)
	}
}

// offer gives the keyboard to a prompt on the program's own account: never away from a prompt with text in it.
func (c *console) offer(name string) {
	if p := c.panes[c.at].prompt; c.inText && p.Text() != "" {
		return
	}
	c.focus(name, true)
}

// next moves the keyboard by one stop: each pane is one, and so is its prompt.
func (c *console) next(by int) {
	type stop struct {
		name   string
		inText bool
	}
	var stops []stop
	cur := 0
	for i, p := range c.panes {
		stops = append(stops, stop{p.name, false})
		if p.typing {
			stops = append(stops, stop{p.name, true})
		}
		if i == c.at {
			cur = len(stops) - 1
			if p.typing && !c.inText {
				cur--
			}
		}
	}
	to := stops[(cur+by+len(stops))%len(stops)]
	c.focus(to.name, to.inText)
}

// scroll hands a scrolling key to the pane that has the keyboard.
func (c *console) scroll(ev *tcell.EventKey) { c.panes[c.at].body.Scroll(ev) }

// toPrompt hands a key to the prompt that has the keyboard.
func (c *console) toPrompt(ev *tcell.EventKey) {
	if p := c.panes[c.at].prompt; p != nil && c.inText {
		p.InputHandler()(ev, nil)
	}
}

// InputHandler dispatches keys: an open question, the help page, the bindings, then whatever has the keyboard.
func (c *console) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return c.WrapInputHandler(func(ev *tcell.EventKey, _ func(tview.Primitive)) { c.key(ev) })
}

// PasteHandler gives pasted text to the prompt that has the keyboard, else to nobody.
func (c *console) PasteHandler() func(string, func(tview.Primitive)) {
	return c.WrapPasteHandler(func(s string, _ func(tview.Primitive)) {
		if p := c.panes[c.at].prompt; p != nil && c.inText && c.ask == nil && !c.helping {
			p.PasteHandler()(s, nil)
		}
	})
}

func (c *console) key(ev *tcell.EventKey) {
	switch {
	case c.ask != nil && ev.Key() != tcell.KeyCtrlC:
		q := c.ask
		c.ask = nil
		if ev.Key() == tcell.KeyRune && lower(ev.Rune()) == 'y' {
			q.yes()
		}
		return
	case c.helping && ev.Key() != tcell.KeyCtrlC:
		if !c.help.Scroll(ev) {
			c.helping = false
		}
		return
	}
	c.helping = false
	list, where := c.bindings(), c.where()
	for i := range list {
		if b := &list[i]; b.Do != nil && b.matches(ev) && b.active(where) {
			b.Do(ev)
			return
		}
	}
	c.toPrompt(ev)
}

// showHelp opens the help page.
func (c *console) showHelp(*tcell.EventKey) { c.helping = true }

// Draw lays the page out for its size and draws it.
func (c *console) Draw(screen tcell.Screen) {
	x, y, w, h := c.GetRect()
	screen.HideCursor()
	c.size = shapeOf(w, h)
	if c.size == tiny {
		c.status.SetModel(widgets.StripModel{Line: widgets.Plain("pooled needs at least 60 x 16 cells")})
		drawIn(c.status, screen, rect{x, y, w, 1})
		return
	}
	area := rect{x, y, w, h}
	area = c.drawHeader(screen, area)
	area = c.drawFooter(screen, area)
	if c.helping {
		c.drawHelp(screen, area)
		return
	}
	if c.zoomed || c.size == tabbed || len(c.panes) == 1 {
		c.drawBare(screen, c.panes[c.at], area)
		return
	}
	for _, pl := range c.place(c.size, area) {
		if pl.r.w < 4 || pl.r.h < 3 {
			continue
		}
		bright := c.panes[c.at] == pl.p
		pl.p.frame.SetModel(widgets.PaneModel{Title: pl.p.title, Bright: bright})
		drawIn(pl.p.frame, screen, pl.r)
		ix, iy, iw, ih := pl.p.frame.Inner()
		drawPane(screen, pl.p, rect{ix, iy, iw, ih})
	}
}

// drawBare draws a pane that has the area to itself, without a border.
func (c *console) drawBare(screen tcell.Screen, p *pane, r rect) {
	drawPane(screen, p, rect{r.x + 1, r.y, r.w - 2, r.h})
}

// drawPane draws a pane's content and, below it, its prompt.
func drawPane(screen tcell.Screen, p *pane, r rect) {
	rows := 0
	if p.typing {
		rows = min(p.prompt.Height(r.w), max(1, r.h-1))
	}
	drawIn(p.body, screen, rect{r.x, r.y, r.w, r.h - rows})
	if p.typing {
		drawIn(p.prompt, screen, rect{r.x, r.y + r.h - rows, r.w, rows})
	}
}

func drawIn(p tview.Primitive, screen tcell.Screen, r rect) {
	if r.w <= 0 || r.h <= 0 {
		return
	}
	p.SetRect(r.x, r.y, r.w, r.h)
	p.Draw(screen)
}

// drawHeader draws the header, and the tabs where panes are shown one at a time, and returns the rest of the area.
func (c *console) drawHeader(screen tcell.Screen, r rect) rect {
	m := widgets.HeaderModel{Parts: c.parts}
	rows := 1
	switch {
	case c.size == tabbed:
	case len(c.below) > 0:
		m.Below, rows = c.below, 2
	case c.size == stacked:
		rows = len(widgets.FitParts(c.parts, r.w-2, 2))
	}
	c.header.SetModel(m)
	drawIn(c.header, screen, rect{r.x, r.y, r.w, rows})
	r.y, r.h = r.y+rows, r.h-rows
	if c.size != tabbed || len(c.panes) < 2 {
		return r
	}
	c.tabs.SetModel(widgets.StripModel{Line: tabLine(c.panes, c.at)})
	drawIn(c.tabs, screen, rect{r.x, r.y, r.w, 1})
	return rect{r.x, r.y + 1, r.w, r.h - 1}
}

// tabLine names the panes with the digit that shows each.
func tabLine(panes []*pane, at int) widgets.Line {
	var l widgets.Line
	for i, p := range panes {
		role := widgets.Dim
		if i == at {
			role = widgets.Strong
		}
		if i > 0 {
			l = append(l, widgets.Span{Text: "  "})
		}
		l = append(l, widgets.Span{Text: textf("%d %s", i+1, p.name), Role: role})
	}
	return l
}

// drawFooter draws the key line and what stands above it, and returns the rest of the area.
func (c *console) drawFooter(screen tcell.Screen, r rect) rect {
	m := widgets.KeylineModel{Hints: hints(c.bindings(), c.where())}
	switch {
	case c.ask != nil:
		m.Ask = c.ask.text()
	case c.helping:
		m.Hints = []widgets.Hint{{Key: "any key", Does: "back"}}
	}
	c.keys.SetModel(m)
	r.h--
	drawIn(c.keys, screen, rect{r.x, r.y + r.h, r.w, 1})
	if len(c.bar) > 0 {
		c.status.SetModel(widgets.StripModel{Line: c.bar})
		r.h--
		drawIn(c.status, screen, rect{r.x, r.y + r.h, r.w, 1})
	}
	if c.extra == nil {
		return r
	}
	if g := c.extra(c.size, r.w); g != nil {
		r.h--
		drawIn(g, screen, rect{r.x, r.y + r.h, r.w, 1})
	}
	return r
}

func (c *console) drawHelp(screen tcell.Screen, r rect) {
	c.helpBox.SetModel(widgets.PaneModel{Title: "keys", Bright: true})
	drawIn(c.helpBox, screen, r)
	c.help.SetModel(widgets.LinesModel{Lines: helpLines(c.bindings())})
	x, y, w, h := c.helpBox.Inner()
	drawIn(c.help, screen, rect{x, y, w, h})
}
