package compute_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pooled/compute"
	"pooled/compute/op"
)

// A draft from the first tokens is the draft from all where that is one of them, and always one of them.
func TestDraftsFromFewTokens(t *testing.T) {
	onAll(t, func(t *testing.T, dev op.Device) {
		m, ctx := newHybrid(t, "qwen35").model(t), context.Background()
		rows, inside := m.Vocab*3/4, 0
		spec := compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: 40, Draft: compute.DraftNorm}
		whole := load(t, dev, m, spec)
		spec.DraftVocab = rows
		few := load(t, dev, m, spec)
		if whole.DraftVocab() != m.Vocab || few.DraftVocab() != rows {
			t.Fatalf("drafts from %d and %d tokens, want %d and %d", whole.DraftVocab(), few.DraftVocab(), m.Vocab, rows)
		}
		tokens := ids(m, 21)
		hidden, err := whole.Embed(ctx, 0, tokens[:20])
		if err != nil {
			t.Fatal(err)
		}
		hidden = slices.Clone(hidden)
		for pos := range 20 {
			follows := tokens[pos+1] % int32(rows) // no miss
			ask := func(s *compute.Shard) int32 {
				got, err := s.Draft(ctx, pos, hidden[pos*m.Width:(pos+1)*m.Width], []int32{follows}, 1)
				if err != nil || len(got) != 1 {
					t.Fatalf("got %v, %v", got, err)
				}
				return got[0]
			}
			want, got := ask(whole), ask(few)
			if int(want) < rows {
				inside++
			}
			if int(got) >= rows || int(want) < rows && got != want {
				t.Errorf("position %d: %d of %d tokens, %d of all", pos, got, rows, want)
			}
		}
		if inside == 0 || inside == 20 {
			t.Errorf("%d of 20 drafts lie inside: the test compares nothing", inside)
		}
	})
}

// The whole head is used while more than a twentieth of the tokens picked lie outside, until fewer than a fortieth do.
func TestDraftVocabFollowsTheText(t *testing.T) {
	m, ctx := newHybrid(t, "qwen35").model(t), context.Background()
	rows := m.Vocab / 2
	s := load(t, onRef.device(t), m, compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: 40, Draft: compute.DraftNorm, DraftVocab: rows})
	hidden := make([]float32, 20*m.Width)
	hidden[0] = 1
	for i := range hidden {
		hidden[i] = float32(i%5) - 2
	}
	draft := func(k int, tokens ...int32) {
		t.Helper()
		if _, err := s.Draft(ctx, 0, hidden[:len(tokens)*m.Width], tokens, k); err != nil {
			t.Fatal(err)
		}
	}
	in, out := int32(rows-1), int32(rows)
	expect := func(when string, want int) {
		t.Helper()
		if got := s.DraftVocab(); got != want {
			t.Fatalf("%s: drafts from %d tokens, want %d", when, got, want)
		}
	}
	draft(2, out, out, out, out, out, in)
	expect("a prompt with other tokens", rows)
	draft(2, out, in, in)
	expect("one token in 32: 3.1%", rows)
	draft(0, out, out, out)
	expect("tokens without drafts", rows)
	draft(2, out)
	expect("two tokens: 6%", m.Vocab)
	for hits := 1; ; hits++ { // 0.0597 times (31/32)^28 is the first under 0.025
		draft(1, in)
		if hits == 28 {
			break
		}
		expect("the share falls", m.Vocab)
	}
	expect("under 2.5%", rows)
	_, err := compute.LoadShard(ctx, onRef.device(t), m, compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: 4, Draft: compute.DraftNorm, DraftVocab: -1}, nil)
	if !errors.Is(err, compute.ErrCall) {
		t.Errorf("fewer than no tokens: %v", err)
	}
}
