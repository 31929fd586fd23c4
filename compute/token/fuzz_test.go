package token

import (
	"bytes"
	"slices"
	"testing"
	"unicode/utf8"
)

func fuzzSeeds(f *testing.F) {
	for _, s := range []string{
		"", "hello world", "I'LL  \r\n\n x", "e\u0301 語 👩\u200d👧", "<|im_end|>\n<|im_start|>system\n", "<think></think>",
		"a\xff\xc3 \xe2\x82", "\ud7ff\ue000", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "[PAD0]",
	} {
		f.Add(s)
	}
}

// FuzzRoundTrip: ids give the text back, with both splitting rules; bytes come back even when they are
// not UTF-8; a stream's pieces are the whole text.
func FuzzRoundTrip(f *testing.F) {
	fuzzSeeds(f)
	qwen2 := small(f)
	v := smallVocab()
	v.Pre = "qwen35"
	qwen35, err := New(v)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range []*Tokenizer{qwen2, qwen35} {
			ids := tok.Encode(nil, text)
			var raw []byte
			for _, id := range ids {
				if tok.Text(id) != "" {
					t.Fatalf("%q became the special token %q", text, tok.Text(id))
				}
				raw = tok.AppendBytes(raw, id)
			}
			if !bytes.Equal(raw, []byte(text)) {
				t.Fatalf("%q came back as %q", text, raw)
			}
			if utf8.ValidString(text) && tok.Decode(ids) != text {
				t.Fatalf("%q was decoded as %q", text, tok.Decode(ids))
			}
			if again := tok.Encode(nil, text); !slices.Equal(again, ids) {
				t.Fatalf("%q: %v, the second time %v", text, ids, again)
			}
			checkStream(t, tok, ids)
			if utf8.ValidString(text) && plain(tok, tok.EncodeSpecial(nil, text)) != text {
				t.Fatalf("%q with special tokens came back as %q", text, plain(tok, tok.EncodeSpecial(nil, text)))
			}
			odd := make([]int32, len(text)) // arbitrary ids, some outside
			for i := range odd {
				odd[i] = int32(text[i])*3 - 8
			}
			checkStream(t, tok, odd)
		}
	})
}

// FuzzRender: whatever people write, the special tokens of a conversation are the ones that an empty
// conversation of the same form has.
func FuzzRender(f *testing.F) {
	fuzzSeeds(f)
	tok := small(f)
	p := ProfileOf("", tok)
	special := func(t *testing.T, c Chat) []int32 {
		ids, err := tok.Segments(nil, p.Render(c))
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(ids, func(id int32) bool { return tok.Text(id) == "" })
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, think := range []bool{false, true} {
			chat := func(s string) Chat {
				return Chat{System: "x" + s, Think: think, Turns: []Turn{
					{Role: roleUser, Text: s}, {Role: roleAssistant, Text: s}, {Role: roleUser, Text: s}}}
			}
			if got, want := special(t, chat(text)), special(t, chat("")); !slices.Equal(got, want) {
				t.Fatalf("%q: special tokens %v, want %v", text, got, want)
			}
		}
	})
}
