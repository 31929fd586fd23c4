package bench

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pooled/compute"
	"pooled/compute/op"
	"pooled/compute/shape"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model opens a shape's model.
func model(t *testing.T, name string, layers int) *compute.Model {
	t.Helper()
	s, err := shape.Find(name)
	if err == nil {
		s, err = s.Scaled(layers)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	m, err := compute.OpenModel(f.Part())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// measure runs a measurement that must leave nothing on the device.
func measure(t *testing.T, dev op.Device, m *compute.Model, o Options) (*Report, error) {
	t.Helper()
	before := dev.Used()
	r, err := Run(t.Context(), dev, m, o)
	if used := dev.Used() - before; used > 1<<20 { // a device may keep staging memory
		t.Errorf("%d bytes left on the device", used)
	}
	return r, err
}

func gpu(t *testing.T) op.Device {
	t.Helper()
	dev, err := compute.OpenGPU(t.Context(), compute.GPUOptions{})
	if errors.Is(err, op.ErrNoAdapter) && os.Getenv("POOLED_NO_GPU") == "1" {
		t.Skipf("SKIPPED, NOT TESTED: no GPU adapter and POOLED_NO_GPU=1: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return dev
}

// A whole measurement of each architecture: everything is there and fits together.
func TestRun(t *testing.T) {
	dev := gpu(t)
	for _, c := range []struct {
		shape  string
		drafts bool
	}{{"tiny-dense", false}, {"tiny-hybrid", true}, {"tiny-moe", true}} {
		t.Run(c.shape, func(t *testing.T) {
			m := model(t, c.shape, 4)
			var phases []string
			r, err := measure(t, dev, m, Options{
				Prompts: []int{5, 20}, Gen: 4, Depths: []int{0, 17}, Reps: 1, Note: func(p string) { phases = append(phases, p) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(phases, ", "); got != "load, prompt of 5, prompt of 20, decode at 0, decode at 17" {
				t.Errorf("phases: %s", got)
			}
			if r.Adapter == "" || r.Model.DraftBlock != c.drafts || r.Model.Bytes != m.WeightBytes() || r.Context != 256 || r.KV != "f16" {
				t.Errorf("%+v", r)
			}
			if r.Load.Bytes != m.WeightBytes() || r.Load.BytesPerSec <= 0 {
				t.Errorf("load %+v, want all %d bytes of weights", r.Load, m.WeightBytes())
			}
			if off := float64(r.Memory.Used)/float64(r.Memory.Need) - 1; off < -0.05 || off > 0.05 {
				t.Errorf("memory %+v", r.Memory)
			}
			if len(r.Prefill) != 2 || r.Prefill[1].Tokens != 20 || len(r.Decode) != 2 || r.Decode[1].Depth != 17+textLen {
				t.Fatalf("%d prompts, %d depths: %+v", len(r.Prefill), len(r.Decode), r)
			}
			for _, p := range r.Prefill {
				rising(t, p.TokPerSec, p.FirstToken)
			}
			for _, d := range r.Decode {
				rising(t, d.TokPerSec, d.BytesPerSec, d.Proposals.TokPerSec)
				if d.Each.Submits != 1 || d.Each.Readbacks != 1 || d.Each.Launches < 20 {
					t.Errorf("a plain token: %+v", d.Each)
				}
				if d.BytesPerToken != d.WeightBytes+d.StateBytes+d.CacheBytes || (d.StateBytes > 0) != c.drafts {
					t.Errorf("bytes of a token: %+v", d)
				}
				s := d.Proposals
				if (s.Draft.Proposed > 0) != c.drafts || s.PerStep < 1 {
					t.Errorf("proposals: %+v", s)
				}
			}
			if b, err := json.Marshal(r); err != nil || !strings.Contains(string(b), `"first_token_sec":{"median":`) {
				t.Errorf("%s, %v", b, err)
			}
		})
	}
}

func rising(t *testing.T, ranges ...Range) {
	t.Helper()
	for _, r := range ranges {
		if !(0 < r.Min && r.Min <= r.Median && r.Median <= r.Max) {
			t.Errorf("range %+v", r)
		}
	}
}

// What is not asked for is left out, also on a device that does not count.
func TestLeftOut(t *testing.T) {
	dev, m := compute.OpenRef(), model(t, "tiny-dense", 1)
	defer dev.Close()
	r, err := measure(t, dev, m, Options{Gen: 3, Reps: 1, Spec: SpecOff, KV: op.KVF32, Text: []int32{1, 2, 3}, Ctx: 300})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Prefill) != 0 || len(r.Decode) != 1 || r.Decode[0].Depth != 3 || r.Decode[0].Proposals != nil || r.Decode[0].Each.Counted {
		t.Errorf("%+v", r)
	}
	if r.KV != "f32" || r.Context != 300 || r.Adapter == "" {
		t.Errorf("%+v", r)
	}
}

func TestOptions(t *testing.T) {
	dev := compute.OpenRef()
	defer dev.Close()
	for _, c := range []struct {
		name, says string
		o          Options
	}{
		{"nothing", "nothing to decode", Options{Reps: 1}},
		{"no runs", "0 runs", Options{Prompts: []int{1}}},
		{"an empty prompt", "[0]", Options{Prompts: []int{0}, Reps: 1}},
		{"a depth below zero", "[-1]", Options{Gen: 1, Depths: []int{-1}, Reps: 1}},
		{"fewer than no tokens", "-1 tokens", Options{Gen: -1, Prompts: []int{1}, Reps: 1}},
		{"past the model", "8033 positions are needed (32 of them to spare), the model has 4096", Options{Prompts: []int{8000}, Reps: 1}},
		{"past the context", "a context of 64 positions, 133 are needed", Options{Prompts: []int{100}, Ctx: 64, Reps: 1}},
		{"past everything", "the model has 4096", Options{Prompts: []int{1}, Ctx: 5000, Reps: 1}},
		{"deep", "the model has 4096", Options{Gen: 128, Depths: []int{4000}, Reps: 1}},
		{"no draft block", "no draft block", Options{Gen: 1, Spec: SpecDraft, Reps: 1}},
		{"too many", "65 prompts", Options{Prompts: make([]int, 65), Reps: 1}},
	} {
		r, err := measure(t, dev, model(t, "tiny-dense", 1), c.o)
		if !errors.Is(err, ErrOptions) || r != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}

// hooked is a device whose programs run through a hook.
type hooked struct {
	op.Device
	after func(out *op.Out)
	load  func(op.WeightSpec) error
}

func (h *hooked) Program(name string, cols int) op.Builder {
	return &hookedBuilder{h.Device.Program(name, cols), h}
}

func (h *hooked) Load(ctx context.Context, w op.WeightSpec) (op.Weight, error) {
	if h.load != nil {
		if err := h.load(w); err != nil {
			return nil, err
		}
	}
	return h.Device.Load(ctx, w)
}

type hookedBuilder struct {
	op.Builder
	h *hooked
}

func (b *hookedBuilder) Build() (op.Program, error) {
	p, err := b.Builder.Build()
	return &hookedProgram{p, b.h}, err
}

type hookedProgram struct {
	op.Program
	h *hooked
}

func (p *hookedProgram) Run(ctx context.Context, f op.Frame, in []float32, out *op.Out) error {
	err := p.Program.Run(ctx, f, in, out)
	if err == nil && p.h.after != nil {
		p.h.after(out)
	}
	return err
}

// A device that once picks another token is found out, in a prompt, in plain decoding and with proposals.
func TestDiffer(t *testing.T) {
	m := model(t, "tiny-hybrid", 1)
	for _, c := range []struct {
		says  string
		o     Options
		after int // run with candidates whose first one is changed
	}{
		{"prompt of 4 tokens: ", Options{Prompts: []int{4}, Reps: 1}, 2},
		{"a plain run", Options{Gen: 3, Spec: SpecOff, Reps: 1}, 6},
		{"a run with proposals", Options{Gen: 3, Spec: SpecLookup, Reps: 1}, 8},
	} {
		dev, runs := &hooked{Device: compute.OpenRef()}, 0
		dev.after = func(out *op.Out) {
			if len(out.Top) == 0 {
				return
			}
			if runs++; runs == c.after {
				out.Top[0][0].ID = (out.Top[0][0].ID + 1) % int32(m.Vocab)
			}
		}
		_, err := measure(t, dev, m, c.o)
		if !errors.Is(err, ErrDiffer) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.says, err)
		}
		dev.Device.Close()
	}
}

// A refused allocation says what was needed and what was given.
func TestMemoryRefused(t *testing.T) {
	dev := &hooked{Device: compute.OpenRef()}
	defer dev.Close()
	dev.load = func(w op.WeightSpec) error {
		if w.Name == "blk.1.ffn_up.weight" {
			return op.ErrMemory
		}
		return nil
	}
	_, err := measure(t, dev, model(t, "tiny-dense", 2), Options{Prompts: []int{4}, Reps: 1})
	var refused *MemoryError
	if !errors.As(err, &refused) || !errors.Is(err, op.ErrMemory) || !strings.Contains(err.Error(), "blk.1.ffn_up.weight") {
		t.Fatal(err)
	}
	if refused.Given < refused.Need/2 || refused.Given >= refused.Need {
		t.Errorf("given %d of %d", refused.Given, refused.Need)
	}
}

// What can't fit is refused before anything is loaded.
func TestMemoryKnown(t *testing.T) {
	dev := &hooked{Device: compute.OpenRef(), load: func(op.WeightSpec) error { return errors.New("loaded") }}
	defer dev.Close()
	_, err := measure(t, dev, model(t, "tiny-dense", 2), Options{Prompts: []int{4}, Reps: 1, Most: 1 << 20})
	var refused *MemoryError
	if !errors.As(err, &refused) || refused.Given != 1<<20 || refused.Need < 1<<20 {
		t.Error(err)
	}
	_, err = measure(t, dev, model(t, "tiny-dense", 2), Options{Prompts: []int{4}, Reps: 1, Most: refused.Need})
	if err == nil || !strings.Contains(err.Error(), "loaded") {
		t.Errorf("as much as is needed: %v", err)
	}
}

// Runs that don't count go on until the device is warm.
func TestWarm(t *testing.T) {
	dev, runs := &hooked{Device: compute.OpenRef()}, 0
	defer dev.Close()
	dev.after = func(*op.Out) { runs++ }
	const warm = 50 * time.Millisecond
	start := time.Now()
	r, err := measure(t, dev, model(t, "tiny-dense", 1), Options{Prompts: []int{1}, Reps: 2, Warm: warm})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < warm || runs < 3 || r.Reps != 2 {
		t.Errorf("%d runs in %v", runs, took)
	}
}

// A context that ends, ends the measurement in any phase.
func TestCancel(t *testing.T) {
	dev := compute.OpenRef()
	defer dev.Close()
	for _, phase := range []string{"load", "prompt", "decode"} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Run(ctx, dev, model(t, "tiny-moe", 1), Options{Prompts: []int{4}, Gen: 4, Reps: 1, Note: func(p string) {
			if strings.HasPrefix(p, phase) {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", phase, err)
		}
		cancel()
	}
	if dev.Used() != 0 {
		t.Errorf("%d bytes left", dev.Used())
	}
}

func TestRange(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Range
	}{
		{[]float64{3}, Range{3, 3, 3}},
		{[]float64{3, 1, 2}, Range{2, 1, 3}},
		{[]float64{4, 1, 3, 2}, Range{2.5, 1, 4}},
	} {
		if got := newRange(c.values); got != c.want {
			t.Errorf("%v: %+v", c.values, got)
		}
	}
}
