package token

import (
	"errors"
	"strings"
	"testing"
)

func TestNewRefuses(t *testing.T) {
	last := func(v *Vocab) int { return len(v.Tokens) - 1 }
	tests := []struct {
		name  string
		spoil func(v *Vocab)
		want  string // in the error
	}{
		{"unknown rule", func(v *Vocab) { v.Pre = "llama-bpe" }, `"llama-bpe" is unknown`},
		{"no rule", func(v *Vocab) { v.Pre = "" }, `"" is unknown`},
		{"no tokens", func(v *Vocab) { v.Tokens, v.Types = nil, nil }, "0 tokens"},
		{"a type is missing", func(v *Vocab) { v.Types = v.Types[1:] }, "293 types for 294 tokens"},
		{"type too low", func(v *Vocab) { v.Types[7] = 0 }, "token 7 has type 0"},
		{"type too high", func(v *Vocab) { v.Types[7] = 7 }, "token 7 has type 7"},
		{"same text twice", func(v *Vocab) { v.Tokens[last(v)] = "<think>" }, `both "<think>"`},
		{"empty text", func(v *Vocab) { v.Tokens[last(v)] = "" }, "is empty"},
		{"end token outside", func(v *Vocab) { v.EOS = int32(len(v.Tokens)) }, "end token 294 of 294"},
		{"padding token negative", func(v *Vocab) { v.Pad = -2 }, "padding token -2"},
		{"start token outside", func(v *Vocab) { v.BOS = 1 << 30 }, "start token 1073741824"},
		{"a byte is missing", func(v *Vocab) { v.Tokens[0x41] = "[no A]" }, "byte 0x41"},
		{"a byte is special", func(v *Vocab) { v.Types[0x41] = typeControl }, "byte 0x41"},
		{"merge without a space", func(v *Vocab) { v.Merges[3] = "hello" }, `merge 3 ("hello") has no space`},
		{"merge of an unknown left part", func(v *Vocab) { v.Merges[3] = "zz l" }, `"zz" is no token`},
		{"merge of an unknown right part", func(v *Vocab) { v.Merges[3] = "l zz" }, `"zz" is no token`},
		{"merge of three parts", func(v *Vocab) { v.Merges[3] = "h e l" }, `"e l" is no token`},
		{"merge with an empty part", func(v *Vocab) { v.Merges[3] = "h " }, `"" is no token`},
		{"merge into nothing known", func(v *Vocab) { v.Merges[3] = "q z" }, `"qz" is no token`},
		{"merge into a special token", func(v *Vocab) {
			v.Tokens[last(v)], v.Types[last(v)] = "<a", typeUser
			v.Merges[3] = "< a"
		}, `"<a" is no token of normal type`},
		{"merge of a special token", func(v *Vocab) {
			v.Tokens[last(v)] = "<think>a"
			v.Merges[3] = "<think> a"
		}, `"<think>" is no token of normal type`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := smallVocab()
			test.spoil(&v)
			_, err := New(v)
			if !errors.Is(err, ErrVocab) {
				t.Fatalf("error %v, want ErrVocab", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q, want %q in it", err, test.want)
			}
		})
	}
}

func TestFirstOfTwoMergesCounts(t *testing.T) {
	v := smallVocab()
	v.Merges = append(v.Merges, v.Merges[0])
	tok, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	p := pairOf(tok.byteID[' '], tok.byteID[' '])
	if got := tok.merges[p].rank; got != 0 {
		t.Errorf("rank %d, want 0", got)
	}
}

func TestStops(t *testing.T) {
	v := smallVocab()
	v.Tokens[len(v.Tokens)-1], v.Types[len(v.Types)-1] = "<|repo_name|>", typeUser
	v.EOS = 65
	tok, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"<|im_end|>", "<|endoftext|>", "<|repo_name|>"} {
		if id, _ := tok.Special(name); !tok.IsStop(id) {
			t.Errorf("%s is no stop", name)
		}
	}
	if !tok.IsStop(65) {
		t.Error("the file's end token is no stop")
	}
	for _, name := range []string{"<|im_start|>", "</think>", "<tool_response>"} {
		if id, _ := tok.Special(name); tok.IsStop(id) {
			t.Errorf("%s is a stop", name)
		}
	}
	for _, id := range []int32{-1, 0, 1 << 30} {
		if tok.IsStop(id) {
			t.Errorf("%d is a stop", id)
		}
	}
}

// A name alone makes nothing special: the type does.
func TestSpecialNeedsTheType(t *testing.T) {
	v := smallVocab()
	for i, text := range v.Tokens {
		if text == "<|im_end|>" {
			v.Types[i] = 5
		}
	}
	v.EOS = -1
	tok, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := tok.Special("<|im_end|>"); ok {
		t.Errorf("unused token is special %d", id)
	}
	if _, ok := tok.Special("hello"); ok {
		t.Error("normal token is special")
	}
	if _, ok := tok.Special("<|im_start|>"); !ok {
		t.Error("control token is not special")
	}
}

func TestText(t *testing.T) {
	tok := small(t)
	think, _ := tok.Special("<think>")
	for id, want := range map[int32]string{think: "<think>", 65: "", -1: "", int32(tok.Size()) - 1: "", int32(tok.Size()): ""} {
		if got := tok.Text(id); got != want {
			t.Errorf("text of %d is %q, want %q", id, got, want)
		}
	}
}
