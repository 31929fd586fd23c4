package compute

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pooled/compute/op"
)

// Request is a text to be continued by a shard that holds the whole model. It is what a room does across devices (spec
// room.md 5.3 to 5.6), for one device, without its checkpoints.
type Request struct {
	Tokens  []int32 // all tokens so far; at least one of them is not read yet
	Read    int     // tokens that the shard has read already; 0 starts anew
	Max     int     // new tokens
	Sampler *Sampler
	Stop    func(id int32) bool          // nil: nothing stops
	Allow   func(tokens []int32) op.Mask // which tokens may follow all tokens so far; nil: any
	Emit    func(id int32)               // gets each new token at once; nil: nobody does

	Draft  bool   // let the draft block propose; the shard must have it
	Lookup bool   // propose what followed an earlier copy
	Depth  *Depth // how many the draft block proposes; nil: always 3
	Pace   *Pace  // whether a step has proposals; nil: whenever there are some
	Chunk  int    // prompt tokens per call; 0: 256
}

// Generated is what came of a request.
type Generated struct {
	Tokens   []int32 // new ones, without the stop token
	Reason   string  // "stop", "max", or "ctx" at the end of the context
	Read     int     // tokens of the request and of Tokens that the shard has read
	Steps    int     // runs after the prompt
	Prefill  time.Duration
	Decode   time.Duration
	Drafts   Tally // of the draft block
	Lookups  Tally
	Proposed int // tokens proposed in all
}

// Tally counts proposals.
type Tally struct{ Proposed, Accepted int }

const (
	chunkDefault  = 256
	lookupUseful  = 2   // fewer tokens are left to the draft block
	contextMargin = 2   // positions that stay free (spec room.md 5.3)
	holdMost      = 256 // hidden states that wait for the draft block
)

// lookups is how many tokens a lookup proposes at most, and after one that was accepted in full (spec room.md 5.6). A
// verify is never op.MaxCols wide (spec engine.md 6.3).
func (m *Model) lookups() (few, many int) {
	if m.Drafts() {
		return 7, 14
	}
	return 3, 7
}

// generation is a request under way.
type generation struct {
	Request
	s      *Shard
	r      *Generated
	all    []int32 // the request's tokens and the new ones; the last is not read yet
	pos    int     // tokens read
	drafts int     // tokens that the next lookup may propose

	// What the draft block has not been given yet: the hidden states of follows positions from at on. The tokens behind them are in
	// all.
	at      int
	hidden  []float32
	follows int
}

// Generate continues a text. Which tokens come out does not depend on Draft, Lookup and Depth: what is proposed is only
// kept where the sampler picks the same.
func (s *Shard) Generate(ctx context.Context, q Request) (*Generated, error) {
	switch {
	case q.Read < 0 || q.Read >= len(q.Tokens) || q.Sampler == nil || q.Max < 0:
		return nil, fmt.Errorf("compute: %w: %d tokens, %d of them read, %d more", ErrCall, len(q.Tokens), q.Read, q.Max)
	case len(q.Tokens) > s.spec.Ctx:
		return nil, fmt.Errorf("compute: %w", &ContextError{len(q.Tokens), s.spec.Ctx})
	case q.Draft && s.draft == nil:
		return nil, fmt.Errorf("compute: %w: no draft block is loaded", ErrCall)
	}
	if q.Chunk < 1 {
		q.Chunk = chunkDefault
	}
	if q.Depth == nil {
		q.Depth = &Depth{}
	}
	g := &generation{Request: q, s: s, r: &Generated{}, all: append([]int32(nil), q.Tokens...), pos: q.Read}
	g.drafts, _ = s.model.lookups()
	start := time.Now()
	top, err := g.prefill(ctx)
	if err != nil {
		return nil, err
	}
	g.r.Prefill = time.Since(start)
	start = time.Now()
	next := g.Sampler.Next(top)
	for more := g.take(next); more; {
		if more, err = g.step(ctx); err != nil {
			return nil, err
		}
	}
	g.r.Decode, g.r.Read = time.Since(start), g.pos
	return g.r, nil
}

// prefill reads the prompt and returns the candidates after it.
func (g *generation) prefill(ctx context.Context) ([]op.Candidate, error) {
	for {
		n := min(g.Chunk, len(g.all)-g.pos)
		tokens, last := g.all[g.pos:g.pos+n], g.pos+n == len(g.all)
		if !g.Draft && last {
			g.pos += n
			return g.s.EmbedTop(ctx, g.pos-n, tokens, g.Sampler.K(), g.masks(nil)...)
		}
		hidden, err := g.s.Embed(ctx, g.pos, tokens)
		if err != nil {
			return nil, err
		}
		g.pos += n
		if !g.Draft {
			continue
		}
		g.hold(g.pos-n, n, hidden)
		if last {
			w := g.s.model.Width
			return g.s.Top(ctx, hidden[(n-1)*w:], g.Sampler.K(), g.masks(nil)...)
		}
		if _, err := g.propose(ctx, 0); err != nil {
			return nil, err
		}
	}
}

// take adds a new token and says whether more are wanted.
func (g *generation) take(id int32) bool {
	if g.Stop != nil && g.Stop(id) {
		g.r.Reason = "stop"
		return false
	}
	if len(g.r.Tokens) >= g.Max {
		g.r.Reason = "max"
		return false
	}
	g.all = append(g.all, id)
	g.r.Tokens = append(g.r.Tokens, id)
	if g.Emit != nil {
		g.Emit(id)
	}
	if len(g.r.Tokens) >= g.Max {
		g.r.Reason = "max"
		return false
	}
	return true
}

