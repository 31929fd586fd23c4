package token

import "unicode/utf8"

// AppendBytes appends the bytes that a token stands for. Special and unused tokens, and ids outside the
// vocabulary, stand for none. The bytes of one token may be part of a character.
func (t *Tokenizer) AppendBytes(dst []byte, id int32) []byte {
	if id < 0 || int(id) >= len(t.tokens) || t.types[id] != typeNormal {
		return dst
	}
	return appendUnmapped(dst, t.tokens[id])
}

// Decode returns the text of ids, with U+FFFD for what is not UTF-8: what a Stream gives for the same
// ids when all its pieces are put together.
func (t *Tokenizer) Decode(ids []int32) string {
	s := t.Stream()
	var text []byte
	for _, id := range ids {
		text = s.append(text, id)
	}
	return string(s.end(text))
}

// Stream decodes the tokens of one answer as they come. It holds back the bytes of a character that is
// not whole yet, at most three; special tokens give no text and end such a character.
type Stream struct {
	t    *Tokenizer
	held []byte // less than one character
	out  []byte // memory for Push
}

// Stream starts decoding an answer.
func (t *Tokenizer) Stream() *Stream { return &Stream{t: t} }

// Push takes the next token and returns the text that is certain now, which may be empty. It is valid
// UTF-8, cut between characters.
func (s *Stream) Push(id int32) string {
	s.out = s.append(s.out[:0], id)
	return string(s.out)
}

// Flush ends the answer: an unfinished character becomes U+FFFD. The stream can be used again.
func (s *Stream) Flush() string {
	return string(s.end(nil))
}

func (s *Stream) append(dst []byte, id int32) []byte {
	had := len(s.held)
	s.held = s.t.AppendBytes(s.held, id)
	if len(s.held) == had {
		return s.end(dst)
	}
	done := 0
	for done < len(s.held) {
		rest := s.held[done:]
		if !utf8.FullRune(rest) {
			break
		}
		n := validPrefix(rest)
		if n == 0 {
			n = brokenPrefix(rest)
			dst = utf8.AppendRune(dst, utf8.RuneError)
		} else {
			dst = append(dst, rest[:n]...)
		}
		done += n
	}
	s.held = s.held[:copy(s.held, s.held[done:])]
	return dst
}

func (s *Stream) end(dst []byte) []byte {
	if len(s.held) > 0 { // a beginning of a character: one replacement
		dst = utf8.AppendRune(dst, utf8.RuneError)
		s.held = s.held[:0]
	}
	return dst
}

// validPrefix returns how many bytes of whole characters b starts with.
func validPrefix(b []byte) int {
	n := 0
	for n < len(b) {
		r, w := utf8.DecodeRune(b[n:])
		if r == utf8.RuneError && w == 1 {
			break
		}
		n += w
	}
	return n
}

// brokenPrefix returns how many bytes one U+FFFD replaces at the start of b, which starts no whole
// character: as many as could have become one, at least one byte (the Unicode standard's
// "maximal subpart", as browsers do it).
func brokenPrefix(b []byte) int {
	n := 1
	for n < len(b) && !utf8.FullRune(b[:n]) && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return n
}
