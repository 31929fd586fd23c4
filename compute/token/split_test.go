package token

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func pieces(sp splitter, s string) []string {
	var out []string
	for len(s) > 0 {
		n := sp.next(s)
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

func TestSplit(t *testing.T) {
	tests := []struct {
		name, text string
		qwen2      []string
		qwen35     []string // nil: the same
	}{
		{"words", "one two", []string{"one", " two"}, nil},
		{"two spaces", "one  two", []string{"one", " ", " two"}, nil},
		{"space at the end", "one  ", []string{"one", "  "}, nil},
		{"tab before a word", "\tx", []string{"\tx"}, nil},
		{"tab before a symbol", "\t+", []string{"\t", "+"}, nil},
		{"two tabs before a symbol", "\t\t+", []string{"\t", "\t", "+"}, nil},
		{"symbol before a word", "(one", []string{"(one"}, nil},
		{"symbols before a word", "((one", []string{"((", "one"}, nil},
		{"space and symbols", " ++x", []string{" ++", "x"}, nil},
		{"symbols and line ends", "};\r\n\nx", []string{"};\r\n\n", "x"}, nil},
		{"digits", "a12 3", []string{"a", "1", "2", " ", "3"}, nil},
		{"other numbers", "x²Ⅷ", []string{"x", "²", "Ⅷ"}, nil},
		{"line ends", "a\n\n b", []string{"a", "\n\n", " b"}, nil},
		{"line ends within space", "a \n \n  b", []string{"a", " \n \n", " ", " b"}, nil},
		{"word after line end", "\nx", []string{"\n", "x"}, nil},
		{"contractions", "I'LL he's 'd", []string{"I", "'LL", " he", "'s", " '", "d"}, nil},
		{"contraction first", "'really", []string{"'re", "ally"}, nil},
		{"no contraction", "'a 'l", []string{"'a", " '", "l"}, nil},
		{"apostrophe at the end", "x'", []string{"x", "'"}, nil},
		{"long s is no s", "a'ſ", []string{"a", "'ſ"}, nil},
		{"other spaces", "a\u00a0b\u3000\u0085", []string{"a", "\u00a0b", "\u3000\u0085"}, nil},
		{"byte order mark is a symbol", "\ufeffx \ufeff", []string{"\ufeffx", " \ufeff"}, nil},
		{"mark after a letter", "e\u0301a", []string{"e", "\u0301a"}, []string{"e\u0301a"}},
		{"mark alone", " \u0301 x", []string{" \u0301", " x"}, []string{" \u0301", " x"}},
		{"mark after a symbol", "+\u0301", []string{"+\u0301"}, []string{"+\u0301"}},
		{"symbols and a mark", "++\u0301x", []string{"++\u0301", "x"}, []string{"++", "\u0301x"}},
		{"mark after a digit", "1\u0301", []string{"1", "\u0301"}, nil},
		{"broken bytes are symbols", "a\xff\xfe b\xc3", []string{"a", "\xff\xfe", " b", "\xc3"}, nil},
		{"broken byte before a word", "\xe2\x82x", []string{"\xe2\x82", "x"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := pieces(splitter{}, test.text); !slices.Equal(got, test.qwen2) {
				t.Errorf("qwen2: %q, want %q", got, test.qwen2)
			}
			want := test.qwen35
			if want == nil {
				want = test.qwen2
			}
			if got := pieces(splitter{marks: true}, test.text); !slices.Equal(got, want) {
				t.Errorf("qwen35: %q, want %q", got, want)
			}
		})
	}
}

// The rules as regular expressions, one alternative each. Look-ahead, which they lack, is the
// difference between the last two.
const (
	space = `[\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]`
	black = `[^\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
)

func alternatives(letter string) []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, s := range []string{
		`'[sStTmMdD]|'[rRvV][eE]|'[lL][lL]`,
		`[^\r\n\pL\pN]?[` + letter + `]+`,
		`\pN`,
		` ?` + black + letter + `\pN]+[\r\n]*`,
		space + `*[\r\n]+`,
		space + `+`,
	} {
		out = append(out, regexp.MustCompile(`\A(?:`+s+`)`))
	}
	return out
}

// slowNext is the length of the first piece by these expressions.
func slowNext(alts []*regexp.Regexp, s string) int {
	for i, re := range alts {
		loc := re.FindStringIndex(s)
		if loc == nil {
			continue
		}
		n := loc[1]
		if i == len(alts)-1 && n < len(s) {
			if _, w := utf8.DecodeLastRuneInString(s[:n]); w < n {
				n -= w // all but the last, so that no black character follows
			}
		}
		return n
	}
	return 0
}

// alphabet has characters of every class the rules tell apart, and the ones they name.
var alphabet = []string{
	" ", " ", "  ", "\n", "\r", "\r\n", "\t", "\u00a0", "\u2003", "\u3000", "\u0085", "\ufeff", "\u200b",
	"a", "b", "Z", "s", "t", "re", "VE", "ll", "d", "m", "ſ", "é", "ß", "ж", "語", "한", "ا",
	"\u0301", "\u0940", "\u20dd", "1", "2", "²", "½", "Ⅷ", "१", "'", "'", "-", "+", "(", "€", "👋", "\U000e0001", "_", "<|im_end|>", "<think>",
}

func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}

func TestSplitEqualsExpressions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, rule := range []struct {
		name   string
		split  splitter
		letter string
	}{{"qwen2", splitter{}, `\pL`}, {"qwen35", splitter{marks: true}, `\pL\pM`}} {
		alts := alternatives(rule.letter)
		for range 4000 {
			text := randomText(r, 1+r.IntN(12))
			for s := text; s != ""; {
				got, want := rule.split.next(s), slowNext(alts, s)
				if got != want {
					t.Fatalf("%s: %q at %q: piece of %d bytes, want %d", rule.name, text, s, got, want)
				}
				s = s[got:]
			}
		}
	}
}

func TestPiecesAreTheText(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 4000 {
		raw := make([]byte, r.IntN(24))
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		for _, text := range []string{string(raw), randomText(r, r.IntN(20)) + string(raw)} {
			for _, sp := range []splitter{{}, {marks: true}} {
				got := pieces(sp, text)
				if strings.Join(got, "") != text {
					t.Fatalf("%q: pieces %q", text, got)
				}
			}
		}
	}
}
