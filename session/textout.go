package session

import (
	"strings"
	"unicode"
)

// stopFilter passes an answer's text on until one of the stop strings comes (spec room.md 6.8). The longest tail that
// may still become a stop string is held back.
type stopFilter struct {
	stops []string
	held  string
	hit   string // the stop string that came
}

// push takes a piece and returns what is certain now. After a hit it returns nothing.
func (f *stopFilter) push(piece string) string {
	if f.hit != "" {
		return ""
	}
	if len(f.stops) == 0 {
		return piece
	}
	all := f.held + piece
	at := -1
	for _, s := range f.stops {
		if i := strings.Index(all, s); i >= 0 && (at < 0 || i < at) {
			at, f.hit = i, s
		}
	}
	if at >= 0 {
		f.held = ""
		return all[:at]
	}
	keep := tailOf(all, f.stops...)
	f.held = all[len(all)-keep:]
	return all[:len(all)-keep]
}

// flush returns what was held back.
func (f *stopFilter) flush() string {
	held := f.held
	f.held = ""
	return held
}

// tailOf returns the length of the longest end of s that one of the words starts with, whole words not counted.
func tailOf(s string, words ...string) int {
	most := 0
	for _, w := range words {
		for n := min(len(w)-1, len(s)); n > most; n-- {
			if strings.HasPrefix(w, s[len(s)-n:]) {
				most = n
				break
			}
		}
	}
	return most
}

// piece is text of one sort.
type piece struct {
	reasoning bool
	text      string
}

const (
	openThink  = "<think>"
	closeThink = "</think>"
	openCall   = "<tool_call>"
)

// thinkSplitter tells an answer's reasoning from its content while it streams (spec room.md 6.8). White space around
// the think block and at the ends of its inside is dropped.
type thinkSplitter struct {
	callCloses bool // a tool call inside the block ends it
	state      splitState
	lead       bool // nothing of the present part came yet: drop leading white space
	held       string
}

type splitState uint8

const (
	splitOff    splitState = iota // everything is content
	splitStart                    // nothing yet, a block may open
	splitThink                    // inside the block
	splitAnswer                   // behind it
)

// newThinkSplitter: on when the model may think, inPrompt when the prompt opened the block already.
func newThinkSplitter(on, inPrompt, callCloses bool) *thinkSplitter {
	s := &thinkSplitter{callCloses: callCloses, lead: true}
	switch {
	case on && inPrompt:
		s.state = splitThink
	case on:
		s.state = splitStart
	}
	return s
}

// push takes a piece and appends what is certain now to dst.
func (s *thinkSplitter) push(dst []piece, text string) []piece {
	if s.state == splitOff {
		return add(dst, false, text)
	}
	s.held += text
	for s.held != "" {
		before := s.state
		dst = s.step(dst)
		if s.state == before {
			break
		}
	}
	return dst
}

// step handles what is held in the present state, and may change it.
func (s *thinkSplitter) step(dst []piece) []piece {
	switch s.state {
	case splitStart:
		rest := strings.TrimLeftFunc(s.held, unicode.IsSpace)
		switch {
		case strings.HasPrefix(rest, openThink):
			s.held, s.state = rest[len(openThink):], splitThink
		case rest != "" && !strings.HasPrefix(openThink, rest):
			s.held, s.state = rest, splitAnswer
		}
	case splitThink:
		return s.think(dst)
	case splitAnswer:
		out := s.held
		if s.lead {
			out = strings.TrimLeftFunc(out, unicode.IsSpace)
		}
		s.held = ""
		s.lead = s.lead && out == ""
		return add(dst, false, out)
	}
	return dst
}

func (s *thinkSplitter) think(dst []piece) []piece {
	if s.lead {
		s.held = strings.TrimLeftFunc(s.held, unicode.IsSpace)
	}
	end, skip := strings.Index(s.held, closeThink), len(closeThink)
	words := []string{closeThink}
	if s.callCloses {
		words = append(words, openCall)
		if i := strings.Index(s.held, openCall); i >= 0 && (end < 0 || i < end) {
			end, skip = i, 0
		}
	}
	if end >= 0 {
		dst = add(dst, true, strings.TrimRightFunc(s.held[:end], unicode.IsSpace))
		s.held = s.held[end+skip:]
		s.state, s.lead = splitAnswer, true
		return dst
	}
	sure := s.held[:len(s.held)-tailOf(s.held, words...)]
	sure = strings.TrimRightFunc(sure, unicode.IsSpace)
	s.held = s.held[len(sure):]
	s.lead = s.lead && sure == ""
	return add(dst, true, sure)
}

// flush ends the answer: what was held back is text after all.
func (s *thinkSplitter) flush(dst []piece) []piece {
	held := s.held
	s.held = ""
	if s.state == splitStart {
		held = strings.TrimLeftFunc(held, unicode.IsSpace)
	}
	if strings.TrimSpace(held) == "" && s.state == splitThink {
		return dst
	}
	return add(dst, s.state == splitThink, held)
}

func add(dst []piece, reasoning bool, text string) []piece {
	if text == "" {
		return dst
	}
	return append(dst, piece{reasoning, text})
}
