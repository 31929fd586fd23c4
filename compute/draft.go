package compute

import (
	"context"
	"fmt"

	"pooled/compute/op"
)

// DraftMode says which hidden state the draft block reads (spec engine.md 3.7). It changes how many drafts are accepted,
// never an answer.
type DraftMode uint8

// The ways to draft.
const (
	NoDraft   DraftMode = iota // the draft block is not loaded
	DraftNorm                  // states behind a norm: the final one, then the draft block's own
	DraftRaw                   // states as the layers left them
)

const (
	draftEmbed = "nextn.embed_tokens.weight"
	draftHead  = "nextn.shared_head_head.weight"
	draftNorm  = "nextn.shared_head_norm.weight"
)

// draftTensors lists what the draft block needs beside the model's ends, in the order it is loaded: its own three, a
// layer's, and those of the optional three that the file has (own).
func (m *Model) draftTensors() (list []want, own map[string]bool) {
	g, p := m.graph, blockPrefix(m.graph.layers)
	list = append([]want{
		matrix(p+"nextn.eh_proj.weight", 2*g.width, g.width),
		vector(p+"nextn.enorm.weight", g.width),
		vector(p+"nextn.hnorm.weight", g.width),
	}, g.tensors(m.file, g.layers)...)
	own = make(map[string]bool)
	for _, w := range []want{vector(p+draftNorm, g.width), matrix(p+draftEmbed, g.width, m.Vocab), matrix(p+draftHead, g.width, m.Vocab)} {
		if has(m.file, w.name) {
			list = append(list, w)
			own[w.name[len(p):]] = true
		}
	}
	return list, own
}

// drafter is the draft block on a device. Row p of its cache pairs the hidden state of position p with the token that
// follows.
type drafter struct {
	fill  passes         // hidden states and tokens to the cache, no more
	whole draftPrograms  // drafts from all tokens
	few   *draftPrograms // from the first ones only; nil: the vocabulary has no more
	vocab draftVocab     // says which
	asked int            // drafts that were handed out last
	ids   [op.MaxCols]int32
}

// draftPrograms are the programs that end in candidates.
type draftPrograms struct {
	one     op.Program // a hidden state and a token to candidates
	several op.Program // the same behind earlier ones, which go to the cache
	next    op.Program // the state that the last run left and a token to candidates
}

// draftParts are the pieces that the three programs are recorded from.
type draftParts struct {
	g                 *graph
	e                 *ends
	mode              DraftMode
	eh, enorm, hnorm  op.Weight
	norm, embed, head op.Weight
	in, h, x, out     op.Buffer // the trunk's state, the state that is read, the block's, what the head reads
	last, state       op.Buffer // the block's of the last column, the state that it leaves for the next draft
	few               op.Buffer // logits of the first tokens, or nil
	emb, embN         op.Buffer
	hN, both          op.Buffer
	held              *stack
	block             block
	keys              func(b op.Builder, xn op.Buffer)
}

func newDrafter(l *loader, held *stack, e *ends) *drafter {
	m, g := l.model, l.model.graph
	d := &draftParts{g: g, e: e, mode: l.spec.Draft, held: held, norm: e.norm, embed: e.embed, head: e.head}
	list, own := m.draftTensors()
	var w []op.Weight
	for _, t := range list {
		w = append(w, l.weight(t))
	}
	d.eh, d.enorm, d.hnorm, w = w[0], w[1], w[2], w[3:]
	n := len(g.tensors(m.file, g.layers))
	second := held.second(l, g.layers)
	att := held.of(l, g.attention).(*heldAttention)
	cache := att.cache(l, "draft")
	d.keys = func(b op.Builder, xn op.Buffer) { att.keys(b, w[1:], cache, xn) }
	d.block = block{
		norms: [2]op.Weight{w[0], w[second]},
		mixer: func(b op.Builder, x, xn op.Buffer) { att.record(b, w[1:], cache, x, xn) },
		ff:    held.of(l, g.ff).layer(l, "draft", w[second+1:n]),
	}
	rest := w[n:]
	for _, optional := range []struct {
		name string
		to   *op.Weight
	}{{draftNorm, &d.norm}, {draftEmbed, &d.embed}, {draftHead, &d.head}} {
		if own[optional.name] {
			*optional.to, rest = rest[0], rest[1:]
		}
	}
	d.buffers(l)
	s := &drafter{vocab: newDraftVocab(l.spec, m)}
	s.fill = l.passes("draft rows", func(b op.Builder) { d.trunk(b); d.row(b) })
	s.whole = d.programs(l, "", func(b op.Builder) {
		b.MatVec(e.logits, d.head, d.out)
		b.Logits(e.logits)
	})
	if s.vocab.rows < m.Vocab {
		d.few = l.narrow("draft logits", s.vocab.rows)
		few := d.programs(l, " of few", func(b op.Builder) {
			b.MatVecRows(d.few, d.head, d.out)
			b.Logits(d.few)
		})
		s.few = &few
	}
	return s
}

