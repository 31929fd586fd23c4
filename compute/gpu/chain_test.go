package gpu

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// looping is a pair of programs whose candidates depend on all tokens before: the first takes values, the next a token.
type looping struct {
	first, next op.Program
	in          []float32 // of the first, 3 columns
}

const (
	loopVocab = 5000 // three slices of topk_slice
	loopWidth = 32
)

func newLooping(t testing.TB, d *Device, capacity int) looping {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 5))
	matrix := func(rows int) op.Weight {
		data := make([]byte, 0, 4*rows*loopWidth)
		for range rows * loopWidth {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(r.NormFloat64())))
		}
		return must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.F32, Rows: rows, Cols: loopWidth, Src: bytes.NewReader(data)}))
	}
	buffer := func(width int) op.Buffer { return must[op.Buffer](t)(d.Buffer("b", width, op.MaxCols)) }
	table, head, cache := matrix(loopVocab), matrix(loopVocab), must[op.KV](t)(d.KV("kv", capacity, loopWidth, op.KVF32))
	x, last, y, logits := buffer(loopWidth), buffer(loopWidth), buffer(loopWidth), buffer(loopVocab)
	answer := func(b op.Builder, q op.Buffer) {
		b.Attend(y, q, cache, 2, 2)
		b.MatVec(logits, head, y)
		b.Logits(logits)
	}
	b := d.Program("first", op.MaxCols)
	b.Input(x)
	b.StoreKV(cache, x, x)
	b.Tail(last, x)
	answer(b, last)
	l := looping{first: must[op.Program](t)(b.Build())}
	b = d.Program("next", op.MaxCols)
	b.Embed(x, table)
	b.StoreKV(cache, x, x)
	answer(b, x)
	l.next = must[op.Program](t)(b.Build())
	for range 3 * loopWidth {
		l.in = append(l.in, float32(r.NormFloat64()))
	}
	return l
}

// frame has three columns, the last of which goes on.
func (l looping) frame(pos int) op.Frame { return op.Frame{Pos: pos, N: 3, HeadFrom: 2} }

// oneByOne does what a chain does in as many runs.
func (l looping) oneByOne(t testing.TB, pos, n int) (ids []int32) {
	t.Helper()
	f, in, p := l.frame(pos), l.in, l.first
	for len(ids) < n {
		out := op.Out{K: 1, Top: [][]op.Candidate{make([]op.Candidate, 0, 1)}}
		if err := p.Run(context.Background(), f, in, &out); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, out.Top[0][0].ID)
		f, in, p = op.Frame{Pos: f.Pos + f.N, N: 1, Tokens: ids[len(ids)-1:]}, nil, l.next
	}
	return ids
}

// A chain finds what runs one by one find, in one submit with one readback; also where attention is split, and where it is too long
// for one submit.
func TestChain(t *testing.T) {
	d := openTest(t, Options{})
	l := newLooping(t, d, 400)
	for _, c := range []struct {
		pos, n  int
		most    float64
		submits int64 // 0: several
	}{{0, 1, 0, 1}, {0, 7, 0, 1}, {250, op.MaxCols, 0, 1}, {381, 17 - 1, 0, 1}, {3, 5, 1, 0}, {3, 5, 3 * 4 * loopVocab * loopWidth, 0}} {
		want, got := l.oneByOne(t, c.pos, c.n), make([]int32, c.n)
		d.mostWork = c.most
		before := d.Stats()
		if err := l.first.Chain(context.Background(), l.frame(c.pos), l.in, l.next, got); err != nil {
			t.Fatal(err)
		}
		d.mostWork = 0
		if !slices.Equal(got, want) {
			t.Errorf("%d from position %d: got %v, want %v", c.n, c.pos, got, want)
		}
		after := d.Stats()
		submits, readbacks := after.Submits-before.Submits, after.Readbacks-before.Readbacks
		if c.submits > 0 && submits != c.submits || c.submits == 0 && submits < 2 || readbacks != 1 {
			t.Errorf("%d from position %d: %d submits and %d readbacks", c.n, c.pos, submits, readbacks)
		}
		if c.n > 3 {
			slices.Sort(want)
			if len(slices.Compact(want)) < 3 {
				t.Errorf("%v: hardly a chain", got)
			}
		}
	}
	ids := make([]int32, 2)
	if err := l.next.Chain(context.Background(), op.Frame{N: 1, Tokens: []int32{7}}, nil, l.next, ids); err != nil {
		t.Error(err)
	}
	again := make([]int32, 1)
	if err := l.next.Chain(context.Background(), op.Frame{Pos: 1, N: 1, Tokens: ids[:1]}, nil, l.next, again); err != nil || again[0] != ids[1] {
		t.Errorf("a program behind itself: got %v then %v, %v", ids, again, err)
	}
}

func TestChainAllocatesNothing(t *testing.T) {
	d := openTest(t, Options{})
	l := newLooping(t, d, 40)
	ids, ctx := make([]int32, 4), context.Background()
	run := func() {
		if err := l.first.Chain(ctx, l.frame(0), l.in, l.next, ids); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(10, run); n > 0 {
		t.Errorf("%g allocations per chain", n)
	}
}

// BenchmarkChain compares four tokens in one submit with four runs. One repetition of one by one allocates; that is little beside.
func BenchmarkChain(b *testing.B) {
	d := openTest(b, Options{})
	l, ids := newLooping(b, d, 400), make([]int32, 4)
	b.Run("one submit", func(b *testing.B) {
		for b.Loop() {
			if err := l.first.Chain(context.Background(), l.frame(0), l.in, l.next, ids); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("one by one", func(b *testing.B) {
		for b.Loop() {
			l.oneByOne(b, 0, len(ids))
		}
	})
}

func TestChainFails(t *testing.T) {
	d := openTest(t, Options{})
	l, ctx, ids := newLooping(t, d, 40), context.Background(), make([]int32, 3)
	bad := slices.Clone(l.in)
	bad[2*loopWidth] = float32(math.NaN())
	if err := l.first.Chain(ctx, l.frame(0), bad, l.next, ids); !errors.Is(err, op.ErrNotFinite) {
		t.Errorf("NaN: got %v", err)
	}
	if err := l.first.Chain(ctx, l.frame(0), l.in, l.next, ids); err != nil {
		t.Errorf("after NaN: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := l.first.Chain(ended, l.frame(0), l.in, l.next, ids); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: got %v", err)
	}
	other := openTest(t, Options{})
	foreign, _, _ := identity(t, other, 8)
	if err := l.first.Chain(ctx, l.frame(0), l.in, foreign, ids); !errors.Is(err, errForeign) {
		t.Errorf("another device's program: got %v", err)
	}
	l.next.Close()
	if err := l.first.Chain(ctx, l.frame(0), l.in, l.next, ids); !errors.Is(err, errReleased) {
		t.Errorf("a closed program: got %v", err)
	}
}
