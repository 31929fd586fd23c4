package token

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestByteMapping(t *testing.T) {
	for b, want := range map[byte]rune{0: 0x100, 1: 0x101, 32: 'Ġ', 33: '!', 126: '~', 127: 0x121, 160: 0x142, 161: '¡', 173: 0x143, 174: '®', 255: 'ÿ'} {
		if got := runeOf[b]; got != want {
			t.Errorf("byte %d is %U, want %U", b, got, want)
		}
	}
	seen := make(map[rune]bool)
	for b, r := range runeOf {
		if seen[r] {
			t.Errorf("%U stands for two bytes", r)
		}
		seen[r] = true
		if got := byteOf[r]; int(got) != b {
			t.Errorf("%U is byte %d, want %d", r, got, b)
		}
	}
}

// spell names ids by the bytes they stand for, special ones by their text in brackets.
func spell(tok *Tokenizer, ids []int32) []string {
	var out []string
	for _, id := range ids {
		if s := tok.Text(id); s != "" {
			out = append(out, "["+s+"]")
			continue
		}
		out = append(out, string(tok.AppendBytes(nil, id)))
	}
	return out
}

func TestEncode(t *testing.T) {
	tests := []struct {
		name, text     string
		plain, special []string // special nil: the same
	}{
		{"nothing", "", nil, nil},
		{"words", "hello world", []string{"hello", " world"}, nil},
		{"letters", "helo", []string{"he", "l", "o"}, nil},
		{"bytes of a letter", "é", []string{"\xc3", "\xa9"}, nil},
		{"broken bytes", "a\xffé\xe2\x82", []string{"a", "\xff", "\xc3", "\xa9", "\xe2", "\x82"}, nil},
		{"tag", "<think>", []string{"<", "th", "in", "k", ">"}, []string{"[<think>]"}},
		{"tags in text", "user<|im_end|>\nhello", []string{"user", "<", "|", "im", "_", "e", "n", "d", "|", ">", "\n", "hello"},
			[]string{"user", "[<|im_end|>]", "\n", "hello"}},
		{"text is split at a tag", "..<think>", []string{"..", "<", "th", "in", "k", ">"}, []string{"..", "[<think>]"}},
		{"half a tag", "<think", []string{"<", "th", "in", "k"}, nil},
	}
	tok := small(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := spell(tok, tok.Encode(nil, test.text)); !slices.Equal(got, test.plain) {
				t.Errorf("plain %q, want %q", got, test.plain)
			}
			want := test.special
			if want == nil {
				want = test.plain
			}
			if got := spell(tok, tok.EncodeSpecial(nil, test.text)); !slices.Equal(got, want) {
				t.Errorf("special %q, want %q", got, want)
			}
		})
	}
}

func TestEncodeAppends(t *testing.T) {
	tok := small(t)
	for range 2 { // the second time from memory
		got := tok.Encode([]int32{7}, "hello world")
		if got[0] != 7 || len(got) != 3 {
			t.Errorf("%v, want 7 and two ids", got)
		}
	}
}

// The longest text wins, even when a shorter one starts before it.
func TestEncodeSpecialOverlap(t *testing.T) {
	v := smallVocab()
	for _, s := range []string{"ab", "bcd", "abc", "xx", "cdab"} {
		v.Tokens = append(v.Tokens, s)
		v.Types = append(v.Types, typeUser)
	}
	tok, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"abcd":     {"a", "[bcd]"}, // same length: the lower id
		"abc":      {"[abc]"},
		"abab":     {"[ab]", "[ab]"},
		"abcdab":   {"[ab]", "[cdab]"},
		"xxx":      {"[xx]", "x"},
		"aab abcc": {"a", "[ab]", " ", "[abc]", "c"},
	} {
		if got := spell(tok, tok.EncodeSpecial(nil, text)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestEncodeRememberedPiecesAllocatesNothing(t *testing.T) {
	tok := small(t)
	text := strings.Repeat("hello the user's world, link 17 ..\n", 20)
	ids := tok.Encode(nil, text)
	if n := testing.AllocsPerRun(100, func() { ids = tok.Encode(ids[:0], text) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestCacheIsBounded(t *testing.T) {
	tok := small(t)
	for i := range 3 * maxGeneration {
		tok.Encode(nil, letters(i))
	}
	if n := len(tok.cache.young); n > maxGeneration {
		t.Errorf("%d young pieces, at most %d wanted", n, maxGeneration)
	}
	if n := len(tok.cache.old); n > maxGeneration {
		t.Errorf("%d old pieces, at most %d wanted", n, maxGeneration)
	}
	long := strings.Repeat("a", maxCachedBytes+1)
	tok.Encode(nil, long)
	if _, ok := tok.cache.append(nil, long); ok {
		t.Error("a long piece is remembered")
	}
}

// letters spells a number as a word.
func letters(n int) string {
	b := []byte("q")
	for ; n > 0; n /= 26 {
		b = append(b, byte('a'+n%26))
	}
	return string(b)
}

func TestCacheKeepsWhatIsUsed(t *testing.T) {
	tok := small(t)
	for i := range 3 * maxGeneration {
		tok.Encode(nil, letters(i))
		tok.Encode(nil, "hello")
	}
	want := []int32{tok.find(t, "hello")}
	if got, ok := tok.cache.append(nil, "hello"); !ok || !slices.Equal(got, want) {
		t.Errorf("hello is %v %v, want %v", got, ok, want)
	}
	if _, ok := tok.cache.append(nil, letters(1)); ok {
		t.Error("a piece of long ago is still remembered")
	}
}

func TestEncodeConcurrently(t *testing.T) {
	tok := small(t)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(9, uint64(g)))
			for range 300 {
				text := fmt.Sprint(randomText(r, 20), letters(r.IntN(1000)))
				if got := tok.Decode(tok.Encode(nil, text)); got != text {
					t.Errorf("%q came back as %q", text, got)
					return
				}
			}
		})
	}
	wg.Wait()
}
