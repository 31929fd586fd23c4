package widgets

import (
	"fmt"

	"github.com/gdamore/tcell/v2"
)

// MaxEntries is the most entries a Transcript keeps; older ones go first.
const MaxEntries = 200

// Transcript shows who said what. It follows the end while an answer grows, unless the person scrolled up: then the
// text stays where it is and the last row says how much is below.
type Transcript struct {
	base
	m      TranscriptModel
	v      viewport
	cache  map[int64]*laidEntry
	folded bool // thinking is hidden
	dirty  bool
	width  int
}

// TranscriptModel is what a Transcript shows, oldest first.
type TranscriptModel struct{ Entries []Entry }

// Entry is one turn. Thinking comes before the text, dimmed under its own word. Wait is shown while there is no text
// yet. Foot is a line under the text.
type Entry struct {
	ID       int64 // rises from entry to entry and stays with it
	Who      Text
	WhoRole  Role
	Text     Text
	TextRole Role
	Thinking Text
	Wait     Text
	Foot     Text
	FootRole Role
}

// laidEntry is an entry laid out for a width.
type laidEntry struct {
	e           Entry
	folded      bool
	text, think wrapCache
	rows        []row
}

const whoWidth = 10

// NewTranscript returns an empty transcript.
func NewTranscript(look *Look) *Transcript {
	return &Transcript{base: newBase(look), cache: map[int64]*laidEntry{}}
}

// SetModel replaces what is shown; only the last MaxEntries entries are kept.
func (t *Transcript) SetModel(m TranscriptModel) {
	if n := len(m.Entries); n > MaxEntries {
		m.Entries = m.Entries[n-MaxEntries:]
	}
	t.m, t.dirty = m, true
}

// Fold hides the thinking of all entries or shows it again.
func (t *Transcript) Fold() { t.folded, t.dirty = !t.folded, true }

// Follow goes to the end and stays there.
func (t *Transcript) Follow() { t.v.held = false }

// Draw draws the entries.
func (t *Transcript) Draw(screen tcell.Screen) {
	c := t.canvas(screen)
	if t.width != c.w {
		t.width, t.dirty = c.w, true
		clear(t.cache)
	}
	if t.dirty {
		t.dirty = false
		t.lay(c.w)
	}
	t.v.draw(c)
}

// lay builds the rows, reusing those of entries that did not change.
func (t *Transcript) lay(w int) {
	var rows []row
	seen := make(map[int64]bool, len(t.m.Entries))
	for _, e := range t.m.Entries {
		seen[e.ID] = true
		laid := t.cache[e.ID]
		if laid == nil {
			laid = &laidEntry{}
			t.cache[e.ID] = laid
		}
		if laid.rows == nil || laid.e != e || laid.folded != t.folded {
			laid.e, laid.folded = e, t.folded
			laid.lay(w)
		}
		rows = append(rows, laid.rows...)
	}
	for id := range t.cache {
		if !seen[id] {
			delete(t.cache, id)
		}
	}
	t.v.set(rows)
}

// lay builds the rows of one entry.
func (l *laidEntry) lay(w int) {
	who := min(whoWidth, max(4, w/5))
	room := max(1, w-who)
	lead := Span{Pad(Cut(l.e.Who, who-1), who), l.e.WhoRole}
	l.rows = l.rows[:0]
	add := func(role Role, text Text) {
		l.rows = append(l.rows, row{l.e.ID, len(l.rows), Line{lead, {text, role}}})
		lead = Span{Text: Pad("", who)}
	}
	if l.e.Thinking != "" {
		lines := l.think.lines(string(l.e.Thinking), room)
		if l.folded {
			add(Dim, Text(fmt.Sprintf("thinking (%s hidden)", count(len(lines), "line"))))
		} else {
			add(Dim, "thinking")
			for _, s := range lines {
				add(Dim, Text(s))
			}
		}
		if l.e.Text != "" {
			add(Normal, "")
		}
	}
	switch {
	case l.e.Text != "":
		for _, s := range l.text.lines(string(l.e.Text), room) {
			add(l.e.TextRole, Text(s))
		}
	case l.e.Wait != "":
		add(Dim, l.e.Wait)
	}
	if l.e.Foot != "" {
		for _, s := range wrap(string(l.e.Foot), room) {
			add(l.e.FootRole, Text(s))
		}
	}
}

// Scroll moves by a scrolling key and says whether it was one.
func (t *Transcript) Scroll(ev *tcell.EventKey) bool { return t.v.handle(ev) }
