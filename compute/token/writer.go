package token

import "strings"

// writer collects the segments of a conversation. Empty ones are left out.
type writer struct {
	segs []Segment
	run  strings.Builder // text that what comes next may add to
}

// special adds a special token.
func (w *writer) special(tag string) {
	w.flush()
	w.segs = append(w.segs, Segment{Special: tag})
}

// text adds a text that is tokenized for itself.
func (w *writer) text(s string) {
	w.more(s)
	w.flush()
}

// more adds to the text that is tokenized in one call, up to the next segment of another kind.
func (w *writer) more(s string) { w.run.WriteString(s) }

// ids adds sampled ids.
func (w *writer) ids(ids []int32) {
	w.flush()
	if len(ids) > 0 {
		w.segs = append(w.segs, Segment{IDs: ids})
	}
}

func (w *writer) flush() {
	if w.run.Len() > 0 {
		w.segs = append(w.segs, Segment{Text: w.run.String()})
		w.run.Reset()
	}
}

// done returns all segments.
func (w *writer) done() []Segment {
	w.flush()
	return w.segs
}

// endTurn closes a turn.
func (w *writer) endTurn() {
	w.special(tagEnd)
	w.text("\n")
}

// header opens an answer.
func (w *writer) header() {
	w.special(tagStart)
	w.text("assistant\n")
}

// emptyThink writes a think block with nothing in it. What follows is tokenized for itself, as it is
// when the model answers behind this block.
func (w *writer) emptyThink() {
	w.special(tagThink)
	w.text("\n\n")
	w.special(tagThinkEnd)
	w.text("\n\n")
}
