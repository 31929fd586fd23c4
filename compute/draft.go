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
	fill  passes     // hidden states and tokens to the cache, no more
	first op.Program // one hidden state and a token to candidates
	next  op.Program // the state that the last run left and a token to candidates
	ids   []int32    // handed out
	token [1]int32
	top   [1][]op.Candidate
	out   op.Out
}

// draftParts are the pieces that the three programs are recorded from.
type draftParts struct {
	g                 *graph
	e                 *ends
	mode              DraftMode
	eh, enorm, hnorm  op.Weight
	norm, embed, head op.Weight
	in, h, x, out     op.Buffer // the trunk's state, the state that is read, the block's, what the head reads
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
	s := &drafter{}
	s.top[0] = make([]op.Candidate, 0, 1)
	s.fill = l.passes("draft rows", func(b op.Builder) { d.pair(b, true); d.row(b) })
	s.first = l.program("first draft", func(b op.Builder) { d.pair(b, true); d.answer(b) })
	s.next = l.program("next draft", func(b op.Builder) { d.pair(b, false); d.answer(b) })
	return s
}

func (d *draftParts) buffers(l *loader) {
	n := d.g.width
	d.emb, d.embN, d.hN = l.buffer("draft token", n), l.buffer("draft token xn", n), l.buffer("draft state xn", n)
	d.both, d.h = l.buffer("draft pair", 2*n), l.buffer("draft state", n)
	if d.mode == DraftRaw {
		d.in, d.x, d.out = d.h, d.h, l.buffer("draft xn", n)
	} else {
		d.in, d.x, d.out = l.buffer("draft input", n), l.buffer("draft x", n), d.h
	}
}

// pair is steps 1 and 2 of spec engine.md 3.7; trunk says that the hidden state comes from the layers.
func (d *draftParts) pair(b op.Builder, trunk bool) {
	if trunk {
		b.Input(d.in)
		if d.in != d.h {
			b.RMSNorm(d.h, d.in, d.e.norm, d.g.eps)
		}
	}
	b.Embed(d.emb, d.embed)
	b.RMSNorm(d.embN, d.emb, d.enorm, d.g.eps)
	b.RMSNorm(d.hN, d.h, d.hnorm, d.g.eps)
	b.Concat(d.both, d.embN, d.hN)
	b.MatVec(d.x, d.eh, d.both)
}

// row is what later rows read of a row.
func (d *draftParts) row(b op.Builder) {
	b.RMSNorm(d.held.xn, d.x, d.block.norms[0], d.g.eps)
	d.keys(b, d.held.xn)
}

// answer is steps 3 and 4, and leaves the state for the next draft in h.
func (d *draftParts) answer(b op.Builder) {
	d.held.one(b, d.block, d.x)
	b.RMSNorm(d.out, d.x, d.norm, d.g.eps)
	b.MatVec(d.e.logits, d.head, d.out)
	b.Logits(d.e.logits)
}

// Draft gives the draft block the hidden states of positions pos and up, as the last layer left them (len(tokens) x
// width), with the token that follows each, and returns up to k tokens that may follow the last of them: fewer only at
// the end of the context, none when k is 0. Positions may be given again, exactly once the real states are known, and
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
		rows = n - 1
	}
	if err := s.run(ctx, columns{p: d.fill, pos: pos, n: rows, tokens: tokens[:rows], in: hidden[:rows*w]}); err != nil {
		return nil, err
	}
	d.ids = d.ids[:0]
	last := pos + n - 1
	k = min(k, s.spec.Ctx-last)
	for i := range k {
		p, in := d.next, []float32(nil)
		if i == 0 {
			p, in, d.token[0] = d.first, hidden[(n-1)*w:], tokens[n-1]
		}
		d.out = op.Out{K: 1, Top: d.top[:]}
		if err := p.Run(ctx, op.Frame{Pos: last + i, N: 1, Tokens: d.token[:]}, in, &d.out); err != nil {
			return nil, err
		}
		d.token[0] = d.top[0][0].ID
		d.ids = append(d.ids, d.token[0])
	}
	return d.ids, nil
}
