package compute_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pooled/compute"
	"pooled/compute/op"
)

// way is a way to speculate.
type way struct {
	draft  compute.DraftMode
	lookup bool
	depth  func() *compute.Depth
	pace   bool
	few    bool // drafts from half of the tokens
}

// proposals are the ways to speculate; all must give the plain answer.
var proposals = map[string]way{
	"plain in one call":                    {},
	"lookup":                               {lookup: true},
	"draft block":                          {draft: compute.DraftNorm},
	"draft block, raw":                     {draft: compute.DraftRaw},
	"draft block, any depth":               {draft: compute.DraftNorm, depth: func() *compute.Depth { return compute.NewDepth() }},
	"draft block, few tokens":              {draft: compute.DraftNorm, few: true},
	"draft block and lookup":               {draft: compute.DraftNorm, lookup: true},
	"draft block and lookup when they pay": {draft: compute.DraftNorm, lookup: true, pace: true},
	"fifteen drafts per step":              {draft: compute.DraftNorm, depth: func() *compute.Depth { return compute.NewDepth(15) }},
}

var samplings = map[string]compute.Sampling{"greedy": {}, "focused, top-p": {Temp: 0.4, TopK: 20, TopP: 0.9}}

// Speculation changes no token, greedy or drawn, whether what is proposed is right or wrong; what is right saves steps.
func TestSpeculationEqualsPlain(t *testing.T) {
	list := map[string]*compute.Model{"qwen3": newSynth(t).habitual().model(t)}
	for _, arch := range []string{"qwen35", "qwen35moe"} {
		list[arch] = newHybrid(t, arch).habitual().model(t)
	}
	onEach(t, list, func(t *testing.T, dev op.Device, m *compute.Model) {
		all := speculate(t, dev, m, 24, samplings, slices.Collect(maps.Keys(proposals))...)
		for what, c := range map[string]compute.Tally{"looked up": all.Lookups, "of the draft block": all.Drafts} {
			if what != "looked up" && !m.Drafts() {
				continue
			}
			if c.Accepted < c.Proposed/8 || c.Accepted > c.Proposed*7/8 {
				t.Errorf("%d of %d tokens %s were right: too few or too many to test both", c.Accepted, c.Proposed, what)
			}
		}
	})
}

// The same with the tiny models, whose columns are as wide as their formats need.
func TestSpeculationEqualsPlainTiny(t *testing.T) {
	list := subjects(t)
	maps.DeleteFunc(list, func(name string, _ *compute.Model) bool { return strings.HasPrefix(name, "odd") })
	few := map[string]compute.Sampling{"creative": {Temp: 0.8, TopK: 40}}
	onEach(t, list, func(t *testing.T, dev op.Device, m *compute.Model) {
		way := "lookup"
		if m.Drafts() {
			way = "draft block, any depth"
		}
		speculate(t, dev, m, 14, few, way)
	})
}

// speculate compares proposals with the plain answer of more tokens and returns what was proposed and accepted in all.
func speculate(t *testing.T, dev op.Device, m *compute.Model, more int, how map[string]compute.Sampling, names ...string) (all compute.Generated) {
	t.Helper()
	tokens := append(ids(m, 12), ids(m, 12)...)
	for sampling, as := range how {
		q := compute.Request{Tokens: tokens, Max: more, Sampler: compute.NewSampler(as, 11)}
		want := plain(t, dev, m, q)
		for _, name := range names {
			p := proposals[name]
			if p.draft != compute.NoDraft && !m.Drafts() {
				continue
			}
			q.Sampler = compute.NewSampler(as, 11)
			got, at := p.generate(t, dev, m, q)
			if !slices.Equal(got.Tokens, want) || got.Reason != "max" {
				t.Errorf("%s, %s: got %v (%s), want %v", sampling, name, got.Tokens, got.Reason, want)
			}
			if got.Read != len(tokens)+more-1 || at != got.Read {
				t.Errorf("%s, %s: %d tokens read, the shard stands at %d, want %d", sampling, name, got.Read, at, len(tokens)+more-1)
			}
			if p.draft != compute.NoDraft && !p.pace && got.Drafts.Proposed == 0 {
				t.Errorf("%s, %s: nothing was proposed", sampling, name)
			}
			for _, c := range [][2]*compute.Tally{{&all.Lookups, &got.Lookups}, {&all.Drafts, &got.Drafts}} {
				c[0].Proposed += c[1].Proposed
				c[0].Accepted += c[1].Accepted
			}
			// The last token taken may be a draft, and nothing comes behind it.
			if short := got.Steps + got.Drafts.Accepted + got.Lookups.Accepted - (more - 1); short < 0 || short > 1 {
				t.Errorf("%s, %s: %d tokens in %d steps, %+v and %+v", sampling, name, more, got.Steps, got.Drafts, got.Lookups)
			}
			t.Logf("%s, %s: %d tokens in %d steps; accepted %d of %d drafts, %d of %d looked up", sampling, name, len(got.Tokens),
				got.Steps, got.Drafts.Accepted, got.Drafts.Proposed, got.Lookups.Accepted, got.Lookups.Proposed)
		}
	}
	return all
}

