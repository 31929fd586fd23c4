package compute_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pooled/compute"
	"pooled/compute/op"
	"pooled/compute/ref"
)

// subjects are the models whose properties are tested: all architectures, both heads, several formats, odd sizes.
func subjects(t testing.TB) map[string]*compute.Model {
	return map[string]*compute.Model{
		"q8, tied":    tiny(t, "tiny-qwen3-q8"),
		"odd, untied": newSynth(t).set("qwen3.context_length", uint32(320)).model(t),
		"odd, tied":   newSynth(t).set("qwen3.context_length", uint32(320)).tied().model(t),
		"hybrid":      tiny(t, "tiny-qwen35-q4"),
		"experts":     tiny(t, "tiny-qwen35moe-q4"),
		"odd hybrid":  newHybrid(t, "qwen35").model(t),
		"odd experts": newHybrid(t, "qwen35moe").model(t),
	}
}

// small are the subjects that much can be computed with.
func small(t testing.TB) map[string]*compute.Model {
	list := subjects(t)
	maps.DeleteFunc(list, func(name string, _ *compute.Model) bool { return !strings.HasPrefix(name, "odd") })
	return list
}

// tiny models have real widths and formats; what is tried with the small ones at length is tried with them in brief.
func isTiny(m *compute.Model) bool { return m.Vocab > synthVocab }

// onEach runs a test on every kind of device with every subject. What a GPU has no kernel for yet is named and counted.
func onEach(t *testing.T, list map[string]*compute.Model, test func(t *testing.T, dev op.Device, m *compute.Model)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			dev, missing := k.device(t), 0
			for _, name := range slices.Sorted(maps.Keys(list)) {
				if err := loadable(dev, list[name]); k == onGPU && noKernel(err) {
					missing++
					t.Logf("NOT COMPARED: %s: %v", name, err)
					continue
				}
				t.Run(name, func(t *testing.T) { test(t, dev, list[name]) })
			}
			if missing > 0 {
				t.Logf("%d of %d models not compared", missing, len(list))
			}
		})
	}
}

// noKernel says that a device lacks an operation or a weight format.
func noKernel(err error) bool { return errors.Is(err, op.ErrFormat) || errors.Is(err, op.ErrKernel) }

func ids(m *compute.Model, n int) []int32 {
	list := prompt(n)
	for i := range list {
		list[i] %= int32(m.Vocab)
	}
	return list
}

// sane fails for values that would make any comparison pass.
func sane(t *testing.T, v []float32) {
	t.Helper()
	for _, x := range v {
		if x-x != 0 {
			t.Fatal("a value is not finite")
		}
	}
	if len(v) == 0 || slices.Min(v) == slices.Max(v) {
		t.Fatal("all values are equal")
	}
}

// stepwise runs tokens one at a time and returns all logits.
func stepwise(t *testing.T, s *compute.Shard, tokens []int32) []float32 {
	t.Helper()
	var all []float32
	for pos := range tokens {
		got, err := s.EmbedLogits(context.Background(), pos, tokens[pos:pos+1])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got...)
	}
	sane(t, all)
	return all
}

// 16 columns at once, or any other number, give the bits of one token after the other.
func TestPrefillEqualsSteps(t *testing.T) {
	onEach(t, subjects(t), func(t *testing.T, dev op.Device, m *compute.Model) {
		n := 40
		if isTiny(m) {
			n = 24
		}
		s, tokens := whole(t, dev, m, n), ids(m, n)
		want := stepwise(t, s, tokens)
		for _, width := range []int{16, 7, 2} {
			var got []float32
			for pos := 0; pos < len(tokens); pos += width {
				part, err := s.EmbedLogits(context.Background(), pos, tokens[pos:min(pos+width, len(tokens))])
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, part...)
			}
			if at := firstDifference(got, want); at >= 0 {
				t.Errorf("%d columns: position %d differs", width, at/m.Vocab)
			}
		}
	})
}

