package token

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pooled/compute/gguf"
)

// smallMerges are the merges of the vocabulary made for tests, spelled in plain characters and `_` for
// the space.
var smallMerges = strings.Fields(`_:_ h:e l:l he:ll hell:o _:w o:r _w:or l:d _wor:ld a:a aa:aa t:h th:e
	_:the i:n _:a r:e u:s e:r us:er i:m _:t n:k i:nk x:y .:. \:n`)

var smallSpecials = []string{
	"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>",
	"<tool_response>", "</tool_response>", "<think>", "</think>",
}

// smallVocab has the 256 bytes, some merges and the special tokens of a chat model, the first three
// as control tokens.
func smallVocab() Vocab {
	v := Vocab{Pre: "qwen2", Pad: -1, BOS: -1}
	add := func(text string, kind int32) {
		v.Tokens = append(v.Tokens, text)
		v.Types = append(v.Types, kind)
	}
	for _, r := range runeOf {
		add(string(r), typeNormal)
	}
	for _, m := range smallMerges {
		left, right, _ := strings.Cut(strings.ReplaceAll(m, "_", "Ġ"), ":")
		v.Merges = append(v.Merges, left+" "+right)
		add(left+right, typeNormal)
	}
	for i, s := range smallSpecials {
		kind := int32(typeUser)
		if i < 3 {
			kind = typeControl
		}
		add(s, kind)
	}
	add("[PAD0]", 5)
	v.EOS = int32(len(v.Tokens)) - 8
	return v
}

func small(tb testing.TB) *Tokenizer {
	tb.Helper()
	t, err := New(smallVocab())
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// fileVocab reads a vocabulary from a model file.
func fileVocab(tb testing.TB, path string) Vocab {
	tb.Helper()
	r, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	f, err := gguf.Open(gguf.Part{Name: filepath.Base(path), R: r, Size: info.Size()})
	if err != nil {
		tb.Fatal(err)
	}
	v := Vocab{
		Pre:      f.StrOr("tokenizer.ggml.pre", ""),
		Template: f.StrOr("tokenizer.chat_template", ""),
		EOS:      int32(f.UintOr("tokenizer.ggml.eos_token_id", 0)),
		Pad:      -1,
		BOS:      -1,
	}
	if v.Tokens, err = f.Strings("tokenizer.ggml.tokens"); err != nil {
		tb.Fatal(err)
	}
	types, err := f.Ints("tokenizer.ggml.token_type")
	if err != nil {
		tb.Fatal(err)
	}
	for _, n := range types {
		v.Types = append(v.Types, int32(n))
	}
	if v.Merges, err = f.Strings("tokenizer.ggml.merges"); err != nil {
		tb.Fatal(err)
	}
	return v
}

// testFile returns the path of a file in the folder that the variable names, else in the usual one.
// A file may be missing only in a folder named by the variable: then the test is skipped.
func testFile(tb testing.TB, variable, folder, name string) string {
	tb.Helper()
	other := os.Getenv(variable)
	if other != "" {
		folder = other
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		if other != "" {
			tb.Skipf("%s has no %s", variable, name)
		}
		tb.Fatal(err)
	}
	return path
}

const goldenFolder = "../testdata/models"

// readJSON fills into from a file.
func readJSON(tb testing.TB, path string, into any) {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
}

// needCases ends a test whose file holds no case: that is all right only in a folder named by the variable.
func needCases(tb testing.TB, variable string, n int) {
	tb.Helper()
	switch {
	case n > 0:
	case os.Getenv(variable) != "":
		tb.Skipf("no cases in the folder of %s", variable)
	default:
		tb.Fatal("no cases")
	}
}
