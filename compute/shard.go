package compute

import (
	"context"
	"fmt"

	"pooled/compute/op"
)

// Shard is a range of a model's layers on a device, with their caches.
type Shard struct {
	spec  ShardSpec
	model *Model
	bytes int64
	l     *loader // owns what was made

	// The programs; nil when the shard doesn't hold what they need.
	fromTokens op.Program // embedding, layers, and the head when all layers are here
	fromHidden op.Program // layers
	fromTail   op.Program // head only

	hidden []float32        // op.MaxCols x width, handed out
	logits []float32        // op.MaxCols x vocabulary, made when asked for
	top    [][]op.Candidate // one list
	out    op.Out
}

// ends is what is before the first and after the last layer, on the device.
type ends struct {
	embed, norm, head op.Weight
	last, xn, logits  op.Buffer
	eps               float32
}

// record adds the head, which reads and keeps e.last.
func (e *ends) record(b op.Builder) {
	b.RMSNorm(e.xn, e.last, e.norm, e.eps)
	b.MatVec(e.logits, e.head, e.xn)
	b.Logits(e.logits)
}

// newShard loads weights and records the programs; errors stay in the loader.
func newShard(l *loader) *Shard {
	m, spec := l.model, l.spec
	s := &Shard{
		spec: spec, model: m, l: l,
		hidden: make([]float32, op.MaxCols*m.Width),
		top:    [][]op.Candidate{make([]op.Candidate, 0, op.MaxTopK)},
	}
	e := &ends{eps: m.graph.eps}
	if spec.Head {
		e.embed = l.weight(m.embed)
	}
	x := l.buffer("x", m.Width)
	layers := func(op.Builder) {}
	if spec.Lo < spec.Hi {
		held := m.graph.begin(l)
		for i := spec.Lo; i < spec.Hi && l.err == nil; i++ {
			held.add(l, i)
		}
		layers = func(b op.Builder) { held.record(b, x) }
		s.fromHidden = l.program(fmt.Sprintf("layers %d-%d", spec.Lo, spec.Hi), func(b op.Builder) {
			b.Input(x)
			layers(b)
			b.Output(x)
		})
	}
	if spec.Head {
		s.recordEnds(e, x, layers)
	}
	return s
}

// recordEnds loads the head and records the programs that begin with tokens and that end with logits. A tied model's
// head is the embedding table that is there already.
func (s *Shard) recordEnds(e *ends, x op.Buffer, layers func(op.Builder)) {
	l, m := s.l, s.model
	e.norm, e.head = l.weight(m.norm), e.embed
	if !m.Tied() {
		e.head = l.weight(m.head)
	}
	e.last, e.xn, e.logits = l.buffer("last", m.Width), l.buffer("last xn", m.Width), l.buffer("logits", m.Vocab)
	s.fromTokens = l.program(fmt.Sprintf("tokens to layer %d", s.spec.Hi), func(b op.Builder) {
		b.Embed(x, e.embed)
		layers(b)
		b.Output(x)
		if s.spec.Hi == m.Layers {
			b.Tail(e.last, x)
			e.record(b)
		}
	})
	s.fromTail = l.program("head", func(b op.Builder) {
		b.Input(e.last)
		e.record(b)
	})
}

// Spec returns what the shard was loaded with.
func (s *Shard) Spec() ShardSpec { return s.spec }

// Bytes is the device memory that loading took: weights, caches and buffers.
func (s *Shard) Bytes() int64 { return s.bytes }

// Close releases the device memory, newest first. Later calls fail; a second Close does nothing.
func (s *Shard) Close() {
	s.l.close()
	s.fromTokens, s.fromHidden, s.fromTail = nil, nil, nil
}

// Embed runs tokens at positions pos and up through the embedding and the shard's layers. The result is len(tokens) x
// width.
func (s *Shard) Embed(ctx context.Context, pos int, tokens []int32) ([]float32, error) {
	if err := s.check(s.fromTokens, "tokens", pos, len(tokens)); err != nil {
		return nil, err
	}
	s.out = op.Out{Hidden: s.hidden[:len(tokens)*s.model.Width]}
	f := op.Frame{Pos: pos, N: len(tokens), HeadFrom: len(tokens), Tokens: tokens}
	return s.out.Hidden, s.fromTokens.Run(ctx, f, nil, &s.out)
}

