package compute

import (
	"context"
	"errors"
	"fmt"

	"pooled/compute/op"
)

// Shard is a range of a model's layers on a device, with what they remember.
type Shard struct {
	spec  ShardSpec
	model *Model
	bytes int64
	l     *loader // owns what was made

	// The programs; nil when the shard doesn't hold what they need.
	fromTokens passes // embedding, layers, and the head when all layers are here
	fromHidden passes // layers
	fromTail   passes // head only
	draft      *drafter
	past       past

	hidden []float32        // columns x width, handed out
	logits []float32        // columns x vocabulary, made when asked for
	tops   [][]op.Candidate // op.MaxCols lists
	out    op.Out
}

// passes are the narrow and the wide program of one graph; without a narrow one there is nothing, the wide one may be missing.
type passes struct{ narrow, wide op.Program }

// passes records a graph for both widths.
func (l *loader) passes(name string, record func(op.Builder)) passes {
	return passes{l.program(name, record), l.wide(name, record)}
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
		tops:   make([][]op.Candidate, op.MaxCols),
	}
	for i := range s.tops {
		s.tops[i] = make([]op.Candidate, 0, op.MaxTopK)
	}
	e := &ends{eps: m.graph.eps}
	if spec.Head {
		e.embed = l.weight(m.embed)
	}
	x := l.buffer("x", m.Width)
	layers, held := func(op.Builder) {}, m.graph.begin(l)
	if spec.Lo < spec.Hi {
		for i := spec.Lo; i < spec.Hi && l.err == nil; i++ {
			held.add(l, i)
		}
		layers = func(b op.Builder) { held.record(b, x) }
		s.fromHidden = l.passes(fmt.Sprintf("layers %d-%d", spec.Lo, spec.Hi), func(b op.Builder) {
			b.Input(x)
			layers(b)
			b.Output(x)
		})
	}
	if spec.Head {
		s.recordEnds(e, x, layers)
	}
	if spec.Draft != NoDraft {
		s.draft = newDrafter(l, held, e)
	}
	s.past = newPast(l)
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
	e.last, e.xn, e.logits = l.narrow("last", m.Width), l.narrow("last xn", m.Width), l.narrow("logits", m.Vocab)
	s.fromTokens = l.passes(fmt.Sprintf("tokens to layer %d", s.spec.Hi), func(b op.Builder) {
		b.Embed(x, e.embed)
		layers(b)
		b.Output(x)
		if s.spec.Hi == m.Layers {
			b.Tail(e.last, x)
			e.record(b)
		}
	})
	s.fromTail.narrow = l.program("head", func(b op.Builder) {
		b.Input(e.last)
		e.record(b)
	})
}

// Spec returns what the shard was loaded with.
func (s *Shard) Spec() ShardSpec { return s.spec }

// Bytes is the device memory that loading took: weights, caches, states and buffers. Slots come on top (see Control).
func (s *Shard) Bytes() int64 { return s.bytes }

// Close releases the device memory, newest first. Later calls fail; a second Close does nothing.
func (s *Shard) Close() {
	s.past.close()
	s.l.close()
	s.fromTokens, s.fromHidden, s.fromTail, s.draft = passes{}, passes{}, passes{}, nil
}

// columns is one call: n columns at pos through a graph, in pieces.
type columns struct {
	p      passes
	pos, n int
	tokens []int32   // n, or nil
	in     []float32 // n x width, or nil
	layers bool      // the columns are positions of the layers held
	spec   bool

	hidden []float32 // n x width, or nil
	logits []float32 // n x vocabulary, or nil
	k      int       // candidates: of every column when all, else of the last
	all    bool
	allow  []op.Mask // of these columns, or none
}

// run runs a call. Tops of column c are in s.tops[c], of the last alone in s.tops[0].
func (s *Shard) run(ctx context.Context, c columns) error {
	if c.layers {
		if err := s.past.enter(ctx, c.pos, c.n, c.spec); err != nil {
			return err
		}
	}
	for from := 0; from < c.n; {
		p, n := c.next(s.spec.Wide, c.n-from)
		if err := s.piece(ctx, p, &c, from, n); err != nil {
			if c.layers {
				s.past.lose()
			}
			return err
		}
		from += n
	}
	return nil
}

