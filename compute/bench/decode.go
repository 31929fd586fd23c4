package bench

import (
	"context"

	"pooled/compute"
	"pooled/compute/op"
)

// decode measures plain decoding, then with proposals, behind depth positions.
func (b *bench) decode(ctx context.Context, depth int) error {
	prompt := b.o.tokens(b.m, depth, true)
	d := &decoding{b: b, read: len(prompt)}
	g, err := b.greedy(ctx, prompt, 0, 1, compute.Request{Draft: b.drafts()})
	if err != nil {
		return err
	}
	d.tokens = append(prompt, g.Tokens...)
	if b.m.Recurrent() {
		if err := b.shard.Control(ctx, op.Control{Save: slot}); err != nil {
			return err
		}
	}
	rates, all, err := d.measure(ctx, "a plain run", compute.Request{})
	if err != nil {
		return err
	}
	reads := b.m.Reads(d.read+b.o.Gen/2, b.o.KV)
	r := Decode{
		Depth: d.read, Tokens: b.o.Gen, TokPerSec: newRange(rates), Each: b.each(all, b.o.Reps*b.o.Gen),
		BytesPerToken: reads.Total(), WeightBytes: reads.Weights, StateBytes: reads.States, CacheBytes: reads.Caches,
	}
	r.BytesPerSec = r.TokPerSec.times(float64(reads.Total()))
	if b.o.Spec != SpecOff {
		if r.Proposals, err = d.speculate(ctx, r.TokPerSec.Median); err != nil {
			return err
		}
	}
	b.r.Decode = append(b.r.Decode, r)
	if b.m.Recurrent() {
		return b.shard.Control(ctx, op.Control{DropAll: true})
	}
	return nil
}

// decoding is one text that is continued again and again.
type decoding struct {
	b      *bench
	tokens []int32 // the last one is not read yet
	read   int
	picked []int32 // by the first run
	totals struct {
		draft, lookup Tally
		steps         int
	}
}

// measure continues the text b.o.Reps times and returns the rates, and what the device did in all of them.
func (d *decoding) measure(ctx context.Context, what string, q compute.Request) (rates []float64, all op.Stats, err error) {
	b := d.b
	all, err = b.repeat(func(counts bool) error {
		if b.m.Recurrent() {
			if err := b.shard.Control(ctx, op.Control{Load: slot}); err != nil {
				return err
			}
		}
		if q.Draft || q.Lookup {
			q.Pace = &compute.Pace{}
		}
		g, err := b.greedy(ctx, d.tokens, d.read, b.o.Gen, q)
		if err != nil {
			return err
		}
		if counts {
			rates = append(rates, float64(b.o.Gen)/(g.Prefill+g.Decode).Seconds())
			d.totals.steps += 1 + g.Steps
			d.totals.draft = d.totals.draft.plus(g.Drafts)
			d.totals.lookup = d.totals.lookup.plus(g.Lookups)
		}
		return same(&d.picked, g.Tokens, what)
	})
	return rates, all, err
}

func (t Tally) plus(g compute.Tally) Tally {
	return Tally{t.Proposed + g.Proposed, t.Accepted + g.Accepted}
}

// speculate measures decoding with proposals.
func (d *decoding) speculate(ctx context.Context, plain float64) (*Speculative, error) {
	b := d.b
	d.totals.steps, d.totals.draft, d.totals.lookup = 0, Tally{}, Tally{}
	q := compute.Request{Draft: b.drafts(), Lookup: b.o.Spec != SpecDraft}
	rates, all, err := d.measure(ctx, "a run with proposals", q)
	if err != nil {
		return nil, err
	}
	s := &Speculative{TokPerSec: newRange(rates), Draft: d.totals.draft, Lookup: d.totals.lookup, Each: b.each(all, b.o.Reps*b.o.Gen)}
	s.Speedup = s.TokPerSec.Median / plain
	s.PerStep = float64(b.o.Reps*b.o.Gen) / float64(d.totals.steps)
	return s, nil
}