func firstDifference(got, want []float32) int {
	if len(got) != len(want) {
		return 0
	}
	for i := range got {
		if got[i] != want[i] {
			return i
		}
	}
	return -1
}

// Layers in several shards, joined by f32 hidden states, give the bits of the whole model.
func TestSplitEqualsWhole(t *testing.T) {
	onEach(t, subjects(t), func(t *testing.T, dev op.Device, m *compute.Model) {
		tokens := ids(m, 35)
		if isTiny(m) {
			tokens = tokens[:22]
		}
		all := whole(t, dev, m, 40)
		want := stepwise(t, all, tokens)
		all.Close()
		cutLists := [][]int{{0, m.Layers}, {1, m.Layers}, {0, 1, 2, m.Layers}, {1, 2, m.Layers}}
		if isTiny(m) {
			cutLists = cutLists[1:3]
		}
		for _, cuts := range cutLists {
			t.Run(fmt.Sprint(cuts), func(t *testing.T) {
				got := chain(t, dev, m, cuts, tokens)
				if at := firstDifference(got, want); at >= 0 {
					t.Errorf("position %d differs", at/m.Vocab)
				}
			})
		}
	})
}

// chain loads layers 0..cuts[0] with both ends and one shard per further cut, and runs tokens through them: a long
// frame, then one at a time. Every hidden state is copied, as on a wire.
func chain(t *testing.T, dev op.Device, m *compute.Model, cuts []int, tokens []int32) []float32 {
	t.Helper()
	ctx := context.Background()
	host := load(t, dev, m, compute.ShardSpec{Hi: cuts[0], Head: true, Ctx: 40})
	var workers []*compute.Shard
	for i := 1; i < len(cuts); i++ {
		workers = append(workers, load(t, dev, m, compute.ShardSpec{Lo: cuts[i-1], Hi: cuts[i], Ctx: 40}))
	}
	var all []float32
	for pos := 0; pos < len(tokens); {
		n := 1
		if pos == 0 {
			n = 16
		}
		x, err := host.Embed(ctx, pos, tokens[pos:pos+n])
		for _, w := range workers {
			if err != nil {
				break
			}
			x, err = w.Hidden(ctx, pos, n, slices.Clone(x))
		}
		if err != nil {
			t.Fatal(err)
		}
		logits, err := host.HeadLogits(ctx, slices.Clone(x))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, logits...)
		pos += n
	}
	return all
}

// Candidates are the largest logits, whether they come with the layers or from the head alone.
func TestTopsAgreeWithLogits(t *testing.T) {
	onEach(t, subjects(t), func(t *testing.T, dev op.Device, m *compute.Model) {
		s, tokens, ctx := whole(t, dev, m, 40), ids(m, 5), context.Background()
		logits, err := s.EmbedLogits(ctx, 0, tokens)
		if err != nil {
			t.Fatal(err)
		}
		sane(t, logits)
		for _, k := range []int{1, 40, 64} {
			want := make([][]op.Candidate, 5)
			for c := range want {
				want[c] = make([]op.Candidate, min(k, m.Vocab))
				ref.TopK(want[c], logits[c*m.Vocab:(c+1)*m.Vocab])
			}
			got, err := s.EmbedTop(ctx, 0, tokens, k)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want[4]) {
				t.Errorf("%d candidates with the layers: got %v, want %v", k, got, want[4])
			}
			hidden, tops, err := s.Verify(ctx, 0, tokens, k)
			if err != nil {
				t.Fatal(err)
			}
			sameTops(t, fmt.Sprintf("%d candidates of a verify", k), tops, want)
			if got, err = s.Top(ctx, hidden[4*m.Width:], k); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want[4]) {
				t.Errorf("%d candidates from the head: got %v, want %v", k, got, want[4])
			}
			if tops, err = s.Tops(ctx, hidden, k); err != nil {
				t.Fatal(err)
			}
			sameTops(t, fmt.Sprintf("%d candidates from the head of all columns", k), tops, want)
		}
	})
}

