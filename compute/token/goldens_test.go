package token

import (
	"slices"
	"strings"
	"testing"
)

const vocabFile = "vocab-qwen3.gguf"

// TestGoldensTokens compares ids with llama.cpp's, both splitting rules on one vocabulary.
func TestGoldensTokens(t *testing.T) {
	for name, pre := range map[string]string{"tokens-qwen3.json": "qwen2", "tokens-qwen35.json": "qwen35"} {
		t.Run(pre, func(t *testing.T) {
			var golden struct {
				Cases []struct {
					Text string
					IDs  []int32
				}
			}
			readJSON(t, testFile(t, "POOLED_GOLDENS", goldenFolder, name), &golden)
			needCases(t, "POOLED_GOLDENS", len(golden.Cases))
			v := fileVocab(t, testFile(t, "POOLED_GOLDENS", goldenFolder, vocabFile))
			v.Pre = pre
			tok, err := New(v)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range golden.Cases {
				text := c.Text
				if spelled := plain(tok, c.IDs); spelled != text {
					// The tool that made the file read escapes in its input: these ids are of
					// the text with its escapes resolved, or they are wrong.
					text = escapes.Replace(text)
					if spelled != text {
						t.Errorf("ids of %q give %q", c.Text, spelled)
					}
				}
				if got := tok.EncodeSpecial(nil, text); !slices.Equal(got, c.IDs) {
					t.Errorf("%q:\n got %v\nwant %v", text, got, c.IDs)
				}
			}
		})
	}
}

var escapes = strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t", `\\`, `\`, `\'`, "'", `\"`, `"`)

// plain is the text of ids with special tokens spelled out.
func plain(tok *Tokenizer, ids []int32) string {
	var text strings.Builder
	s := tok.Stream()
	for _, id := range ids {
		text.WriteString(s.Push(id))
		text.WriteString(tok.Text(id))
	}
	text.WriteString(s.Flush())
	return text.String()
}

// TestGoldensVocabulary checks what the file of a real model says: its special tokens, its stops and
// its profile.
func TestGoldensVocabulary(t *testing.T) {
	v := fileVocab(t, testFile(t, "POOLED_GOLDENS", goldenFolder, vocabFile))
	tok, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tok.Size(), 151936; got != want {
		t.Errorf("size %d, want %d", got, want)
	}
	specials := map[string]int32{
		"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645, "<tool_call>": 151657,
		"<|fim_pad|>": 151662, "<|repo_name|>": 151663, "<|file_sep|>": 151664, "</think>": 151668,
	}
	for text, want := range specials {
		if got, ok := tok.Special(text); !ok || got != want {
			t.Errorf("%s is %d %v, want %d", text, got, ok, want)
		}
	}
	var stops []int32
	for id := range int32(tok.Size()) {
		if tok.IsStop(id) {
			stops = append(stops, id)
		}
	}
	if want := []int32{151643, 151645, 151662, 151663, 151664}; !slices.Equal(stops, want) {
		t.Errorf("stops %v, want %v", stops, want)
	}
	want := Profile{Style: StyleJSON, Tools: true, Known: true, ThinkRule: ThinkAfterQueryNonEmpty}
	if got := ProfileOf(tok.Template(), tok); got != want {
		t.Errorf("profile %+v, want %+v", got, want)
	}
}

// TestGoldensModelVocabularies makes the tokenizers of the small golden models.
func TestGoldensModelVocabularies(t *testing.T) {
	for name, marks := range map[string]bool{"tiny-qwen3-q8.gguf": false, "tiny-qwen35-q4.gguf": true} {
		t.Run(name, func(t *testing.T) {
			v := fileVocab(t, testFile(t, "POOLED_GOLDENS", goldenFolder, name))
			tok, err := New(v)
			if err != nil {
				t.Fatal(err)
			}
			if tok.split.marks != marks {
				t.Errorf("marks belong to words: %v, want %v", tok.split.marks, marks)
			}
			if end, ok := tok.Special("<|im_end|>"); !ok || !tok.IsStop(end) {
				t.Errorf("<|im_end|> is %d %v and no stop", end, ok)
			}
			text := "The e\u0301nd:\n\n 17 <think> 語👋"
			if got := tok.Decode(tok.Encode(nil, text)); got != text {
				t.Errorf("%q, want %q", got, text)
			}
		})
	}
}