// next is the program for the next piece of a call of which rest columns are left, and how many columns it takes. A wide pass
// reads the weights once however many columns it has, so it is taken as soon as a narrow one would not do; but only a narrow one has
// the logits of all columns, and can be undone.
func (c *columns) next(wide, rest int) (op.Program, int) {
	if c.p.wide == nil || rest <= op.MaxCols || c.spec || c.all || c.logits != nil {
		return c.p.narrow, min(op.MaxCols, rest)
	}
	return c.p.wide, min(wide, rest)
}

// piece runs columns from to from+n-1 of a call.
func (s *Shard) piece(ctx context.Context, p op.Program, c *columns, from, n int) error {
	f := op.Frame{Pos: c.pos + from, N: n, HeadFrom: n, Spec: c.spec}
	s.out = op.Out{}
	var in []float32
	if c.tokens != nil {
		f.Tokens = c.tokens[from : from+n]
	}
	if c.in != nil {
		in = c.in[from*s.model.Width : (from+n)*s.model.Width]
	}
	if c.hidden != nil {
		s.out.Hidden = c.hidden[from*s.model.Width : (from+n)*s.model.Width]
	}
	switch {
	case c.logits != nil:
		f.HeadFrom = 0
		s.out.Logits = c.logits[from*s.model.Vocab : (from+n)*s.model.Vocab]
	case c.k > 0 && c.all:
		f.HeadFrom, f.Allow = 0, c.allow
		s.out.K, s.out.Top = min(c.k, s.model.Vocab), s.tops[:n]
	case c.k > 0 && from+n == c.n:
		f.HeadFrom, f.Allow = n-1, c.allow
		s.out.K, s.out.Top = min(c.k, s.model.Vocab), s.tops[:1]
	}
	if err := p.Run(ctx, f, in, &s.out); err != nil {
		return err
	}
	return s.allowed(f)
}

// allowed fails when a mask left nothing to pick from.
func (s *Shard) allowed(f op.Frame) error {
	for c := range f.Allow {
		if len(s.tops[c]) == 0 {
			return fmt.Errorf("compute: %w: position %d", ErrMask, f.Pos+f.HeadFrom+c)
		}
	}
	return nil
}

// Embed runs tokens at positions pos and up through the embedding and the shard's layers. The result is len(tokens) x
// width.
func (s *Shard) Embed(ctx context.Context, pos int, tokens []int32) ([]float32, error) {
	return s.embed(ctx, pos, tokens, false)
}

// EmbedSpec is Embed for a verify: at most op.MaxCols tokens, of which Control can undo all but the first.
func (s *Shard) EmbedSpec(ctx context.Context, pos int, tokens []int32) ([]float32, error) {
	if err := s.checkSpec(len(tokens)); err != nil {
		return nil, err
	}
	return s.embed(ctx, pos, tokens, true)
}

func (s *Shard) embed(ctx context.Context, pos int, tokens []int32, spec bool) ([]float32, error) {
	if err := s.check(s.fromTokens, "tokens", pos, len(tokens)); err != nil {
		return nil, err
	}
	hidden := s.columns(&s.hidden, len(tokens), s.model.Width)
	return hidden, s.run(ctx, columns{p: s.fromTokens, pos: pos, n: len(tokens), tokens: tokens, layers: true, spec: spec, hidden: hidden})
}

// EmbedTop is Embed followed by the head on the last token, in one run: the k best candidates, best first, fewer when
// the vocabulary is smaller or a mask allows fewer; none allowed is ErrMask. The shard must hold the whole model.
func (s *Shard) EmbedTop(ctx context.Context, pos int, tokens []int32, k int, allow ...op.Mask) ([]op.Candidate, error) {
	if err := errors.Join(s.checkWhole(pos, len(tokens)), checkTop(k)); err != nil {
		return nil, err
	}
	err := s.run(ctx, columns{p: s.fromTokens, pos: pos, n: len(tokens), tokens: tokens, layers: true, k: k, allow: allow})
	return s.tops[0], err
}

// EmbedLogits is EmbedTop for all columns with all logits: len(tokens) x vocabulary.
func (s *Shard) EmbedLogits(ctx context.Context, pos int, tokens []int32) ([]float32, error) {
	if err := s.checkWhole(pos, len(tokens)); err != nil {
		return nil, err
	}
	logits := s.columns(&s.logits, len(tokens), s.model.Vocab)
	return logits, s.run(ctx, columns{p: s.fromTokens, pos: pos, n: len(tokens), tokens: tokens, layers: true, logits: logits})
}