func sameTops(t *testing.T, what string, got, want [][]op.Candidate) {
	t.Helper()
	for c := range want {
		if len(got) != len(want) || !slices.Equal(got[c], want[c]) {
			t.Errorf("%s: column %d differs", what, c)
			return
		}
	}
}

// Writing a position again leaves no trace of what was there: what a rejected draft and a new answer rely on.
func TestPositionsCanBeWrittenAgain(t *testing.T) {
	onAll(t, func(t *testing.T, dev op.Device) {
		m := newSynth(t).model(t)
		s, tokens := whole(t, dev, m, 40), ids(m, 20)
		want := stepwise(t, s, tokens)
		if _, err := s.EmbedLogits(context.Background(), 5, ids(m, 16)); err != nil {
			t.Fatal(err)
		}
		var got []float32
		for pos := 5; pos < 20; pos++ {
			l, err := s.EmbedLogits(context.Background(), pos, tokens[pos:pos+1])
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, l...)
		}
		if at := firstDifference(got, want[5*m.Vocab:]); at >= 0 {
			t.Errorf("position %d differs", 5+at/m.Vocab)
		}
	})
}

func TestWrongCalls(t *testing.T) {
	onAll(t, func(t *testing.T, dev op.Device) {
		m := newSynth(t).model(t)
		ctx := context.Background()
		all := whole(t, dev, m, 20)
		host := load(t, dev, m, compute.ShardSpec{Hi: 1, Head: true, Ctx: 20})
		worker := load(t, dev, m, compute.ShardSpec{Lo: 1, Hi: 2, Ctx: 20})
		ends := load(t, dev, m, compute.ShardSpec{Head: true, Ctx: 20})
		one, w := []int32{1}, m.Width
		embed := func(s *compute.Shard, pos int, ids []int32) error { _, err := s.Embed(ctx, pos, ids); return err }
		top := func(s *compute.Shard, pos int, ids []int32, k int) error {
			_, err := s.EmbedTop(ctx, pos, ids, k)
			return err
		}
		hidden := func(s *compute.Shard, pos, n, values int) error {
			_, err := s.Hidden(ctx, pos, n, make([]float32, values))
			return err
		}
		head := func(s *compute.Shard, values, k int) error {
			_, err := s.Top(ctx, make([]float32, values), k)
			return err
		}
		for name, err := range map[string]error{
			"no tokens":                      embed(all, 0, nil),
			"more tokens than the context":   embed(all, 0, make([]int32, 21)),
			"negative position":              embed(all, -1, one),
			"past the context":               embed(all, 19, []int32{1, 2}),
			"tokens for a worker":            embed(worker, 0, one),
			"candidates of a part":           top(host, 0, one, 1),
			"no candidates":                  top(all, 0, one, 0),
			"too many candidates":            top(all, 0, one, 65),
			"hidden states without layers":   hidden(ends, 0, 1, w),
			"hidden states of another width": hidden(worker, 0, 2, w),
			"no hidden states":               hidden(worker, 0, 0, 0),
			"hidden states past the context": hidden(worker, 20, 1, w),
			"head of a worker":               head(worker, w, 1),
			"head of another width":          head(host, w+1, 1),
			"two hidden states for Top":      head(host, 2*w, 1),
		} {
			if !errors.Is(err, compute.ErrCall) {
				t.Errorf("%s: got %v, want a wrong call", name, err)
			}
		}
		for _, id := range []int32{-1, int32(m.Vocab)} {
			if err := embed(all, 0, []int32{id}); err == nil {
				t.Errorf("token %d of %d: no error", id, m.Vocab)
			}
		}
		for name, err := range map[string]error{
			"last position": embed(all, 19, one), "ends alone": embed(ends, 0, one), "worker": hidden(worker, 4, 16, 16*w), "head": head(ends, w, 1),
		} {
			if err != nil && !errors.Is(err, op.ErrNotFinite) {
				t.Errorf("%s: %v", name, err)
			}
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := all.Embed(cancelled, 0, one); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled call: got %v", err)
		}
	})
}

