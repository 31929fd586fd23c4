package token

import (
	"cmp"
	"slices"
)

// Encode appends the ids of a text to dst. Text that spells a special token is text like any other.
// When all pieces are remembered and dst has room, it allocates nothing.
func (t *Tokenizer) Encode(dst []int32, text string) []int32 {
	for len(text) > 0 {
		n := t.split.next(text)
		dst = t.appendPiece(dst, text[:n])
		text = text[n:]
	}
	return dst
}

func (t *Tokenizer) appendPiece(dst []int32, piece string) []int32 {
	if len(piece) == 1 {
		return append(dst, t.byteID[piece[0]])
	}
	small := len(piece) <= maxCachedBytes
	if small {
		if got, ok := t.cache.append(dst, piece); ok {
			return got
		}
	}
	m := t.mergers.Get().(*merger)
	start := len(dst)
	dst = m.append(dst, t, piece)
	if small { // the memory of a long piece isn't kept
		t.mergers.Put(m)
		t.cache.add(piece, dst[start:])
	}
	return dst
}

// EncodeSpecial appends the ids of a text in which the texts of control and user-defined tokens become
// their ids. Of texts that overlap the longest in the whole text wins, then the lowest id, then the
// leftmost, as llama.cpp does with `parse_special`. For text that we wrote ourselves, and for
// comparing tokenizers; never for text from people.
func (t *Tokenizer) EncodeSpecial(dst []int32, text string) []int32 {
	at := 0
	for _, f := range t.special.find(text) {
		dst = t.Encode(dst, text[at:f.start])
		dst = append(dst, f.id)
		at = f.end
	}
	return t.Encode(dst, text[at:])
}

// specials finds special tokens in a text.
type specials struct {
	ids     map[string]int32
	lengths [256][]int // by first byte, the lengths in bytes that occur
}

func newSpecials(v Vocab) specials {
	s := specials{ids: make(map[string]int32)}
	for i, text := range v.Tokens {
		if !isSpecial(v.Types[i]) {
			continue
		}
		s.ids[text] = int32(i)
		if l := &s.lengths[text[0]]; !slices.Contains(*l, len(text)) {
			*l = append(*l, len(text))
		}
	}
	return s
}

// found is a special token in a text, from byte start to before byte end.
type found struct {
	start, end int
	id         int32
}

// find returns the special tokens of a text that don't overlap, in order.
func (s *specials) find(text string) []found {
	var all []found
	for i := range len(text) {
		for _, n := range s.lengths[text[i]] {
			if n > len(text)-i {
				continue
			}
			if id, ok := s.ids[text[i:i+n]]; ok {
				all = append(all, found{i, i + n, id})
			}
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.end-b.start, a.end-a.start), cmp.Compare(a.id, b.id), cmp.Compare(a.start, b.start))
	})
	// What was taken before is at least as long, so it covers an end of whatever it overlaps.
	taken := make([]bool, len(text))
	kept := all[:0]
	for _, f := range all {
		if taken[f.start] || taken[f.end-1] {
			continue
		}
		for i := f.start; i < f.end; i++ {
			taken[i] = true
		}
		kept = append(kept, f)
	}
	slices.SortFunc(kept, func(a, b found) int { return cmp.Compare(a.start, b.start) })
	return kept
}