// hold keeps hidden states of n positions from pos on for the draft block. Where states between are missing it starts anew: a gap
// costs accepted drafts only.
func (g *generation) hold(pos, n int, hidden []float32) {
	if pos != g.at+g.follows {
		g.at, g.follows, g.hidden = pos, 0, g.hidden[:0]
	}
	g.hidden = append(g.hidden, hidden[:n*g.s.model.Width]...)
	g.follows += n
}

// propose gives the draft block what it has not seen and asks it for k tokens.
func (g *generation) propose(ctx context.Context, k int) ([]int32, error) {
	n := g.follows
	if n == 0 {
		return nil, nil
	}
	at := g.at
	g.at, g.follows = at+n, 0
	drafts, err := g.s.Draft(ctx, at, g.hidden, g.all[at+1:at+1+n], k)
	g.hidden = g.hidden[:0]
	return drafts, err
}

// proposal is what a step proposes, and who did.
type proposal struct {
	tokens []int32
	depth  int // drafts that the block was asked for; 0: looked up, or nothing
}

// proposal asks for at most most tokens.
func (g *generation) proposal(ctx context.Context, most int) (p proposal, err error) {
	if g.follows >= holdMost {
		if _, err := g.propose(ctx, 0); err != nil {
			return p, err
		}
	}
	if g.Pace != nil && !g.Pace.Propose() {
		return p, nil
	}
	if g.Lookup {
		if p.tokens = Lookup(g.all, min(g.drafts, most)); len(p.tokens) >= lookupUseful || !g.Draft {
			return p, nil
		}
	}
	if g.Draft {
		p.depth = min(g.Depth.Next(), most, op.MaxCols-1)
		p.tokens, err = g.propose(ctx, p.depth)
	}
	return p, err
}

// step reads the last token with what is proposed to follow it, and takes the tokens that this yields.
func (g *generation) step(ctx context.Context) (bool, error) {
	room := g.s.spec.Ctx - g.pos - contextMargin
	if room < 1 {
		g.r.Reason = "ctx"
		return false, nil
	}
	g.r.Steps++
	before, start := len(g.r.Tokens), time.Now()
	p, err := g.proposal(ctx, min(room, g.Max-before))
	if err != nil {
		return false, err
	}
	if len(p.tokens) == 0 {
		more, err := g.plain(ctx)
		if g.Pace != nil {
			g.Pace.Note(false, 1, time.Since(start))
		}
		return more, err
	}
	more, accepted, err := g.verify(ctx, append(g.all[g.pos:g.pos+1:g.pos+1], p.tokens...))
	if err != nil {
		return false, err
	}
	g.tally(p, accepted, len(g.r.Tokens)-before, time.Since(start))
	return more, nil
}

// tally counts what came of a proposal.
func (g *generation) tally(p proposal, accepted, yield int, took time.Duration) {
	t := &g.r.Lookups
	if p.depth > 0 {
		t = &g.r.Drafts
		g.Depth.Note(yield, took)
	} else {
		few, many := g.s.model.lookups()
		g.drafts = few
		if accepted == len(p.tokens) {
			g.drafts = many
		}
	}
	t.Proposed += len(p.tokens)
	t.Accepted += accepted
	g.r.Proposed += len(p.tokens)
	if g.Pace != nil {
		g.Pace.Note(true, yield, took)
	}
}

// plain reads the last token alone.
func (g *generation) plain(ctx context.Context) (bool, error) {
	c := columns{p: g.s.fromTokens, pos: g.pos, n: 1, tokens: g.all[g.pos:], layers: true, k: g.Sampler.K(), allow: g.masks(nil)}
	if g.Draft {
		c.hidden = g.s.columns(&g.s.hidden, 1, g.s.model.Width)
	}
	if err := g.s.checkWhole(g.pos, 1); err != nil {
		return false, err
	}
	if err := g.s.run(ctx, c); err != nil {
		return false, err
	}
	next := g.Sampler.Next(g.s.tops[0])
	if g.Draft {
		g.hold(g.pos, 1, c.hidden)
	}
	g.pos++
	return g.take(next), nil
}

// masks are what may follow all tokens so far, and then each of drafts behind them; none without Allow. Behind a draft that is not
// allowed anything is: it is not accepted.
func (g *generation) masks(drafts []int32) []op.Mask {
	if g.Allow == nil {
		return nil
	}
	list, text := []op.Mask{g.Allow(g.all)}, slices.Clone(g.all)
	for i, id := range drafts {
		if !list[i].Allows(int(id)) {
			return append(list, make([]op.Mask, len(drafts)-i)...)
		}
		text = append(text, id)
		list = append(list, g.Allow(text))
	}
	return list
}

// verify runs columns, a token and its drafts, takes what the sampler picks, and undoes the columns of wrong drafts. The
// column of the last token taken, and of a stop token, stays unread.
func (g *generation) verify(ctx context.Context, columns []int32) (more bool, accepted int, err error) {
	hidden, tops, err := g.s.Verify(ctx, g.pos, columns, g.Sampler.K(), g.masks(columns[1:])...)
	if err != nil {
		return false, 0, err
	}
	n, keep := len(columns), 0
	for more = true; more; {
		id := g.Sampler.Next(tops[keep])
		keep++
		more = g.take(id)
		if keep == n || columns[keep] != id {
			break
		}
		accepted++
	}
	if keep < n {
		if err := g.s.Control(ctx, op.Control{Rollback: keep}); err != nil {
			return false, accepted, err
		}
	}
	if g.Draft {
		g.hold(g.pos, keep, hidden)
	}
	g.pos += keep
	return more, accepted, nil
}
