package token

import (
	"unicode"
	"unicode/utf8"
)

// class is what the splitting rules know of a character.
type class uint8

const (
	classEnd    class = iota // no character: the text ends here
	classLetter              // \p{L}, and \p{M} where marks belong to words
	classNumber              // \p{N}
	classBreak               // carriage return, line feed
	classSpace               // other White_Space
	classOther               // everything else, and a byte that is not UTF-8
)

// asciiClass is the class of each character below 128.
var asciiClass = asciiClasses()

func asciiClasses() (t [utf8.RuneSelf]class) {
	for r := range rune(utf8.RuneSelf) {
		t[r] = slowClass(r, false)
	}
	return t
}

func slowClass(r rune, marks bool) class {
	switch {
	case r == '\r' || r == '\n':
		return classBreak
	case unicode.IsLetter(r) || marks && unicode.IsMark(r):
		return classLetter
	case unicode.IsNumber(r):
		return classNumber
	case unicode.Is(unicode.White_Space, r):
		return classSpace
	}
	return classOther
}

// splitter cuts text into the pieces that are merged each for itself. The rules of spec engine.md
// 2.1 as a regular expression need look-ahead; here they are a decision on the first characters.
type splitter struct {
	marks bool // `qwen35`: combining marks belong to words
}

// class returns the class and the width in bytes of the first character.
func (sp splitter) class(s string) (class, int) {
	if s == "" {
		return classEnd, 0
	}
	if s[0] < utf8.RuneSelf {
		return asciiClass[s[0]], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	return slowClass(r, sp.marks), n
}

// next returns the length in bytes of the first piece of s, which is not empty.
func (sp splitter) next(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	first, n := sp.class(s)
	switch first {
	case classLetter:
		return sp.run(s, n, classLetter)
	case classNumber:
		return n
	case classBreak:
		return sp.blank(s)
	}
	second, m := sp.class(s[n:])
	switch {
	case second == classLetter: // a word takes one space, or one symbol, in front of it
		return sp.run(s, n+m, classLetter)
	case first == classOther:
		return sp.symbols(s, n)
	case s[0] == ' ' && second == classOther:
		return sp.symbols(s, n+m)
	}
	return sp.blank(s)
}

// contraction returns the length of an English contraction ('s, 'll, in any case) at the start.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch lower(s[1]) {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(s) < 3 {
		return 0
	}
	switch [2]byte{lower(s[1]), lower(s[2])} {
	case [2]byte{'r', 'e'}, [2]byte{'v', 'e'}, [2]byte{'l', 'l'}:
		return 3
	}
	return 0
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// run returns where the characters of one class end, from byte n on.
func (sp splitter) run(s string, n int, want class) int {
	for {
		c, m := sp.class(s[n:])
		if c != want {
			return n
		}
		n += m
	}
}

// symbols returns the end of a run of symbols from byte n on, with the line ends behind it.
func (sp splitter) symbols(s string, n int) int {
	return sp.run(s, sp.run(s, n, classOther), classBreak)
}

// blank returns the length of the piece at the start of white space: up to the last line end of the
// run, else all of it at the end of the text, else all but the last character, which belongs to
// what follows, unless it is the only one.
func (sp splitter) blank(s string) int {
	end, lastBreak, last := 0, 0, 0
	for {
		c, n := sp.class(s[end:])
		if c != classBreak && c != classSpace {
			break
		}
		last = end
		end += n
		if c == classBreak {
			lastBreak = end
		}
	}
	switch {
	case lastBreak > 0:
		return lastBreak
	case end < len(s) && last > 0:
		return last
	}
	return end
}