// EmbedTop is Embed followed by the head on the last token, in one run: the k best candidates, best first, fewer when
// the vocabulary is smaller. The shard must hold the whole model.
func (s *Shard) EmbedTop(ctx context.Context, pos int, tokens []int32, k int) ([]op.Candidate, error) {
	if err := s.checkWhole(pos, len(tokens)); err != nil {
		return nil, err
	}
	f := op.Frame{Pos: pos, N: len(tokens), HeadFrom: len(tokens) - 1, Tokens: tokens}
	return s.best(ctx, s.fromTokens, f, nil, k)
}

// EmbedLogits is EmbedTop for all columns with all logits: len(tokens) x vocabulary.
func (s *Shard) EmbedLogits(ctx context.Context, pos int, tokens []int32) ([]float32, error) {
	if err := s.checkWhole(pos, len(tokens)); err != nil {
		return nil, err
	}
	return s.all(ctx, s.fromTokens, op.Frame{Pos: pos, N: len(tokens), Tokens: tokens}, nil)
}

// Hidden runs n hidden states (in is n x width) at positions pos and up through the shard's layers.
func (s *Shard) Hidden(ctx context.Context, pos, n int, in []float32) ([]float32, error) {
	if err := s.check(s.fromHidden, "layers", pos, n); err != nil {
		return nil, err
	}
	if len(in) != n*s.model.Width {
		return nil, fmt.Errorf("compute: %w: %d values for %d hidden states of %d", ErrCall, len(in), n, s.model.Width)
	}
	s.out = op.Out{Hidden: s.hidden[:n*s.model.Width]}
	return s.out.Hidden, s.fromHidden.Run(ctx, op.Frame{Pos: pos, N: n, HeadFrom: n}, in, &s.out)
}

// Top runs the head on one hidden state and returns the k best candidates as EmbedTop does.
func (s *Shard) Top(ctx context.Context, hidden []float32, k int) ([]op.Candidate, error) {
	if err := s.check(s.fromTail, "head", 0, 1); err != nil {
		return nil, err
	}
	if len(hidden) != s.model.Width {
		return nil, fmt.Errorf("compute: %w: %d values for a hidden state of %d", ErrCall, len(hidden), s.model.Width)
	}
	return s.best(ctx, s.fromTail, op.Frame{N: 1}, hidden, k)
}

// HeadLogits runs the head on several hidden states (n x width): n x vocabulary logits.
func (s *Shard) HeadLogits(ctx context.Context, hidden []float32) ([]float32, error) {
	n := len(hidden) / s.model.Width
	if err := s.check(s.fromTail, "head", 0, n); err != nil {
		return nil, err
	}
	if len(hidden) != n*s.model.Width {
		return nil, fmt.Errorf("compute: %w: %d values for hidden states of %d", ErrCall, len(hidden), s.model.Width)
	}
	return s.all(ctx, s.fromTail, op.Frame{N: n}, hidden)
}

func (s *Shard) best(ctx context.Context, p op.Program, f op.Frame, in []float32, k int) ([]op.Candidate, error) {
	if k < 1 || k > op.MaxTopK {
		return nil, fmt.Errorf("compute: %w: %d candidates, 1 to %d allowed", ErrCall, k, op.MaxTopK)
	}
	s.out = op.Out{K: min(k, s.model.Vocab), Top: s.top}
	err := p.Run(ctx, f, in, &s.out)
	return s.top[0], err
}

func (s *Shard) all(ctx context.Context, p op.Program, f op.Frame, in []float32) ([]float32, error) {
	if s.logits == nil {
		s.logits = make([]float32, op.MaxCols*s.model.Vocab)
	}
	s.out = op.Out{Logits: s.logits[:f.N*s.model.Vocab]}
	return s.out.Logits, p.Run(ctx, f, in, &s.out)
}

func (s *Shard) checkWhole(pos, n int) error {
	if s.spec.Head && s.spec.Hi < s.model.Layers {
		return fmt.Errorf("compute: %w: layers %d-%d are elsewhere", ErrCall, s.spec.Hi, s.model.Layers)
	}
	return s.check(s.fromTokens, "tokens", pos, n)
}

// check fails unless program p is there and n columns at pos fit.
func (s *Shard) check(p op.Program, what string, pos, n int) error {
	switch {
	case p == nil:
		return fmt.Errorf("compute: %w: nothing loaded for %s", ErrCall, what)
	case n < 1 || n > op.MaxCols:
		return fmt.Errorf("compute: %w: %d columns, 1 to %d allowed", ErrCall, n, op.MaxCols)
	case pos < 0 || pos > s.spec.Ctx-n:
		return fmt.Errorf("compute: %w: positions %d to %d, the context has %d", ErrCall, pos, pos+n-1, s.spec.Ctx)
	}
	return nil
}