// A hidden state with NaN is an error that says so: peers look for the word (spec room.md 1.8).
func TestNaNIsReported(t *testing.T) {
	onAll(t, func(t *testing.T, dev op.Device) {
		m := newSynth(t).model(t)
		s := whole(t, dev, m, 20)
		in := make([]float32, m.Width)
		in[3] = nan()
		if _, err := s.Hidden(context.Background(), 0, 1, in); !errors.Is(err, op.ErrNotFinite) {
			t.Errorf("layers: got %v", err)
		}
		if _, err := s.Top(context.Background(), in, 1); !errors.Is(err, op.ErrNotFinite) {
			t.Errorf("head: got %v", err)
		}
	})
}

// A second backend gives the reference's logits. The tiny models' goldens say the same of one shape and few positions;
// this is for odd shapes, an untied head and positions far enough for every form of attention.
func TestBackendsAgree(t *testing.T) {
	const tolerance = 2e-3 // spec engine.md 9.4: an f32 engine with an f32 cache
	for name, m := range subjects(t) {
		t.Run(name, func(t *testing.T) {
			n := min(m.CtxMax, 400) / op.MaxCols * op.MaxCols // far enough for every form of attention
			if isTiny(m) && m.Recurrent() {
				n = 128 // the odd ones go further
			}
			tokens := ids(m, n)
			want := lastFrame(t, onRef.device(t), m, tokens)
			sane(t, want)
			for _, k := range kinds[1:] {
				dev := k.device(t)
				if err := loadable(dev, m); noKernel(err) {
					t.Logf("NOT COMPARED: %v", err)
					continue
				}
				got, worst := lastFrame(t, dev, m, tokens), 0.0
				sane(t, got)
				for i := range want {
					worst = max(worst, math.Abs(float64(got[i])-float64(want[i])))
				}
				t.Logf("%s: worst logit off by %.2g of %g at positions %d to %d", k.name, worst, tolerance, n-op.MaxCols, n-1)
				if worst > tolerance {
					t.Errorf("%s: a logit is off by %g, at most %g allowed", k.name, worst, tolerance)
				}
			}
		})
	}
}

// lastFrame runs tokens in frames of op.MaxCols and returns the logits of the last frame. The last tokens are run once
// more one at a time, and must give the same bits.
func lastFrame(t *testing.T, dev op.Device, m *compute.Model, tokens []int32) []float32 {
	t.Helper()
	ctx := context.Background()
	s := load(t, dev, m, compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: len(tokens), KV: op.KVF32})
	last := len(tokens) - op.MaxCols
	for pos := 0; pos < last; pos += op.MaxCols {
		if _, err := s.Embed(ctx, pos, tokens[pos:pos+op.MaxCols]); err != nil {
			t.Fatal(err)
		}
	}
	if m.Recurrent() {
		if err := s.Control(ctx, op.Control{Save: 1}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.EmbedLogits(ctx, last, tokens[last:])
	if err != nil {
		t.Fatal(err)
	}
	got = slices.Clone(got)
	if m.Recurrent() {
		if err := s.Control(ctx, op.Control{Load: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for c := range op.MaxCols {
		if c < op.MaxCols-3 && !m.Recurrent() {
			continue
		}
		one, err := s.EmbedLogits(ctx, last+c, tokens[last+c:last+c+1])
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(one, got[c*m.Vocab:(c+1)*m.Vocab]) {
			t.Errorf("%s: position %d alone differs from its frame", dev.Info().Backend, last+c)
		}
	}
	return got
}
