package compute_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pooled/compute"
)

func full(m *compute.Model) compute.ShardSpec {
	return compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: 16}
}

// Whatever fails while loading, everything made so far is closed in reverse order.
func TestLoadFailureReleasesEverything(t *testing.T) {
	m := newSynth(t).model(t)
	complete := &fake{}
	s, err := compute.LoadShard(context.Background(), complete, m, full(m), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if complete.calls < 40 {
		t.Fatalf("loading made %d things", complete.calls)
	}
	for at := 1; at <= complete.calls; at++ {
		d := &fake{failAt: at}
		s, err := compute.LoadShard(context.Background(), d, m, full(m), nil)
		if !errors.Is(err, errFake) || s != nil {
			t.Fatalf("failure %d: got %v, %v", at, s, err)
		}
		if d.calls != at {
			t.Errorf("failure %d: %d calls were made", at, d.calls)
		}
		slices.Reverse(d.closed)
		if !slices.Equal(d.closed, d.made) || d.used != 0 {
			t.Errorf("failure %d: made %v, closed in reverse %v, %d bytes left", at, d.made, d.closed, d.used)
		}
	}
}

func TestCloseInReverseAndTwice(t *testing.T) {
	m := newSynth(t).model(t)
	d := &fake{}
	s, err := compute.LoadShard(context.Background(), d, m, full(m), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Bytes() != d.used || d.used == 0 {
		t.Errorf("the shard has %d bytes, the device %d", s.Bytes(), d.used)
	}
	s.Close()
	s.Close()
	slices.Reverse(d.closed)
	if !slices.Equal(d.closed, d.made) || d.used != 0 {
		t.Errorf("made %v, closed in reverse %v, %d bytes left", d.made, d.closed, d.used)
	}
	if _, err := s.Embed(context.Background(), 0, []int32{1}); !errors.Is(err, compute.ErrCall) {
		t.Errorf("a call after Close: got %v", err)
	}
}

func TestProgressRisesToTheEnd(t *testing.T) {
	s := newSynth(t)
	m := s.model(t)
	for _, c := range []struct {
		name string
		spec compute.ShardSpec
		want int64
	}{
		{"whole", full(m), s.bytesOf("")},
		{"middle", compute.ShardSpec{Lo: 1, Hi: 3, Ctx: 4}, s.bytesOf("blk.1.") + s.bytesOf("blk.2.")},
		{"ends only", compute.ShardSpec{Head: true, Ctx: 4}, s.bytesOf("token_embd") + s.bytesOf("output")},
	} {
		last, calls := int64(0), 0
		shard, err := compute.LoadShard(context.Background(), &fake{}, m, c.spec, func(done, total int64) {
			calls++
			if total != c.want || done < last || done > total {
				t.Errorf("%s: progress %d of %d after %d", c.name, done, total, last)
			}
			last = done
		})
		if err != nil {
			t.Fatal(err)
		}
		shard.Close()
		if last != c.want || calls < 3 || c.spec.Bytes(m) != c.want {
			t.Errorf("%s: ended at %d of %d after %d calls; the spec says %d", c.name, last, c.want, calls, c.spec.Bytes(m))
		}
	}
}

// A context that ends stops loading at the next read or the next thing to make, whatever that is.
func TestCancelWhileLoading(t *testing.T) {
	m := newSynth(t).model(t)
	for at := 1; at <= 40; at++ {
		ctx, cancel := context.WithCancel(context.Background())
		d := &fake{}
		d.onCall = func(call int) {
			if call == at {
				cancel()
			}
		}
		_, err := compute.LoadShard(ctx, d, m, full(m), nil)
		if !errors.Is(err, context.Canceled) || d.used != 0 {
			t.Errorf("cancelled at call %d: got %v, %d bytes left", at, err, d.used)
		}
		if d.calls != at {
			t.Errorf("cancelled at call %d: %d calls were made", at, d.calls)
		}
		cancel()
	}
	// In the middle of a tensor.
	ctx, cancel := context.WithCancel(context.Background())
	d := &fake{}
	_, err := compute.LoadShard(ctx, d, m, full(m), func(done, total int64) {
		if done > total/2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || d.used != 0 {
		t.Errorf("cancelled by the progress: got %v, %d bytes left", err, d.used)
	}
}

// A tied model has one copy of the table on the device.
func TestTiedTableIsLoadedOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		m    *compute.Model
		want int64
	}{
		{"tied", newSynth(t).tied().model(t), newSynth(t).tied().bytesOf("")},
		{"untied", newSynth(t).model(t), newSynth(t).bytesOf("")},
	} {
		d := &fake{}
		s, err := compute.LoadShard(context.Background(), d, c.m, full(c.m), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		slices.Sort(d.loads)
		if n := len(d.loads); n != len(slices.Compact(d.loads)) {
			t.Errorf("%s: something was loaded twice", c.name)
		}
		if got := full(c.m).Bytes(c.m); got != c.want {
			t.Errorf("%s: %d bytes to load, want %d", c.name, got, c.want)
		}
		if own := slices.Contains(d.loads, "output.weight"); own == c.m.Tied() {
			t.Errorf("%s: output matrix loaded: %v", c.name, own)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	m := newSynth(t).model(t)
	for _, c := range []struct {
		name string
		spec compute.ShardSpec
	}{
		{"nothing", compute.ShardSpec{Ctx: 4}},
		{"backwards", compute.ShardSpec{Lo: 2, Hi: 1, Ctx: 4}},
		{"negative", compute.ShardSpec{Lo: -1, Hi: 1, Ctx: 4}},
		{"past the last layer", compute.ShardSpec{Lo: 1, Hi: 4, Ctx: 4}},
		{"embedding before a later layer", compute.ShardSpec{Lo: 1, Hi: 2, Head: true, Ctx: 4}},
		{"no context", compute.ShardSpec{Hi: 1}},
		{"context past the model's", compute.ShardSpec{Hi: 1, Ctx: 65}},
	} {
		d := &fake{}
		if s, err := compute.LoadShard(context.Background(), d, m, c.spec, nil); !errors.Is(err, compute.ErrCall) || s != nil || d.calls != 0 {
			t.Errorf("%s: got %v, %v after %d calls", c.name, s, err, d.calls)
		}
	}
}

// A token, a hidden state or a head costs no allocation here once the shard stands.
func TestSteadyCallsDontAllocate(t *testing.T) {
	m := newSynth(t).model(t)
	s := load(t, &fake{}, m, full(m))
	ctx, tokens := context.Background(), []int32{1, 2, 3}
	hidden := make([]float32, 3*m.Width)
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"Embed", func() error { _, err := s.Embed(ctx, 0, tokens); return err }},
		{"EmbedTop", func() error { _, err := s.EmbedTop(ctx, 0, tokens, 40); return err }},
		{"EmbedLogits", func() error { _, err := s.EmbedLogits(ctx, 0, tokens); return err }},
		{"Hidden", func() error { _, err := s.Hidden(ctx, 0, 3, hidden); return err }},
		{"Top", func() error { _, err := s.Top(ctx, hidden[:m.Width], 1); return err }},
		{"HeadLogits", func() error { _, err := s.HeadLogits(ctx, hidden); return err }},
	} {
		if n := testing.AllocsPerRun(20, func() {
			if err := c.call(); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("%s: %g allocations, want 0", c.name, n)
		}
	}
}
