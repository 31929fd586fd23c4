package compute

// draftVocab decides whether drafts are picked from the first rows of the head only: common tokens have low ids, and a part of the
// head is read in a part of the time (spec engine.md 6.2). A text with other tokens loses accepted drafts by it, so the share of
// those is watched.
type draftVocab struct {
	rows   int     // of the short head
	misses float64 // share of the tokens outside, a moving average over missSpan
	off    bool    // the whole head is used
}

const (
	draftRows = 65536
	missSpan  = 32
	missOff   = 0.05  // above it the whole head is used
	missOn    = 0.025 // below it no more
)

// newDraftVocab is for a shard of a model; rows is that of the vocabulary when it is no larger.
func newDraftVocab(s ShardSpec, m *Model) draftVocab {
	rows := s.DraftVocab
	if rows == 0 {
		rows = draftRows
	}
	return draftVocab{rows: min(rows, m.Vocab)}
}

// note counts a token of the text.
func (v *draftVocab) note(id int32) {
	miss := 0.0
	if int(id) >= v.rows {
		miss = 1
	}
	v.misses += (miss - v.misses) / missSpan
	switch {
	case v.misses > missOff:
		v.off = true
	case v.misses < missOn:
		v.off = false
	}
}

// note counts the tokens that were picked since the last drafts: what follows the drafts that were right, and those. Where there are
// more, the text went on without drafts or is a prompt, whose marks say nothing about an answer: the last one counts alone.
func (d *drafter) note(tokens []int32) {
	if len(tokens) > d.asked+1 {
		tokens = tokens[len(tokens)-1:]
	}
	for _, id := range tokens {
		d.vocab.note(id)
	}
}

// DraftVocab is the number of tokens that the next drafts come from: those with the lowest ids. It is 0 without a draft block.
func (s *Shard) DraftVocab() int {
	switch d := s.draft; {
	case d == nil:
		return 0
	case d.few == nil || d.vocab.off:
		return s.model.Vocab
	default:
		return d.vocab.rows
	}
}
