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

// graph is what an architecture knows about a model: its sizes, its layers' tensors, and how to record them.
type graph interface {
	shape() shape
	// tensors lists what layer i needs, in the order it is loaded.
	tensors(layer int) []want
	// kvPerPos is the cache's bytes per position and layer, keys and values together, averaged over the layers.
	kvPerPos(t op.KVType) int64
	// begin makes the buffers and tables that the layers of one shard share.
	begin(l *loader) stack
}

// stack is the loaded layers of one shard, lowest first.
type stack interface {
	// load loads one more layer and makes its cache. Errors stay in the loader.
	load(l *loader, layer int)
	// record adds all layers to a program. x is read and written.
	record(b op.Builder, x op.Buffer)
}

// shape is what all architectures have in common.
type shape struct {
	layers int
	width  int     // values of a hidden state
	ctxMax int     // positions that the model was made for
	eps    float32 // of the final norm
}

// families is the table of architectures: general.architecture to the reader of its numbers.
var families = map[string]func(*gguf.File) (graph, error){
	"qwen3": newQwen3,
}

// newGraph reads the numbers of a model file.
func newGraph(f *gguf.File) (graph, error) {
	read, ok := families[f.Arch()]
	if !ok {
		return nil, fmt.Errorf("%w: %q (known: %s)", ErrArch, f.Arch(), strings.Join(Architectures(), ", "))
	}
	return read(f)
}

// Architectures lists the values of general.architecture that OpenModel takes.
func Architectures() []string { return slices.Sorted(maps.Keys(families)) }

// want is a tensor that a model must have. A vector has one dimension and is stored as F32.
type want struct {
	name string
	dims []int // ne0 first
}

// find returns the tensor, or an error that says what is wrong with it.
func (w want) find(f *gguf.File) (gguf.Tensor, error) {
	t, ok := f.Tensor(w.name)
	if !ok {
		return t, fmt.Errorf("%w: tensor %s is missing", ErrModel, w.name)
	}
	same := len(t.Dims) == len(w.dims)
	for i := 0; same && i < len(w.dims); i++ {
		same = t.Dims[i] == uint64(w.dims[i])
	}
	if !same {
		return t, fmt.Errorf("%w: tensor %s has shape %v, the model's numbers ask for %v", ErrModel, w.name, t.Dims, w.dims)
	}
	if len(w.dims) == 1 && t.Type != quant.F32 {
		return t, fmt.Errorf("%w: tensor %s is stored as %v, only F32 is known for it", ErrModel, w.name, t.Type)
	}
	if _, ok := t.Type.Format(); !ok {
		return t, fmt.Errorf("%w: tensor %s is stored as %v, which is not known", ErrModel, w.name, t.Type)
	}
	return t, nil
}

// numbers reads the keys of one architecture; the first error stays.
type numbers struct {
	f      *gguf.File
	prefix string
	err    error
}

func (n *numbers) fail(key, format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf("%w: key %s.%s: %s", ErrModel, n.prefix, key, fmt.Sprintf(format, args...))
	}
}

// count reads an integer from lo to hi.
func (n *numbers) count(key string, lo, hi int) int {
	v, err := n.f.Uint(n.prefix + "." + key)
	if err != nil && n.err == nil {
		n.err = fmt.Errorf("%w: %w", ErrModel, err)
	}
	if n.err == nil && (v < uint64(lo) || v > uint64(hi)) {
		n.fail(key, "%d is not between %d and %d", v, lo, hi)
	}
	if n.err != nil {
		return lo
	}
	return int(v)
}

// countOr is count with a value for a missing key.
func (n *numbers) countOr(key string, lo, hi, missing int) int {
	if !n.f.Has(n.prefix + "." + key) {
		return missing
	}
	return n.count(key, lo, hi)
}

// positive reads a float above 0 and at most hi.
func (n *numbers) positive(key string, hi float64) float64 {
	v, err := n.f.Float(n.prefix + "." + key)
	if err != nil && n.err == nil {
		n.err = fmt.Errorf("%w: %w", ErrModel, err)
	}
	if n.err == nil && !(v > 0 && v <= hi) {
		n.fail(key, "%g is not above 0 and at most %g", v, hi)
	}
	return v
}