// generate answers a request in this way, with a shard of its own. at is where that stands then.
func (p way) generate(t *testing.T, dev op.Device, m *compute.Model, q compute.Request) (r *compute.Generated, at int) {
	t.Helper()
	spec := compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: len(q.Tokens) + q.Max + 16, Draft: p.draft}
	if p.few {
		spec.DraftVocab = m.Vocab / 2
	}
	s := load(t, dev, m, spec)
	defer s.Close()
	q.Draft, q.Lookup = p.draft != compute.NoDraft, p.lookup
	if p.pace {
		q.Pace = &compute.Pace{}
	}
	if p.depth != nil {
		q.Depth = p.depth()
	}
	r, err := s.Generate(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return r, s.At()
}

// plain answers a request with nothing but one token per run.
func plain(t *testing.T, dev op.Device, m *compute.Model, q compute.Request) []int32 {
	t.Helper()
	s := whole(t, dev, m, len(q.Tokens)+q.Max)
	defer s.Close()
	var got []int32
	for pos, next := 0, q.Tokens; len(got) < q.Max; {
		top, err := s.EmbedTop(context.Background(), pos, next, q.Sampler.K())
		if err != nil {
			t.Fatal(err)
		}
		pos += len(next)
		got = append(got, q.Sampler.Next(top))
		next = got[len(got)-1:]
	}
	return got
}

// Where every draft is right, each is accepted; where the last is wrong, the others are.
func TestRightDraftsAreAccepted(t *testing.T) {
	onEach(t, small(t), func(t *testing.T, dev op.Device, m *compute.Model) {
		tokens, ctx := ids(m, 10), context.Background()
		answer := plain(t, dev, m, compute.Request{Tokens: tokens, Max: 20, Sampler: compute.NewSampler(compute.Sampling{}, 1)})
		s := whole(t, dev, m, 40)
		logitsOf(t, s, 0, tokens, 10)
		for at := 0; at < 16; {
			columns := slices.Clone(answer[at : at+4]) // a token and three drafts
			columns[3] = (columns[3] + 1) % int32(m.Vocab)
			_, tops, err := s.Verify(ctx, 10+at, columns, 1)
			if err != nil {
				t.Fatal(err)
			}
			for c := range 3 {
				if tops[c][0].ID != answer[at+c+1] {
					t.Errorf("token %d: got %d, want %d", at+c+1, tops[c][0].ID, answer[at+c+1])
				}
			}
			control(t, s, op.Control{Rollback: 3})
			at += 3
		}
	})
}

// Stop, the most tokens and the end of the context end an answer, and leave the shard where it can go on.
func TestEndsOfAnswers(t *testing.T) {
	onEach(t, small(t), func(t *testing.T, dev op.Device, m *compute.Model) {
		tokens, ctx := ids(m, 10), context.Background()
		greedy := func() *compute.Sampler { return compute.NewSampler(compute.Sampling{}, 1) }
		answer := plain(t, dev, m, compute.Request{Tokens: tokens, Max: 30, Sampler: greedy()})
		for _, draft := range []bool{false, true} {
			if draft && !m.Drafts() {
				continue
			}
			mode := compute.NoDraft
			if draft {
				mode = compute.DraftNorm
			}
			s := load(t, dev, m, compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: 32, Draft: mode})
			stop := answer[6]
			first := slices.Index(answer, stop)
			var heard []int32
			r, err := s.Generate(ctx, compute.Request{Tokens: tokens, Max: 20, Sampler: greedy(), Draft: draft, Lookup: true,
				Stop: func(id int32) bool { return id == stop }, Emit: func(id int32) { heard = append(heard, id) }})
			if err != nil {
				t.Fatal(err)
			}
			if r.Reason != "stop" || !slices.Equal(r.Tokens, answer[:first]) || !slices.Equal(heard, r.Tokens) {
				t.Errorf("stop at %d: got %v (%s), heard %v, want %v", stop, r.Tokens, r.Reason, heard, answer[:first])
			}
			// Going on from there: what was read is not read again.
			text := append(slices.Clone(tokens), r.Tokens...)
			if r.Read != len(text) && r.Read != len(text)-1 || s.At() != r.Read {
				t.Errorf("%d of %d tokens read, the shard stands at %d", r.Read, len(text), s.At())
			}
			text = append(text, answer[first])
			r, err = s.Generate(ctx, compute.Request{Tokens: text, Read: r.Read, Max: 50, Sampler: greedy(), Draft: draft})
			if err != nil {
				t.Fatal(err)
			}
			if want := answer[first+1 : 21]; r.Reason != "ctx" || !slices.Equal(r.Tokens, want) {
				t.Errorf("to the end of the context: got %v (%s), want %v", r.Tokens, r.Reason, want)
			}
			for _, n := range []int{0, 1} {
				r, err = s.Generate(ctx, compute.Request{Tokens: tokens, Max: n, Sampler: greedy(), Draft: draft})
				if err != nil || r.Reason != "max" || !slices.Equal(r.Tokens, answer[:n]) {
					t.Errorf("%d tokens: got %+v, %v", n, r, err)
				}
			}
			s.Close()
		}
	})
}

