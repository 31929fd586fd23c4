package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pooled/compute"
	"pooled/compute/op"
)

// slot keeps what a model with recurrent layers remembered before the decoded tokens.
const slot = 1

// MemoryError says that a device refused memory. It wraps the device's error.
type MemoryError struct {
	Need  int64 // bytes that the model takes with the context asked for
	Given int64 // bytes that the device had given when it refused
	Err   error
}

// Error names both.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("%d bytes are needed, the device gave %d: %v", e.Need, e.Given, e.Err)
}

// Unwrap returns the device's error.
func (e *MemoryError) Unwrap() error { return e.Err }

// Run loads a model to a device, measures, and releases it. The error wraps ErrOptions, ErrDiffer, a *MemoryError, or what
// the engine said; once ctx ends it ends between two runs of the device.
func Run(ctx context.Context, dev op.Device, m *compute.Model, o Options) (*Report, error) {
	if err := o.check(m); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	b := &bench{dev: dev, m: m, o: o, r: newReport(dev, m, &o)}
	b.counting, _ = dev.(op.Counting)
	if err := b.load(ctx); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer b.shard.Close()
	for _, n := range o.Prompts {
		b.note("prompt of %d", n)
		if err := b.prefill(ctx, n); err != nil {
			return nil, fmt.Errorf("bench: prompt of %d tokens: %w", n, err)
		}
	}
	for _, depth := range o.Depths {
		if o.Gen == 0 {
			break
		}
		b.note("decode at %d", depth)
		if err := b.decode(ctx, depth); err != nil {
			return nil, fmt.Errorf("bench: decode at %d: %w", depth, err)
		}
	}
	return b.r, nil
}

func newReport(dev op.Device, m *compute.Model, o *Options) *Report {
	info := dev.Info()
	return &Report{
		Adapter: info.Name, Backend: info.Backend, Software: info.Software,
		Model: Model{
			Name: m.Name, Arch: m.Arch, Layers: m.Layers, Width: m.Width, Vocab: m.Vocab, DraftBlock: m.Drafts(), Bytes: m.WeightBytes(),
		},
		Context: o.Ctx, KV: o.KV.String(), Reps: o.Reps, Prefill: []Prefill{}, Decode: []Decode{},
		Checked: "all values finite, equal tokens in all runs",
	}
}

// bench is a measurement under way.
type bench struct {
	dev      op.Device
	counting op.Counting // nil when the device does not count
	m        *compute.Model
	o        Options
	r        *Report
	shard    *compute.Shard
}

func (b *bench) note(format string, args ...any) {
	if b.o.Note != nil {
		b.o.Note(fmt.Sprintf(format, args...))
	}
}

// drafts says whether the draft block proposes.
func (b *bench) drafts() bool {
	return b.o.Gen > 0 && b.m.Drafts() && (b.o.Spec == SpecDraft || b.o.Spec == SpecAll)
}

// ShardSpec is what Run loads: the whole model.
func (b *bench) spec() (compute.ShardSpec, error) {
	s := compute.ShardSpec{Hi: b.m.Layers, Head: true, Ctx: b.o.Ctx, KV: b.o.KV}
	if b.drafts() {
		s.Draft = compute.DraftNorm
	}
	return s.Widened(b.dev, b.m)
}

func (b *bench) load(ctx context.Context) error {
	spec, err := b.spec()
	if err != nil {
		return err
	}
	need, err := spec.Need(b.dev, b.m)
	if err != nil {
		return err
	}
	if b.o.Most > 0 && need.Total() > b.o.Most {
		return &MemoryError{need.Total(), b.o.Most, op.ErrMemory}
	}
	b.note("load")
	var given int64
	start, before := time.Now(), b.dev.Used()
	b.shard, err = compute.LoadShard(ctx, b.dev, b.m, spec, func(done, total int64) {
		given = max(given, b.dev.Used()-before)
		if b.o.Loaded != nil {
			b.o.Loaded(done, total)
		}
	})
	if errors.Is(err, op.ErrMemory) {
		return &MemoryError{need.Total(), given, err}
	}
	if err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	b.r.Wide = spec.Wide
	b.r.Memory = Memory{Need: need.Total(), Used: b.shard.Bytes()}
	b.r.Load = Load{Seconds: took, Bytes: spec.Bytes(b.m), BytesPerSec: float64(spec.Bytes(b.m)) / took}
	return nil
}

// count is what the device did between two calls.
func (b *bench) count() op.Stats {
	if b.counting == nil {
		return op.Stats{}
	}
	return b.counting.Stats()
}

// each is a mean over n tokens or prompts.
func (b *bench) each(all op.Stats, n int) Each {
	per := 1 / float64(n)
	return Each{
		Counted:  b.counting != nil,
		Launches: float64(all.Launches) * per, Submits: float64(all.Submits) * per, Readbacks: float64(all.Readbacks) * per,
		EncodeSec: all.Encoding.Seconds() * per, WaitSec: all.Waiting.Seconds() * per,
	}
}

// repeat calls once for the runs that don't count, then for those that do, and returns what the device did in these.
func (b *bench) repeat(once func(counts bool) error) (op.Stats, error) {
	for start := time.Now(); ; {
		if err := once(false); err != nil {
			return op.Stats{}, err
		}
		if time.Since(start) >= b.o.Warm {
			break
		}
	}
	before := b.count()
	for range b.o.Reps {
		if err := once(true); err != nil {
			return op.Stats{}, err
		}
	}
	return b.count().Since(before), nil
}

// greedy continues tokens, of which read are read, by most new ones.
func (b *bench) greedy(ctx context.Context, tokens []int32, read, most int, q compute.Request) (*compute.Generated, error) {
	q.Tokens, q.Read, q.Max, q.Chunk = tokens, read, most, b.o.Chunk
	if q.Chunk == 0 {
		q.Chunk = b.o.Ctx
	}
	q.Sampler = compute.NewSampler(compute.Sampling{}, 0)
	g, err := b.shard.Generate(ctx, q)
	if err == nil && len(g.Tokens) != most {
		err = fmt.Errorf("%d tokens instead of %d, reason %q", len(g.Tokens), most, g.Reason)
	}
	return g, err
}

// same notes the first run's tokens and compares the others with them.
func same(first *[]int32, got []int32, what string) error {
	if *first == nil {
		*first = slices.Clone(got)
	}
	for i, id := range got {
		if (*first)[i] != id {
			return fmt.Errorf("%w: %s picked token %d at place %d, the first run %d", ErrDiffer, what, id, i, (*first)[i])
		}
	}
	return nil
}

func (b *bench) prefill(ctx context.Context, n int) error {
	tokens := b.o.tokens(b.m, n, false)
	var rates, firsts []float64
	var picked []int32
	all, err := b.repeat(func(counts bool) error {
		start := time.Now()
		var first time.Duration
		g, err := b.greedy(ctx, tokens, 0, 1, compute.Request{Emit: func(int32) { first = time.Since(start) }})
		if err != nil {
			return err
		}
		if counts {
			rates, firsts = append(rates, float64(n)/g.Prefill.Seconds()), append(firsts, first.Seconds())
		}
		return same(&picked, g.Tokens, "a run")
	})
	if err != nil {
		return err
	}
	b.r.Prefill = append(b.r.Prefill, Prefill{
		Tokens: n, TokPerSec: newRange(rates), FirstToken: newRange(firsts), Each: b.each(all, b.o.Reps),
	})
	return nil
}
