package token

import (
	"fmt"
	"strings"
	"sync"
)

// Vocab is the tokenizer's part of a model file (spec engine.md 1.2), as it is in the file. The slices
// belong to the Tokenizer once it is made.
type Vocab struct {
	Pre    string   // tokenizer.ggml.pre: the splitting rule, `qwen2` or `qwen35`
	Tokens []string // spelling of each token, bytes mapped to printable code points
	Types  []int32  // type of each token: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
	Merges []string // "left right", lowest rank first

	EOS, Pad, BOS int32 // token ids, -1 for none

	Template string // tokenizer.chat_template, "" for none
}

// Token types of a model file.
const (
	typeNormal  = 1
	typeControl = 3
	typeUser    = 4
	typeLast    = 6
)

// maxTokens bounds a vocabulary; the largest that is known has 248,320.
const maxTokens = 1 << 24

// Tokenizer turns text into ids and ids into text. It is safe for concurrent use.
type Tokenizer struct {
	split    splitter
	tokens   []string
	types    []int32
	byteID   [256]int32
	merges   map[pair]merge
	special  specials
	stop     map[int32]bool
	template string
	cache    cache
	mergers  sync.Pool // of *merger
}

// stopNames are the tokens that end an answer beside the file's own end token. The last three don't
// belong into a conversation: a model that writes one is lost (spec engine.md 2.3).
var stopNames = [...]string{"<|im_end|>", "<|endoftext|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"}

// New checks a vocabulary and builds its tokenizer. Every error wraps ErrVocab.
//
// Beyond the sizes it insists on what encoding relies on: spellings are different from each other,
// each of the 256 bytes is a normal token, and the parts and the result of each merge are normal
// tokens too, so that no text merges into a special one.
func New(v Vocab) (*Tokenizer, error) {
	t := &Tokenizer{tokens: v.Tokens, types: v.Types, template: v.Template}
	t.mergers.New = func() any { return new(merger) }
	switch v.Pre {
	case "qwen2":
	case "qwen35":
		t.split.marks = true
	default:
		return nil, fmt.Errorf("%w: pre-tokenizer %q is unknown, want qwen2 or qwen35", ErrVocab, v.Pre)
	}
	ids, err := index(v)
	if err != nil {
		return nil, err
	}
	for b, r := range runeOf {
		id, ok := ids[string(r)]
		if !ok || v.Types[id] != typeNormal {
			return nil, fmt.Errorf("%w: byte 0x%02x has no token of normal type", ErrVocab, b)
		}
		t.byteID[b] = id
	}
	if t.merges, err = rank(v, ids); err != nil {
		return nil, err
	}
	t.special = newSpecials(v)
	t.stop = make(map[int32]bool)
	for _, name := range stopNames {
		if id, ok := t.special.ids[name]; ok {
			t.stop[id] = true
		}
	}
	if v.EOS >= 0 {
		t.stop[v.EOS] = true
	}
	return t, nil
}

// index checks the sizes, types and spellings and returns the id of each spelling.
func index(v Vocab) (map[string]int32, error) {
	if len(v.Tokens) == 0 || len(v.Tokens) > maxTokens {
		return nil, fmt.Errorf("%w: %d tokens, want 1 to %d", ErrVocab, len(v.Tokens), maxTokens)
	}
	if len(v.Types) != len(v.Tokens) {
		return nil, fmt.Errorf("%w: %d types for %d tokens", ErrVocab, len(v.Types), len(v.Tokens))
	}
	for _, named := range [...]struct {
		name string
		id   int32
	}{{"end", v.EOS}, {"padding", v.Pad}, {"start", v.BOS}} {
		if named.id < -1 || int64(named.id) >= int64(len(v.Tokens)) {
			return nil, fmt.Errorf("%w: %s token %d of %d", ErrVocab, named.name, named.id, len(v.Tokens))
		}
	}
	ids := make(map[string]int32, len(v.Tokens))
	for i, text := range v.Tokens {
		if text == "" {
			return nil, fmt.Errorf("%w: token %d is empty", ErrVocab, i)
		}
		if v.Types[i] < typeNormal || v.Types[i] > typeLast {
			return nil, fmt.Errorf("%w: token %d has type %d, want 1 to %d", ErrVocab, i, v.Types[i], typeLast)
		}
		if first, ok := ids[text]; ok {
			return nil, fmt.Errorf("%w: tokens %d and %d are both %q", ErrVocab, first, i, text)
		}
		ids[text] = int32(i)
	}
	return ids, nil
}

// rank reads the merges. Of a pair that comes twice the first counts.
func rank(v Vocab, ids map[string]int32) (map[pair]merge, error) {
	if len(v.Merges) > maxTokens {
		return nil, fmt.Errorf("%w: %d merges, at most %d allowed", ErrVocab, len(v.Merges), maxTokens)
	}
	normal := func(i int, text string) (int32, error) {
		id, ok := ids[text]
		if !ok || v.Types[id] != typeNormal {
			return 0, fmt.Errorf("%w: merge %d (%q): %q is no token of normal type", ErrVocab, i, v.Merges[i], text)
		}
		return id, nil
	}
	merges := make(map[pair]merge, len(v.Merges))
	var joined []byte
	for i, text := range v.Merges {
		left, right, ok := strings.Cut(text, " ")
		if !ok {
			return nil, fmt.Errorf("%w: merge %d (%q) has no space", ErrVocab, i, text)
		}
		l, err := normal(i, left)
		if err != nil {
			return nil, err
		}
		r, err := normal(i, right)
		if err != nil {
			return nil, err
		}
		joined = append(append(joined[:0], left...), right...)
		id, ok := ids[string(joined)]
		if !ok || v.Types[id] != typeNormal {
			_, err = normal(i, string(joined))
			return nil, err
		}
		p := pairOf(l, r)
		if _, ok := merges[p]; !ok {
			merges[p] = merge{rank: int32(i), id: id}
		}
	}
	return merges, nil
}

// Size is the number of tokens.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// Template is the file's chat template, "" when it has none.
func (t *Tokenizer) Template() string { return t.template }

// IsStop tells whether a token ends an answer.
func (t *Tokenizer) IsStop(id int32) bool { return t.stop[id] }

// Special returns the id of the control or user-defined token with this text.
func (t *Tokenizer) Special(text string) (id int32, ok bool) {
	id, ok = t.special.ids[text]
	return id, ok
}

// Text returns the text of a control or user-defined token, such as "<think>", which gives none when
// it is decoded, and "" for any other id.
func (t *Tokenizer) Text(id int32) string {
	if id < 0 || int(id) >= len(t.tokens) || !isSpecial(t.types[id]) {
		return ""
	}
	return t.tokens[id]
}

func isSpecial(kind int32) bool { return kind == typeControl || kind == typeUser }
