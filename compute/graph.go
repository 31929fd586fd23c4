package compute

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pooled/compute/gguf"
	"pooled/compute/op"
	"pooled/compute/quant"
)

// graph is what is known about a model: its sizes and the pieces of its layers. All architectures have one skeleton:
//
//	x += mixer(norm(x)); x += feedForward(norm(x))     for each layer
//
// where the mixer is attention or DeltaNet, and the feed-forward network is dense or a mixture of experts.
type graph struct {
	layers int     // without the draft block
	width  int     // values of a hidden state
	ctxMax int     // positions that the model was made for
	eps    float32 // of all norms
	norms  [2]string
	mixers []piece // one per layer; equal pieces are the same value
	ff     piece
	// attention is the mixer of attention layers, also of the draft block.
	attention *attention
	draft     bool // a draft block follows the layers
}

// piece is the part of a layer between a norm and the addition to x. Its numbers are the same in all layers.
type piece interface {
	// tensors lists what it needs of the layer whose tensors' names begin with prefix, in the order it is loaded.
	tensors(f *gguf.File, prefix string) []want
	// begin makes the buffers and tables that the layers of one shard share: layers run one after the other.
	begin(l *loader) held
}

// held is a piece on a device.
type held interface {
	// layer makes what one layer remembers between runs and returns how to record the layer's piece with weights w: it
	// reads xn and adds to x. Errors stay in the loader.
	layer(l *loader, name string, w []op.Weight) func(b op.Builder, x, xn op.Buffer)
}

// families is the table of architectures: general.architecture to the reader of its numbers.
var families = map[string]func(*gguf.File) (*graph, error){
	"qwen3":     newQwen3,
	"qwen35":    newQwen35,
	"qwen35moe": newQwen35,
}

// newGraph reads the numbers of a model file.
func newGraph(f *gguf.File) (*graph, error) {
	read, ok := families[f.Arch()]
	if !ok {
		return nil, fmt.Errorf("%w: %q (known: %s)", ErrArch, f.Arch(), strings.Join(Architectures(), ", "))
	}
	return read(f)
}

// Architectures lists the values of general.architecture that OpenModel takes.
func Architectures() []string { return slices.Sorted(maps.Keys(families)) }

// common reads the numbers that all architectures have.
func (g *graph) common(n *numbers) {
	blocks := n.count("block_count", 1, maxLayers)
	drafts := n.countOr("nextn_predict_layers", 0, maxLayers, 0)
	if n.err == nil && drafts >= blocks {
		n.fail("nextn_predict_layers", "%d of %d blocks", drafts, blocks)
	}
	g.layers, g.draft = max(1, blocks-drafts), drafts > 0
	g.width = n.count("embedding_length", 1, maxWidth)
	g.ctxMax = n.count("context_length", 1, maxCtx)
	g.eps = float32(n.positive("attention.layer_norm_rms_epsilon", 1))
	if scaling := n.f.StrOr(n.at("rope.scaling.type"), "none"); scaling != "none" {
		n.fail("rope.scaling.type", "%.32q is not supported", scaling)
	}
}

// mixer of block i; the draft block, if any, is block g.layers.
func (g *graph) mixer(i int) piece {
	if i < len(g.mixers) {
		return g.mixers[i]
	}
	return g.attention
}

func blockPrefix(i int) string { return fmt.Sprintf("blk.%d.", i) }

// tensors lists what block i needs, in the order it is loaded: a norm and the mixer, a norm and the feed-forward network.
func (g *graph) tensors(f *gguf.File, i int) []want {
	p := blockPrefix(i)
	list := append([]want{vector(p+g.norms[0]+".weight", g.width)}, g.mixer(i).tensors(f, p)...)
	list = append(list, vector(p+g.norms[1]+".weight", g.width))
	return append(list, g.ff.tensors(f, p)...)
}

// kvPerPos is the cache's bytes per position and layer, keys and values together, averaged over the layers, rounded up.
func (g *graph) kvPerPos(t op.KVType) int64 {
	var sum int64
	for _, m := range g.mixers {
		if a, ok := m.(*attention); ok {
			sum += a.kvPerPos(t)
		}
	}
	return (sum + int64(g.layers) - 1) / int64(g.layers)
}