// programs are the ones that end in a head.
func (d *draftParts) programs(l *loader, name string, head func(op.Builder)) draftPrograms {
	first := func(several bool) func(op.Builder) {
		return func(b op.Builder) {
			d.trunk(b)
			if several {
				d.row(b)
			}
			b.Tail(d.last, d.x)
			d.answer(b)
			head(b)
		}
	}
	return draftPrograms{
		one:     l.program("first draft"+name, first(false)),
		several: l.program("first draft after rows"+name, first(true)),
		next: l.program("next draft"+name, func(b op.Builder) {
			d.pair(b, d.state, d.last)
			d.answer(b)
			head(b)
		}),
	}
}

func (d *draftParts) buffers(l *loader) {
	n := d.g.width
	d.emb, d.embN, d.hN = l.buffer("draft token", n), l.buffer("draft token xn", n), l.buffer("draft state xn", n)
	d.both, d.h = l.buffer("draft pair", 2*n), l.buffer("draft state", n)
	d.last = l.narrow("draft last", n)
	if d.mode == DraftRaw {
		d.in, d.x, d.out, d.state = d.h, d.h, l.narrow("draft xn", n), d.last
		return
	}
	d.in, d.x = l.buffer("draft input", n), l.buffer("draft x", n)
	d.out = l.narrow("draft xn", n)
	d.state = d.out
}

// trunk takes hidden states from the layers.
func (d *draftParts) trunk(b op.Builder) {
	b.Input(d.in)
	if d.in != d.h {
		b.RMSNorm(d.h, d.in, d.e.norm, d.g.eps)
	}
	d.pair(b, d.h, d.x)
}

// pair is steps 1 and 2 of spec engine.md 3.7, from a hidden state to the block's.
func (d *draftParts) pair(b op.Builder, h, x op.Buffer) {
	b.Embed(d.emb, d.embed)
	b.RMSNorm(d.embN, d.emb, d.enorm, d.g.eps)
	b.RMSNorm(d.hN, h, d.hnorm, d.g.eps)
	b.Concat(d.both, d.embN, d.hN)
	b.MatVec(x, d.eh, d.both)
}

// row is what later rows read of a row.
func (d *draftParts) row(b op.Builder) {
	b.RMSNorm(d.held.xn, d.x, d.block.norms[0], d.g.eps)
	d.keys(b, d.held.xn)
}

// answer is step 3 and the norm of step 4, and leaves the state for the next draft.
func (d *draftParts) answer(b op.Builder) {
	d.held.one(b, d.block, d.last)
	b.RMSNorm(d.out, d.last, d.norm, d.g.eps)
}

// Draft gives the draft block the hidden states of positions pos and up, as the last layer left them (len(tokens) x
// width), with the token that follows each, and returns up to k tokens that may follow the last of them: fewer only at
// the end of the context or above op.MaxCols, none when k is 0. Positions may be given again, exactly once the real states are known, and
// may leave gaps: that costs accepted drafts, nothing else.
func (s *Shard) Draft(ctx context.Context, pos int, hidden []float32, tokens []int32, k int) ([]int32, error) {
	d, n, w := s.draft, len(tokens), s.model.Width
	if d == nil {
		return nil, fmt.Errorf("compute: %w: no draft block is loaded", ErrCall)
	}
	if err := s.check(d.fill, "drafts", pos, n); err != nil {
		return nil, err
	}
	if len(hidden) != n*w || k < 0 {
		return nil, fmt.Errorf("compute: %w: %d values for %d hidden states of %d, %d drafts", ErrCall, len(hidden), n, w, k)
	}
	rows := n
	if k > 0 {
		rows = n - min(n, op.MaxCols)
	}
	if err := s.run(ctx, columns{p: d.fill, pos: pos, n: rows, tokens: tokens[:rows], in: hidden[:rows*w]}); err != nil {
		return nil, err
	}
	if k == 0 {
		return nil, nil
	}
	d.note(tokens)
	h := &d.whole
	if d.few != nil && !d.vocab.off {
		h = d.few
	}
	p := h.several
	if n-rows == 1 {
		p = h.one
	}
	ids := d.ids[:min(k, s.spec.Ctx-(pos+n-1), op.MaxCols)]
	f := op.Frame{Pos: pos + rows, N: n - rows, HeadFrom: n - rows - 1, Tokens: tokens[rows:]}
	if err := p.Chain(ctx, f, hidden[rows*w:], h.next, ids); err != nil {
		return nil, err
	}
	d.asked = len(ids)
	return ids, nil
}
