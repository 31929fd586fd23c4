package token

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// slowMerge merges a piece by looking at all pairs again after every merge.
func slowMerge(t *Tokenizer, piece string) []int32 {
	var ids []int32
	for i := range len(piece) {
		ids = append(ids, t.byteID[piece[i]])
	}
	for {
		at, best := -1, merge{}
		for i := range len(ids) - 1 {
			m, ok := t.merges[pairOf(ids[i], ids[i+1])]
			if ok && (at < 0 || m.rank < best.rank) {
				at, best = i, m
			}
		}
		if at < 0 {
			return ids
		}
		ids[at] = best.id
		ids = slices.Delete(ids, at+1, at+2)
	}
}

func TestMergeEqualsSlowMerge(t *testing.T) {
	tok := small(t)
	letters := []string{"h", "e", "l", "l", "o", "a", "aa", "t", " ", "w", "r", "d", "é", "i", "n", "k", "x", "y", "hello", "\xff"}
	r := rand.New(rand.NewPCG(5, 6))
	var m merger
	for range 5000 {
		var b strings.Builder
		for range 1 + r.IntN(30) {
			b.WriteString(letters[r.IntN(len(letters))])
		}
		got, want := m.append(nil, tok, b.String()), slowMerge(tok, b.String())
		if !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", b.String(), got, want)
		}
	}
}

func TestMergeLeftmostOnATie(t *testing.T) {
	tok := small(t)
	var m merger
	got := m.append(nil, tok, "aaaaa") // aa aa a, not a aa aa
	want := []int32{tok.find(t, "aaaa"), tok.byteID['a']}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// find returns the id of a normal token by the bytes it stands for.
func (t *Tokenizer) find(tb testing.TB, text string) int32 {
	tb.Helper()
	for id := range int32(t.Size()) {
		if string(t.AppendBytes(nil, id)) == text {
			return id
		}
	}
	tb.Fatalf("no token %q", text)
	return -1
}

// longWord is a word of n letters that merges in many ways.
func longWord(n int) string {
	parts := []string{"hello", "world", "the", "aaaa", "user", "think", "xy", "l", "o", "a", "q", "hex"}
	r := rand.New(rand.NewPCG(7, 8))
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(parts[r.IntN(len(parts))])
	}
	return b.String()[:n]
}

// A word of 32,768 letters took 18 seconds when every merge looked at the whole word again. Candidates
// are counted, not time: n-1 at the start, at most two for each of n-1 merges.
func TestLongWordIsNotQuadratic(t *testing.T) {
	tok := small(t)
	const n = 32768
	for name, word := range map[string]string{"mixed": longWord(n), "one letter": strings.Repeat("a", n)} {
		t.Run(name, func(t *testing.T) {
			var m merger
			ids := m.append(nil, tok, word)
			if m.pushes > 3*n {
				t.Errorf("%d candidates for %d letters, want at most %d", m.pushes, n, 3*n)
			}
			if m.compares > 3*n*2*bits.Len(3*n) {
				t.Errorf("%d comparisons for %d letters, want at most %d", m.compares, n, 3*n*2*bits.Len(3*n))
			}
			if len(ids) >= n*3/4 {
				t.Errorf("%d ids of %d letters: hardly anything was merged", len(ids), n)
			}
			if got := tok.Decode(ids); got != word {
				t.Error("the ids don't give the word back")
			}
		})
	}
}

func BenchmarkLongWord(b *testing.B) {
	tok, err := New(fileVocab(b, testFile(b, "POOLED_GOLDENS", goldenFolder, vocabFile)))
	if err != nil {
		b.Fatal(err)
	}
	word := longWord(32768)
	b.SetBytes(int64(len(word)))
	var ids []int32
	for b.Loop() {
		ids = tok.Encode(ids[:0], word)
	}
}

func BenchmarkEncode(b *testing.B) {
	tok, err := New(fileVocab(b, testFile(b, "POOLED_GOLDENS", goldenFolder, vocabFile)))
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, and it's 17 times faster.\n", 100)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var ids []int32
	for b.Loop() {
		ids = tok.Encode(ids[:0], text)
	}
}

func BenchmarkNew(b *testing.B) {
	v := fileVocab(b, testFile(b, "POOLED_GOLDENS", goldenFolder, vocabFile))
	for b.Loop() {
		if _, err := New(v); err != nil {
			b.Fatal(err)
		}
	}
}
