package compute

import (
	"context"
	"fmt"
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
	Stop    func(id int32) bool // nil: nothing stops
	Emit    func(id int32)      // gets each new token at once; nil: nobody does

	Draft  bool   // let the draft block propose; the shard must have it
	Lookup bool   // propose what followed an earlier copy
	Depth  *Depth // how many the draft block proposes; nil: always 3
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
	lookupUseful  = 2 // fewer tokens are left to the draft block
	contextMargin = 2 // positions that stay free (spec room.md 5.3)
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

	// What the draft block has not been given yet: hidden states from position from, with the tokens that follow.
	from    int
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
		return nil, fmt.Errorf("compute: %w: %d tokens, the context has %d", ErrCall, len(q.Tokens), s.spec.Ctx)
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
			return g.s.EmbedTop(ctx, g.pos-n, tokens, g.Sampler.K())
		}
		hidden, err := g.s.Embed(ctx, g.pos, tokens)
		if err != nil {
			return nil, err
		}
		g.pos += n
		if !g.Draft {
			continue
		}
		g.from, g.hidden, g.follows = g.pos-n, hidden, n
		if last {
			w := g.s.model.Width
			return g.s.Top(ctx, hidden[(n-1)*w:], g.Sampler.K())
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

// propose brings the draft block up to date and asks it for k tokens.
func (g *generation) propose(ctx context.Context, k int) ([]int32, error) {
	n := g.follows
	if n == 0 || !g.Draft {
		return nil, nil
	}
	g.follows = 0
	return g.s.Draft(ctx, g.from, g.hidden, g.all[g.from+1:g.from+1+n], k)
}

// step reads the last token with what is proposed to follow it, and takes the tokens that this yields.
func (g *generation) step(ctx context.Context) (bool, error) {
	room := g.s.spec.Ctx - g.pos - contextMargin
	if room < 1 {
		g.r.Reason = "ctx"
		return false, nil
	}
	g.r.Steps++
	most := min(room, g.Max-len(g.r.Tokens))
	var drafts []int32
	if g.Lookup {
		if drafts = Lookup(g.all, min(g.drafts, most)); len(drafts) < lookupUseful && g.Draft {
			drafts = nil
		}
	}
	tally, k, start := &g.r.Lookups, 0, time.Now()
	if g.Draft && len(drafts) == 0 {
		tally, k = &g.r.Drafts, min(g.Depth.Next(), most, op.MaxCols-1)
	}
	own, err := g.propose(ctx, k)
	if err != nil {
		return false, err
	}
	if k > 0 {
		drafts = own
	}
	if len(drafts) == 0 && !g.Draft {
		top, err := g.s.EmbedTop(ctx, g.pos, g.all[g.pos:], g.Sampler.K())
		if err != nil {
			return false, err
		}
		g.pos++
		return g.take(g.Sampler.Next(top)), nil
	}
	before := len(g.r.Tokens)
	more, accepted, err := g.verify(ctx, append(g.all[g.pos:g.pos+1:g.pos+1], drafts...))
	if err != nil {
		return false, err
	}
	tally.Proposed += len(drafts)
	tally.Accepted += accepted
	g.r.Proposed += len(drafts)
	if k > 0 {
		g.Depth.Note(len(g.r.Tokens)-before, time.Since(start))
	} else if len(drafts) > 0 {
		few, many := g.s.model.lookups()
		g.drafts = few
		if accepted == len(drafts) {
			g.drafts = many
		}
	}
	return more, nil
}

// verify runs columns, a token and its drafts, takes what the sampler picks, and undoes the columns of wrong drafts. The
// column of the last token taken, and of a stop token, stays unread.
func (g *generation) verify(ctx context.Context, columns []int32) (more bool, accepted int, err error) {
	hidden, tops, err := g.s.Verify(ctx, g.pos, columns, g.Sampler.K())
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
	g.from, g.hidden, g.follows = g.pos, hidden[:keep*g.s.model.Width], keep
	g.pos += keep
	return more, accepted, nil
}
