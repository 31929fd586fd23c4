package shape

import (
	"fmt"
	"math"

	"pooled/compute/quant"
)

// Tensor is one tensor of a shape.
type Tensor struct {
	Name string
	Dims []int // ne0, the contiguous one, first
	Type quant.Type

	values values
}

// cols and rows of the tensor seen as a matrix.
func (t *Tensor) cols() int { return t.Dims[0] }

func (t *Tensor) rows() int {
	n := 1
	for _, d := range t.Dims[1:] {
		n *= d
	}
	return n
}

// Bytes is the size of its data.
func (t *Tensor) Bytes() (int64, error) {
	n, err := quant.Bytes(t.Type, t.cols(), t.rows())
	if err != nil {
		return 0, fmt.Errorf("shape: tensor %s: %w", t.Name, err)
	}
	return n, nil
}

// Gains over a standard deviation of 1/sqrt(columns) (spec engine.md 9.1).
const (
	embedGain  = 4
	headGain   = 3
	routerGain = 2
	headNorm   = 1.5 // of the norms of queries and keys
)

// Tensors lists the tensors in file order (spec engine.md 1.3).
func (s *Shape) Tensors() []Tensor {
	l := &list{s: s}
	l.global("token_embd.weight", s.mix.embed, normal(embedGain, s.Width), s.Width, s.Vocab)
	for i := range s.Layers {
		l.layer = i
		l.block()
	}
	l.global("output_norm.weight", quant.F32, around(1), s.Width)
	if !s.mix.tied {
		l.global("output.weight", s.mix.head, normal(headGain, s.Width), s.Width, s.Vocab)
	}
	if s.Draft {
		l.layer = s.Layers
		l.matrix("nextn.eh_proj", 2*s.Width, s.Width)
		l.vector("nextn.enorm.weight", around(1), s.Width)
		l.vector("nextn.hnorm.weight", around(1), s.Width)
		l.vector("nextn.shared_head_norm.weight", around(1), s.Width)
		l.block()
	}
	return l.tensors
}

// list is the tensors of a shape so far; layer is the block that is being added.
type list struct {
	s       *Shape
	layer   int
	tensors []Tensor
}

func (l *list) global(name string, t quant.Type, v values, dims ...int) {
	l.tensors = append(l.tensors, Tensor{Name: name, Dims: dims, Type: t, values: v})
}

// vector adds an F32 vector of the block; name is all that follows blk.N.
func (l *list) vector(name string, v values, dims ...int) {
	l.global(fmt.Sprintf("blk.%d.%s", l.layer, name), quant.F32, v, dims...)
}

// matrix adds a matrix, or one per expert, in the format that the shape has for it.
func (l *list) matrix(name string, dims ...int) { l.weighted(name, 1, dims...) }

func (l *list) weighted(name string, gain float64, dims ...int) {
	full := fmt.Sprintf("blk.%d.%s.weight", l.layer, name)
	l.global(full, l.s.format(l.layer, name), normal(gain, dims[0]), dims...)
}

// block adds a layer, or the draft block's.
func (l *list) block() {
	s := l.s
	l.vector("attn_norm.weight", around(1), s.Width)
	if s.recurrent(l.layer) {
		l.deltanet()
	} else {
		l.attention()
	}
	second := "ffn_norm.weight"
	if s.hybrid() {
		second = "post_attention_norm.weight"
	}
	l.vector(second, around(1), s.Width)
	if s.Experts > 0 {
		l.experts()
		return
	}
	l.matrix("ffn_gate", s.Width, s.FF)
	l.matrix("ffn_up", s.Width, s.FF)
	l.matrix("ffn_down", s.FF, s.Width)
}

func (l *list) attention() {
	s := l.s
	q, kv := s.Heads*s.Head, s.KVHeads*s.Head
	rows := q
	if s.hybrid() {
		rows = 2 * q // each head's queries, then its gate
	}
	l.matrix("attn_q", s.Width, rows)
	l.matrix("attn_k", s.Width, kv)
	l.matrix("attn_v", s.Width, kv)
	l.vector("attn_q_norm.weight", around(headNorm), s.Head)
	l.vector("attn_k_norm.weight", around(headNorm), s.Head)
	l.matrix("attn_output", q, s.Width)
}

func (l *list) deltanet() {
	s := l.s
	inner := s.ValueHeads * s.Dim
	channels := 2*s.KeyHeads*s.Dim + inner
	l.matrix("attn_qkv", s.Width, channels)
	l.matrix("attn_gate", s.Width, inner)
	l.vector("ssm_conv1d.weight", values{normalValues, 0.5}, taps, channels)
	l.matrix("ssm_alpha", s.Width, s.ValueHeads)
	l.matrix("ssm_beta", s.Width, s.ValueHeads)
	l.vector("ssm_dt.bias", values{normalValues, 0.5}, s.ValueHeads)
	l.vector("ssm_a", values{kind: decays}, s.ValueHeads)
	l.vector("ssm_norm.weight", around(1), s.Dim)
	l.matrix("ssm_out", inner, s.Width)
}

func (l *list) experts() {
	s := l.s
	l.weighted("ffn_gate_inp", routerGain, s.Width, s.Experts)
	l.matrix("ffn_gate_exps", s.Width, s.Expert, s.Experts)
	l.matrix("ffn_up_exps", s.Width, s.Expert, s.Experts)
	l.matrix("ffn_down_exps", s.Expert, s.Width, s.Experts)
	l.matrix("ffn_gate_inp_shexp", s.Width)
	l.matrix("ffn_gate_shexp", s.Width, s.Shared)
	l.matrix("ffn_up_shexp", s.Width, s.Shared)
	l.matrix("ffn_down_shexp", s.Shared, s.Width)
}

// values says what the numbers of a tensor are like.
type values struct {
	kind  kind
	scale float32
}

type kind uint8

const (
	normalValues kind = iota // a bell of standard deviation scale
	nearValues               // within a tenth of scale
	decays                   // -exp(u), u between -2 and 1 (spec engine.md 9.1)
)

// normal is a matrix of rows of cols values.
func normal(gain float64, cols int) values {
	return values{normalValues, float32(gain / math.Sqrt(float64(cols)))}
}

// around is a norm's weights.
func around(v float32) values { return values{nearValues, v} }
