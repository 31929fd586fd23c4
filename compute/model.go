package compute

import (
	"fmt"
	"math"
	"sync"

	"pooled/compute/gguf"
	"pooled/compute/op"
	"pooled/compute/token"
)

const (
	embedName = "token_embd.weight"
	normName  = "output_norm.weight"
	headName  = "output.weight"
	maxVocab  = 1 << 24
)

// Model is the header of a model file whose tensors were all checked.
type Model struct {
	Arch   string // general.architecture
	Name   string // general.name, "" when the file has none; from the file, so not fit for a screen as it is
	Layers int
	Width  int // values of one hidden state
	Vocab  int // rows of the embedding table
	CtxMax int // positions that the model was made for

	EmbedBytes int64 // the embedding table
	HeadBytes  int64 // the output matrix; 0 when tied
	DraftBytes int64 // the draft block; 0 for a model without one

	file       *gguf.File
	graph      *graph
	norm, head want // head is the embedding table when tied
	embed      want
	layerBytes []int64
	text       func() (*token.Tokenizer, error)
}

// OpenModel reads the header of a model and checks that every tensor its architecture needs is there, in shape and
// format. Errors wrap ErrArch, ErrModel or those of package gguf.
func OpenModel(parts ...gguf.Part) (*Model, error) {
	f, err := gguf.Open(parts...)
	if err != nil {
		return nil, err
	}
	m, err := newModel(f)
	if err != nil {
		name := "model"
		if len(parts) > 0 {
			name = parts[0].Name
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

func newModel(f *gguf.File) (*Model, error) {
	g, err := newGraph(f)
	if err != nil {
		return nil, err
	}
	m := &Model{
		Arch: f.Arch(), Name: f.StrOr("general.name", ""),
		Layers: g.layers, Width: g.width, CtxMax: g.ctxMax,
		file: f, graph: g, layerBytes: make([]int64, g.layers),
	}
	m.text = sync.OnceValues(m.tokenizer)
	if err := m.checkEnds(); err != nil {
		return nil, err
	}
	for i := range m.layerBytes {
		for _, w := range g.tensors(f, i) {
			t, err := w.find(f)
			if err != nil {
				return nil, err
			}
			m.layerBytes[i] += w.bytes(t)
		}
	}
	if err := m.checkDraft(); err != nil {
		return nil, err
	}
	return m, nil
}

// checkDraft checks the draft block's tensors.
func (m *Model) checkDraft() error {
	if !m.graph.draft {
		return nil
	}
	list, _ := m.draftTensors()
	for _, w := range list {
		t, err := w.find(m.file)
		if err != nil {
			return err
		}
		m.DraftBytes += w.bytes(t)
	}
	return nil
}

// Drafts says that the model has a draft block (spec engine.md 3.7).
func (m *Model) Drafts() bool { return m.graph.draft }

// Recurrent says that some layer has a state that can't be rewound: what is not at a checkpoint is read again.
func (m *Model) Recurrent() bool { return m.graph.recurrent(0, m.Layers) }

// StateBytes is the device memory of one layer's recurrent state; 0 for an attention layer.
func (m *Model) StateBytes(layer int) int64 {
	if layer < 0 || layer >= m.Layers {
		return 0
	}
	d, ok := m.graph.mixers[layer].(*deltanet)
	if !ok {
		return 0
	}
	return d.spec().Bytes() + d.spec().UndoBytes()
}

// checkEnds checks what is before the first and after the last layer. The embedding table says how many tokens there
// are.
func (m *Model) checkEnds() error {
	if t, ok := m.file.Tensor(embedName); ok && len(t.Dims) == 2 && t.Dims[1] <= maxVocab {
		m.Vocab = int(t.Dims[1])
	}
	m.embed = matrix(embedName, m.Width, m.Vocab)
	m.norm = vector(normName, m.Width)
	m.head = m.embed
	t, err := m.embed.find(m.file)
	if err != nil {
		return err
	}
	m.EmbedBytes = t.Bytes
	if _, err := m.norm.find(m.file); err != nil {
		return err
	}
	if _, own := m.file.Tensor(headName); !own {
		return nil
	}
	m.head.name = headName
	if t, err = m.head.find(m.file); err != nil {
		return err
	}
	m.HeadBytes = t.Bytes
	return nil
}

// Tied says that the embedding table is the output matrix too: a shard with both holds it once.
func (m *Model) Tied() bool { return m.head.name == m.embed.name }

// LayerBytes is the size of one layer's weights in the file; 0 for a layer that doesn't exist.
func (m *Model) LayerBytes(layer int) int64 {
	if layer < 0 || layer >= len(m.layerBytes) {
		return 0
	}
	return m.layerBytes[layer]
}

// KVPerPos is the cache's bytes per position and layer, keys and values together, averaged over the layers.
func (m *Model) KVPerPos(t op.KVType) int64 { return m.graph.kvPerPos(t) }

// Tokenizer reads the vocabulary from the file at the first call and keeps it.
func (m *Model) Tokenizer() (*token.Tokenizer, error) { return m.text() }

// Profile says how the model is talked to, from its chat template and its vocabulary.
func (m *Model) Profile() (token.Profile, error) {
	t, err := m.text()
	if err != nil {
		return token.Profile{}, err
	}
	return token.ProfileOf(m.file.StrOr("tokenizer.chat_template", ""), t), nil
}

func (m *Model) tokenizer() (*token.Tokenizer, error) { return readTokenizer(m.file, m.Vocab) }

// ReadTokenizer makes the tokenizer that a model file describes, also one without weights (spec engine.md 1.2).
func ReadTokenizer(f *gguf.File) (*token.Tokenizer, error) { return readTokenizer(f, maxVocab) }

// readTokenizer is ReadTokenizer for a table of that many rows.
func readTokenizer(f *gguf.File, rows int) (*token.Tokenizer, error) {
	const prefix = "tokenizer.ggml."
	if kind := f.StrOr(prefix+"model", ""); kind != "gpt2" {
		return nil, fmt.Errorf("%w: tokenizer model %.32q, only gpt2 is known", ErrModel, kind)
	}
	v := token.Vocab{Pre: f.StrOr(prefix+"pre", ""), Template: f.StrOr("tokenizer.chat_template", "")}
	var err error
	if v.Tokens, err = f.Strings(prefix + "tokens"); err != nil {
		return nil, err
	}
	if v.Merges, err = f.Strings(prefix + "merges"); err != nil {
		return nil, err
	}
	types, err := f.Ints(prefix + "token_type")
	if err != nil {
		return nil, err
	}
	for _, t := range types {
		v.Types = append(v.Types, int32(max(math.MinInt32, min(t, math.MaxInt32))))
	}
	if len(v.Tokens) > rows {
		return nil, fmt.Errorf("%w: %d tokens but %d rows in the embedding table", ErrModel, len(v.Tokens), rows)
	}
	id := func(name string) int32 { return tokenID(f, name, len(v.Tokens)) }
	v.EOS, v.Pad, v.BOS = id("eos"), id("padding"), id("bos")
	return token.New(v)
}

// tokenID reads one of the ids that the file names; -1 for none.
func tokenID(f *gguf.File, name string, size int) int32 {
	id, err := f.Uint("tokenizer.ggml." + name + "_token_id")
	if err != nil || id >= uint64(size) {
		return -1
	}
	return int32(id)
}
