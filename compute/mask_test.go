package compute_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pooled/compute"
	"pooled/compute/op"
)

// afterSum allows, behind a text, every token whose number and the text's length leave the same remainder of three: what is
// allowed changes with each token.
func afterSum(vocab int) func(tokens []int32) op.Mask {
	return func(tokens []int32) op.Mask {
		m := make(op.Mask, op.MaskWords(vocab))
		for i := len(tokens) % 3; i < vocab; i += 3 {
			m[i/32] |= 1 << (i % 32)
		}
		return m
	}
}

// A masked answer has allowed tokens only, and proposals don't change it.
func TestMaskedAnswers(t *testing.T) {
	list := small(t)
	delete(list, "odd, tied")
	onEach(t, list, func(t *testing.T, dev op.Device, m *compute.Model) {
		prompt, want := append(ids(m, 12), ids(m, 12)...), []int32(nil)
		for _, way := range []string{"plain in one call", "lookup", "draft block", "fifteen drafts per step"} {
			p := proposals[way]
			if p.draft != compute.NoDraft && !m.Drafts() {
				continue
			}
			s := load(t, dev, m, compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: 80, Draft: p.draft})
			q := compute.Request{Tokens: prompt, Max: 20, Allow: afterSum(m.Vocab), Draft: p.draft != compute.NoDraft, Lookup: p.lookup,
				Sampler: compute.NewSampler(compute.Sampling{Temp: 0.7, TopK: 30, TopP: 0.95}, 5)}
			if p.depth != nil {
				q.Depth = p.depth()
			}
			got, err := s.Generate(context.Background(), q)
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
			for i, id := range got.Tokens {
				if int(id)%3 != (len(prompt)+i)%3 {
					t.Errorf("%s: token %d is %d, not allowed there", way, i, id)
				}
			}
			if want == nil {
				want = got.Tokens
			}
			if !slices.Equal(got.Tokens, want) || len(want) != 20 {
				t.Errorf("%s: got %v, want %v", way, got.Tokens, want)
			}
		}
	})
}

// Where nothing is allowed, there is nothing to pick.
func TestNothingAllowed(t *testing.T) {
	onAll(t, func(t *testing.T, dev op.Device) {
		m := newSynth(t).model(t)
		s, none, ctx := whole(t, dev, m, 40), make(op.Mask, op.MaskWords(m.Vocab)), context.Background()
		_, err := s.EmbedTop(ctx, 0, ids(m, 20), 3, none)
		if !errors.Is(err, compute.ErrMask) {
			t.Errorf("a prompt: %v", err)
		}
		if _, err := s.Top(ctx, make([]float32, m.Width), 1, none); !errors.Is(err, compute.ErrMask) {
			t.Errorf("a hidden state: %v", err)
		}
		if _, _, err := s.Verify(ctx, 20, ids(m, 2), 1, nil, none); !errors.Is(err, compute.ErrMask) {
			t.Errorf("the second of two columns: %v", err)
		}
		if _, err := s.EmbedTop(ctx, 0, ids(m, 4), 3, none, none); !errors.Is(err, op.ErrArgument) {
			t.Errorf("two masks for one answer: %v", err)
		}
		if top, err := s.EmbedTop(ctx, 0, ids(m, 4), 3); err != nil || len(top) != 3 {
			t.Errorf("without a mask: %v, %v", top, err)
		}
	})
}

// A prompt that fills the context can be read, one token more can't, and the error says both numbers.
func TestContextFull(t *testing.T) {
	onAll(t, func(t *testing.T, dev op.Device) {
		m := newSynth(t).model(t)
		s := whole(t, dev, m, 24)
		ask := func(n int) (*compute.Generated, error) {
			return s.Generate(context.Background(), compute.Request{Tokens: ids(m, n), Max: 5, Sampler: compute.NewSampler(compute.Sampling{}, 1)})
		}
		if g, err := ask(24); err != nil || g.Reason != "ctx" || len(g.Tokens) != 1 {
			t.Errorf("24 tokens: %+v, %v", g, err)
		}
		_, err := ask(25)
		var full *compute.ContextError
		if !errors.As(err, &full) || full.Tokens != 25 || full.Context != 24 || !errors.Is(err, compute.ErrCall) {
			t.Errorf("25 tokens: %v", err)
		}
		if _, err := s.Embed(context.Background(), 20, ids(m, 5)); !errors.As(err, &full) || full.Tokens != 25 {
			t.Errorf("five tokens behind twenty: %v", err)
		}
	})
}
