package token

import (
	"strings"
	"unicode"
)

// Stops cuts a streamed answer at the first of some stop strings. What could be the start of one is
// held back, so at most the longest of them less one byte (spec room.md 6.8).
type Stops struct {
	stops []string
	held  string
	hit   string
	done  bool
}

// NewStops watches for these strings. Empty ones never match.
func NewStops(stops []string) *Stops {
	s := new(Stops)
	for _, stop := range stops {
		if stop != "" {
			s.stops = append(s.stops, stop)
		}
	}
	return s
}

// Push takes the next piece of the answer and returns the text that no stop string can reach any more.
// After a hit it returns nothing.
func (s *Stops) Push(piece string) string {
	if s.done {
		return ""
	}
	text := s.held + piece
	cut := -1
	for _, stop := range s.stops {
		if i := strings.Index(text, stop); i >= 0 && (cut < 0 || i < cut) {
			cut, s.hit, s.done = i, stop, true
		}
	}
	if s.done {
		s.held = ""
		return text[:cut]
	}
	keep := len(text) - tail(text, s.stops...)
	s.held = text[keep:]
	return text[:keep]
}

// Flush ends the answer and returns what was held back.
func (s *Stops) Flush() string {
	text := s.held
	s.held = ""
	return text
}

// Hit is the stop string that ended the answer.
func (s *Stops) Hit() (stop string, ok bool) { return s.hit, s.done }

// tail returns the length of the longest end of s with which one of the words starts, without being
// the whole word.
func tail(s string, words ...string) int {
	longest := 0
	for _, w := range words {
		for n := min(len(w)-1, len(s)); n > longest; n-- {
			if strings.HasPrefix(w, s[len(s)-n:]) {
				longest = n
			}
		}
	}
	return longest
}

// Part is a piece of an answer's text: reasoning, or what is meant for the reader.
type Part struct {
	Think bool
	Text  string
}

// ThinkSplit tells reasoning from the answer while the text is coming. White space before, at both ends
// within and behind the think block is dropped. It is fed the text of a Stream, with
// Tokenizer.Text for the think and call tags, which have none there.
type ThinkSplit struct {
	state thinkState
	ends  []string // what ends the block
	held  string
}

type thinkState uint8

const (
	beforeThink thinkState = iota // an opening tag may come
	startThink                    // in the block, nothing but white space so far
	inThink
	startAnswer // behind the block, nothing but white space so far
	inAnswer
)

// NewThinkSplit starts an answer. With on false all of it is the answer. With inPrompt it starts
// within the block, which the prompt opened. With callCloses a tool call ends the block and belongs
// to the answer.
func NewThinkSplit(on, inPrompt, callCloses bool) *ThinkSplit {
	s := &ThinkSplit{ends: []string{tagThinkEnd}}
	if callCloses {
		s.ends = append(s.ends, tagCall)
	}
	switch {
	case !on:
		s.state = inAnswer
	case inPrompt:
		s.state = startThink
	}
	return s
}

// Thinking tells whether the text is within the think block now.
func (s *ThinkSplit) Thinking() bool { return s.state == startThink || s.state == inThink }

// Push takes the next piece of text and returns the parts that are certain.
func (s *ThinkSplit) Push(piece string) []Part {
	var parts []Part
	s.held += piece
	for s.step(&parts) {
	}
	return parts
}

// Flush ends the answer and returns what was held back.
func (s *ThinkSplit) Flush() []Part {
	var parts []Part
	s.emit(&parts, s.Thinking(), s.held)
	s.held = ""
	return parts
}

// step goes on with the held text and reports whether the state changed.
func (s *ThinkSplit) step(parts *[]Part) bool {
	if s.state == beforeThink || s.state == startThink || s.state == startAnswer {
		s.held = strings.TrimLeftFunc(s.held, unicode.IsSpace)
	}
	if s.held == "" {
		return false
	}
	switch s.state {
	case beforeThink:
		if tail(s.held, tagThink) == len(s.held) {
			return false
		}
		rest, opened := strings.CutPrefix(s.held, tagThink)
		s.held, s.state = rest, inAnswer
		if opened {
			s.state = startThink
		}
		return true
	case startThink:
		s.state = inThink
		return true
	case inThink:
		return s.think(parts)
	case startAnswer:
		s.state = inAnswer
		return true
	}
	s.emit(parts, false, s.held)
	s.held = ""
	return false
}

// think goes on within the block: up to its end, else up to where the end may begin, white space in
// front of it included.
func (s *ThinkSplit) think(parts *[]Part) bool {
	at, end := -1, ""
	for _, e := range s.ends {
		if i := strings.Index(s.held, e); i >= 0 && (at < 0 || i < at) {
			at, end = i, e
		}
	}
	if at < 0 {
		keep := len(s.held) - tail(s.held, s.ends...)
		keep = len(strings.TrimRightFunc(s.held[:keep], unicode.IsSpace))
		s.emit(parts, true, s.held[:keep])
		s.held = s.held[keep:]
		return false
	}
	s.emit(parts, true, strings.TrimRightFunc(s.held[:at], unicode.IsSpace))
	s.held, s.state = s.held[at:], inAnswer
	if end == tagThinkEnd {
		s.held, s.state = s.held[len(end):], startAnswer
	}
	return true
}

func (s *ThinkSplit) emit(parts *[]Part, think bool, text string) {
	if text != "" {
		*parts = append(*parts, Part{think, text})
	}
}
