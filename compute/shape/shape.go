package shape

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pooled/compute/quant"
)

// ErrShape: no shape has that name, or not that many layers.
var ErrShape = errors.New("no such shape")

// Shape is what a model file is made from: the numbers of its header and the formats of its tensors.
type Shape struct {
	Name   string // the catalogue's key of the model
	Arch   string // general.architecture: qwen3, qwen35 or qwen35moe
	Layers int    // without the draft block
	Width  int    // values of a hidden state
	Vocab  int
	Ctx    int // positions that the model was made for
	Theta  float32

	Heads, KVHeads, Head, Rot int // of attention; Rot values of each head are rotated
	FF                        int // dense feed-forward width

	// Of qwen35 and qwen35moe.
	Interval                      int // every how many layers there is attention
	KeyHeads, ValueHeads, Dim     int // of DeltaNet
	Experts, Used, Expert, Shared int // their number, how many a token uses, and the widths of one and of the shared one
	Draft                         bool

	mix mix
}

// mix says which format a tensor has, by the middle of its name: blk.3.attn_q.weight is attn_q. Tensors that it does not
// name have the format rest; vectors are F32.
type mix struct {
	file        uint32 // general.file_type
	rest        quant.Type
	embed, head quant.Type // head is not used when tied
	tied        bool
	all         map[string]quant.Type
	early       map[string]quant.Type // in the first eighth of the layers
	draft       map[string]quant.Type
}

// Names lists the shapes, smallest first.
func Names() []string {
	var names []string
	for _, s := range shapes {
		names = append(names, s.Name)
	}
	return names
}

// Find returns the shape that typed means: its name, else the only one that typed is a part of. The error wraps ErrShape
// and lists the names.
func Find(typed string) (Shape, error) {
	name := strings.ToLower(strings.TrimSpace(typed))
	if to, ok := aliases[name]; ok {
		name = to
	}
	var hits []Shape
	for _, s := range shapes {
		if s.Name == name {
			return s, nil
		}
		if name != "" && strings.Contains(s.Name, name) {
			hits = append(hits, s)
		}
	}
	if len(hits) == 1 {
		return hits[0], nil
	}
	why := ""
	if len(hits) > 1 {
		why = " fits more than one"
	}
	return Shape{}, fmt.Errorf("%w: %.40q%s: the shapes are %s", ErrShape, typed, why, strings.Join(Names(), ", "))
}

// Scaled is the shape with that many layers; the draft block stays. The error wraps ErrShape.
func (s Shape) Scaled(layers int) (Shape, error) {
	if layers < 1 || layers > s.Layers {
		return s, fmt.Errorf("%w: %d layers of %s, which has 1 to %d", ErrShape, layers, s.Name, s.Layers)
	}
	s.Layers = layers
	return s, nil
}

// hybrid says that most layers are DeltaNet.
func (s *Shape) hybrid() bool { return s.Interval > 0 }

// recurrent says whether a layer is DeltaNet; the draft block, layer s.Layers, is attention.
func (s *Shape) recurrent(layer int) bool {
	return s.hybrid() && layer < s.Layers && (layer+1)%s.Interval != 0
}

// format of a tensor of a layer, by the middle of its name.
func (s *Shape) format(layer int, name string) quant.Type {
	maps := []map[string]quant.Type{s.mix.all}
	switch {
	case layer == s.Layers:
		maps = []map[string]quant.Type{s.mix.draft, s.mix.all}
	case layer < s.Layers/8:
		maps = []map[string]quant.Type{s.mix.early, s.mix.all}
	}
	i := slices.IndexFunc(maps, func(m map[string]quant.Type) bool { _, ok := m[name]; return ok })
	if i < 0 {
		return s.mix.rest
	}
	return maps[i][name]
}
