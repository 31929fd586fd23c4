package token

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestStream(t *testing.T) {
	tests := []struct {
		name  string
		push  []string // bytes of each token, or the text of a special one
		want  []string // what each push gives
		flush string
	}{
		{"letters", []string{"hello", " world"}, []string{"hello", " world"}, ""},
		{"a character in four tokens", []string{"\xf0", "\x9f", "\x91", "\x8b"}, []string{"", "", "", "👋"}, ""},
		{"held and flushed", []string{"\xe2", "\x82"}, []string{"", ""}, "\ufffd"},
		{"broken by a letter", []string{"\xe2", "\x82", "a"}, []string{"", "", "\ufffda"}, ""},
		{"broken by another start", []string{"\xe2", "\xc3", "\xa9"}, []string{"", "\ufffd", "é"}, ""},
		{"never a start", []string{"\x82", "\xff", "a"}, []string{"\ufffd", "\ufffd", "a"}, ""},
		{"overlong is certain at the second byte", []string{"\xe0", "\x80"}, []string{"", "\ufffd\ufffd"}, ""},
		{"surrogate", []string{"\xed", "\xa0", "\x80"}, []string{"", "\ufffd\ufffd", "\ufffd"}, ""},
		{"beyond the last character", []string{"\xf4", "\x90"}, []string{"", "\ufffd\ufffd"}, ""},
		{"four bytes cut at three", []string{"\xf0", "\x9f", "\x91", "a"}, []string{"", "", "", "\ufffda"}, ""},
		{"tag gives no text", []string{"the", "<think>", "user"}, []string{"the", "", "user"}, ""},
		{"tag ends a character", []string{"\xe2", "<|im_end|>", "\x82", "a"}, []string{"", "\ufffd", "\ufffd", "a"}, ""},
		{"replacement character itself", []string{"\xef", "\xbf", "\xbd"}, []string{"", "", "\ufffd"}, ""},
		{"nothing", nil, nil, ""},
	}
	tok := small(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := tok.Stream()
			var got []string
			var ids []int32
			for _, text := range test.push {
				id, ok := tok.Special(text)
				if !ok {
					id = tok.find(t, text)
				}
				ids = append(ids, id)
				got = append(got, s.Push(id))
				if len(s.held) > 3 {
					t.Errorf("%d bytes held", len(s.held))
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
			if got := s.Flush(); got != test.flush {
				t.Errorf("flush %q, want %q", got, test.flush)
			}
			if got, want := tok.Decode(ids), strings.Join(test.want, "")+test.flush; got != want {
				t.Errorf("decode %q, want %q", got, want)
			}
			if got := s.Flush(); got != "" {
				t.Errorf("second flush %q", got)
			}
		})
	}
}

func TestDecodeIDsWithoutText(t *testing.T) {
	tok := small(t)
	n := int32(tok.Size())
	if got := tok.Decode([]int32{-1, n, n - 1, 1 << 30, -1 << 31, 'a'}); got != "a" {
		t.Errorf("%q, want a", got)
	}
	if got := tok.AppendBytes([]byte("x"), n-1); string(got) != "x" { // an unused token
		t.Errorf("%q, want x", got)
	}
}

// A token of code points that stand for no byte, as only a broken vocabulary has, keeps them.
func TestAppendBytesOfUnmappedSpelling(t *testing.T) {
	v := smallVocab()
	v.Tokens[len(v.Tokens)-1], v.Types[len(v.Types)-1] = "語 a", typeNormal
	tok, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(tok.AppendBytes(nil, int32(len(v.Tokens)-1))); got != "語 a" {
		t.Errorf("%q, want the spelling", got)
	}
}

// checkStream compares a stream's pieces with the text of the whole, for any ids.
func checkStream(t *testing.T, tok *Tokenizer, ids []int32) {
	t.Helper()
	s := tok.Stream()
	var text strings.Builder
	for _, id := range ids {
		piece := s.Push(id)
		if !utf8.ValidString(piece) {
			t.Fatalf("ids %v: piece %q is not UTF-8", ids, piece)
		}
		if len(s.held) > 3 {
			t.Fatalf("ids %v: %d bytes held", ids, len(s.held))
		}
		text.WriteString(piece)
	}
	text.WriteString(s.Flush())
	if got, want := text.String(), tok.Decode(ids); got != want {
		t.Fatalf("ids %v: pieces give %q, the whole %q", ids, got, want)
	}
}