// Verify runs a token and the drafts behind it, at most op.MaxCols in all, through the whole model in one run: for each
// its hidden state behind the last layer (len(tokens) x width) and its k best candidates. Control can undo all but the
// first. Masks are one for each token, or none; they are for what follows it.
func (s *Shard) Verify(ctx context.Context, pos int, tokens []int32, k int, allow ...op.Mask) ([]float32, [][]op.Candidate, error) {
	n := len(tokens)
	if err := errors.Join(s.checkWhole(pos, n), s.checkSpec(n), checkTop(k)); err != nil {
		return nil, nil, err
	}
	hidden := s.columns(&s.hidden, n, s.model.Width)
	err := s.run(ctx, columns{p: s.fromTokens, pos: pos, n: n, tokens: tokens, layers: true, spec: true, hidden: hidden, k: k, all: true, allow: allow})
	return hidden, s.tops[:n], err
}

// Hidden runs n hidden states (in is n x width) at positions pos and up through the shard's layers.
func (s *Shard) Hidden(ctx context.Context, pos, n int, in []float32) ([]float32, error) {
	return s.through(ctx, pos, n, in, false)
}

// HiddenSpec is Hidden for a verify: at most op.MaxCols columns, of which Control can undo all but the first.
func (s *Shard) HiddenSpec(ctx context.Context, pos, n int, in []float32) ([]float32, error) {
	if err := s.checkSpec(n); err != nil {
		return nil, err
	}
	return s.through(ctx, pos, n, in, true)
}

func (s *Shard) through(ctx context.Context, pos, n int, in []float32, spec bool) ([]float32, error) {
	if err := s.check(s.fromHidden, "layers", pos, n); err != nil {
		return nil, err
	}
	if len(in) != n*s.model.Width {
		return nil, fmt.Errorf("compute: %w: %d values for %d hidden states of %d", ErrCall, len(in), n, s.model.Width)
	}
	hidden := s.columns(&s.hidden, n, s.model.Width)
	return hidden, s.run(ctx, columns{p: s.fromHidden, pos: pos, n: n, in: in, layers: true, spec: spec, hidden: hidden})
}

// Top runs the head on one hidden state and returns the k best candidates as EmbedTop does.
func (s *Shard) Top(ctx context.Context, hidden []float32, k int, allow ...op.Mask) ([]op.Candidate, error) {
	if len(hidden) > s.model.Width {
		return nil, fmt.Errorf("compute: %w: %d values for a hidden state of %d", ErrCall, len(hidden), s.model.Width)
	}
	tops, err := s.Tops(ctx, hidden, k, allow...)
	if tops == nil {
		return nil, err
	}
	return tops[0], err
}

// Tops is Top for each of up to op.MaxCols hidden states; masks are one for each, or none.
func (s *Shard) Tops(ctx context.Context, hidden []float32, k int, allow ...op.Mask) ([][]op.Candidate, error) {
	n := len(hidden) / s.model.Width
	if err := errors.Join(s.checkHead(hidden), checkTop(k)); err != nil {
		return nil, err
	}
	if n > op.MaxCols {
		return nil, fmt.Errorf("compute: %w: candidates of %d columns, at most %d", ErrCall, n, op.MaxCols)
	}
	err := s.run(ctx, columns{p: s.fromTail, n: n, in: hidden, k: k, all: true, allow: allow})
	return s.tops[:n], err
}

// HeadLogits runs the head on several hidden states (n x width): n x vocabulary logits.
func (s *Shard) HeadLogits(ctx context.Context, hidden []float32) ([]float32, error) {
	if err := s.checkHead(hidden); err != nil {
		return nil, err
	}
	n := len(hidden) / s.model.Width
	logits := s.columns(&s.logits, n, s.model.Vocab)
	return logits, s.run(ctx, columns{p: s.fromTail, n: n, in: hidden, logits: logits})
}

// columns returns n columns of width values of a slice that grows to what is asked for.
func (s *Shard) columns(of *[]float32, n, width int) []float32 {
	if len(*of) < n*width {
		*of = make([]float32, max(n, op.MaxCols)*width)
	}
	return (*of)[:n*width]
}