func TestGenerateRefusals(t *testing.T) {
	m, ctx := newHybrid(t, "qwen35").model(t), context.Background()
	dev := onRef.device(t)
	s, drafts := whole(t, dev, m, 20), load(t, dev, m, compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: 20, Draft: compute.DraftNorm})
	part := load(t, dev, m, compute.ShardSpec{Hi: 2, Head: true, Ctx: 20})
	g := compute.NewSampler(compute.Sampling{}, 1)
	for name, c := range map[string]struct {
		s *compute.Shard
		q compute.Request
	}{
		"no tokens":                {s, compute.Request{Sampler: g, Max: 1}},
		"all tokens read":          {s, compute.Request{Tokens: ids(m, 3), Read: 3, Sampler: g, Max: 1}},
		"no sampler":               {s, compute.Request{Tokens: ids(m, 3), Max: 1}},
		"more than the context":    {s, compute.Request{Tokens: ids(m, 21), Sampler: g, Max: 1}},
		"no draft block":           {s, compute.Request{Tokens: ids(m, 3), Sampler: g, Max: 1, Draft: true}},
		"layers elsewhere":         {part, compute.Request{Tokens: ids(m, 3), Sampler: g, Max: 1}},
		"the shard stands at zero": {s, compute.Request{Tokens: ids(m, 5), Read: 4, Sampler: g, Max: 1}},
	} {
		if _, err := c.s.Generate(ctx, c.q); !errors.Is(err, compute.ErrCall) {
			t.Errorf("%s: got %v, want a wrong call", name, err)
		}
	}
	h := make([]float32, 3*m.Width)
	draft := func(s *compute.Shard, pos, n, values, k int) error {
		_, err := s.Draft(ctx, pos, h[:values], ids(m, n), k)
		return err
	}
	for name, err := range map[string]error{
		"drafts without a draft block": draft(s, 0, 1, m.Width, 1),
		"no hidden state":              draft(drafts, 0, 0, 0, 1),
		"another width":                draft(drafts, 0, 2, m.Width, 1),
		"past the context":             draft(drafts, 19, 2, 2*m.Width, 1),
		"less than no drafts":          draft(drafts, 0, 1, m.Width, -1),
	} {
		if !errors.Is(err, compute.ErrCall) {
			t.Errorf("%s: got %v, want a wrong call", name, err)
		}
	}
}

// Drafts depend on the text, not on how its hidden states came in, and end at the context.
func TestDraftsDependOnTheText(t *testing.T) {
	list := subjects(t)
	for name, m := range list {
		if !m.Drafts() {
			delete(list, name)
		}
	}
	onEach(t, list, func(t *testing.T, dev op.Device, m *compute.Model) {
		const n, ctxLen = 30, 36
		tokens, ctx := ids(m, n+1), context.Background()
		for _, mode := range []compute.DraftMode{compute.DraftNorm, compute.DraftRaw} {
			s := load(t, dev, m, compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: ctxLen, Draft: mode})
			hidden, err := s.Embed(ctx, 0, tokens[:n])
			if err != nil {
				t.Fatal(err)
			}
			hidden = slices.Clone(hidden)
			ask := func(k int, sizes ...int) []int32 {
				var got []int32
				pos := 0
				for i, size := range sizes {
					want := 0
					if i == len(sizes)-1 {
						want = k
					}
					if got, err = s.Draft(ctx, pos, hidden[pos*m.Width:(pos+size)*m.Width], tokens[pos+1:pos+size+1], want); err != nil {
						t.Fatal(err)
					}
					pos += size
				}
				return slices.Clone(got)
			}
			want := ask(5, n)
			if len(want) != 5 {
				t.Fatalf("got %d drafts, want 5", len(want))
			}
			if got := ask(5, 1, 16, 3, 10); !slices.Equal(got, want) {
				t.Errorf("in pieces: got %v, want %v", got, want)
			}
			if got := ask(3, 12, 18); !slices.Equal(got, want[:3]) {
				t.Errorf("fewer: got %v, want %v", got, want[:3])
			}
			if got := ask(15, n); len(got) != ctxLen-n+1 || !slices.Equal(got[:5], want) {
				t.Errorf("to the end of the context: got %v, want %d that begin with %v", got, ctxLen-n+1, want)
			}
			s.Close()
		}
	})
}