// recurrent says whether layers lo to hi-1 have a state that can't be rewound.
func (g *graph) recurrent(lo, hi int) bool {
	return slices.ContainsFunc(g.mixers[lo:hi], func(m piece) bool { return m != piece(g.attention) })
}

// stack is the loaded layers of one shard, lowest first.
type stack struct {
	g      *graph
	xn     op.Buffer
	held   map[piece]held
	layers []block
}

// block is a loaded layer.
type block struct {
	norms     [2]op.Weight
	mixer, ff func(b op.Builder, x, xn op.Buffer)
}

func (g *graph) begin(l *loader) *stack {
	return &stack{g: g, xn: l.buffer("xn", g.width), held: make(map[piece]held)}
}

// of is a piece on the device, begun when it is first needed.
func (s *stack) of(l *loader, p piece) held {
	h, ok := s.held[p]
	if !ok {
		h = p.begin(l)
		s.held[p] = h
	}
	return h
}

// second is the place of the second norm among the tensors of block i.
func (s *stack) second(l *loader, i int) int {
	return 1 + len(s.g.mixer(i).tensors(l.model.file, blockPrefix(i)))
}

// add loads layer i behind the ones that are there and makes what it remembers. Errors stay in the loader.
func (s *stack) add(l *loader, i int) {
	var w []op.Weight
	for _, t := range s.g.tensors(l.model.file, i) {
		w = append(w, l.weight(t))
	}
	second, name := s.second(l, i), fmt.Sprint(i)
	s.layers = append(s.layers, block{
		norms: [2]op.Weight{w[0], w[second]},
		mixer: s.of(l, s.g.mixer(i)).layer(l, name, w[1:second]),
		ff:    s.of(l, s.g.ff).layer(l, name, w[second+1:]),
	})
}

// record adds all layers to a program. x is read and written.
func (s *stack) record(b op.Builder, x op.Buffer) {
	for _, k := range s.layers {
		s.one(b, k, x)
	}
}

func (s *stack) one(b op.Builder, k block, x op.Buffer) {
	b.RMSNorm(s.xn, x, k.norms[0], s.g.eps)
	k.mixer(b, x, s.xn)
	b.RMSNorm(s.xn, x, k.norms[1], s.g.eps)
	k.ff(b, x, s.xn)
}

// want is a tensor that a model must have. A vector has one dimension and is stored as F32.
type want struct {
	name string
	dims []int // ne0 first
	f32  bool  // only this format
	half int   // 1, 2: the first or second half of each expert's rows of a tensor that has twice as many
}

func vector(name string, n int) want { return want{name: name, dims: []int{n}, f32: true} }

func matrix(name string, cols, rows int) want { return want{name: name, dims: []int{cols, rows}} }

// inFile are the dimensions of the whole tensor.
func (w want) inFile() []int {
	if w.half == 0 {
		return w.dims
	}
	return []int{w.dims[0], 2 * w.dims[1], w.dims[2]}
}

// bytes is the size of what is wanted of tensor t.
func (w want) bytes(t gguf.Tensor) int64 {
	if w.half == 0 {
		return t.Bytes
	}
	return t.Bytes / 2
}

// find returns the tensor, or an error that says what is wrong with it.
func (w want) find(f *gguf.File) (gguf.Tensor, error) {
	t, ok := f.Tensor(w.name)
	if !ok {
		return t, fmt.Errorf("%w: tensor %s is missing", ErrModel, w.name)
	}
	dims := w.inFile()
	same := len(t.Dims) == len(dims)
	for i := 0; same && i < len(dims); i++ {
		same = t.Dims[i] == uint64(dims[i])
	}
	if !same {
		return t, fmt.Errorf("%w: tensor %s has shape %v, the model's numbers ask for %v", ErrModel, w.name, t.Dims, dims)
	}
	if w.f32 && t.Type != quant.F32 {
		return t, fmt.Errorf("%w: tensor %s is stored as %v, only F32 is known for it", ErrModel, w.name, t.Type)
	}
	if _, ok := t.Type.Format(); !ok {
		return t, fmt.Errorf("%w: tensor %s is stored as %v, which is not known", ErrModel, w.name, t.Type)
	}
	return t, nil
}
