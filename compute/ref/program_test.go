package ref

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// small is a complete program: embedding, one attention layer without projections, a head.
func small(b *bench, capacity int) op.Program {
	const width, vocab = 16, 40
	table, norm := b.f32("table", vocab, width, random(20, vocab*width)), b.f32("norm", 1, width, random(21, width))
	x, q, o, last, logits := b.buf(width), b.buf(width), b.buf(width), b.buf(width), b.buf(vocab)
	cache, err := b.dev.KV("kv", capacity, width, op.KVF16)
	must(b.t, cache, err)
	turn, err := b.dev.Rope(8, 1e4, capacity)
	must(b.t, turn, err)
	return b.program(func(r op.Builder) {
		r.Embed(x, table)
		r.RMSNorm(q, x, norm, 1e-6)
		r.NormRope(q, nil, 2, turn, 0)
		r.StoreKV(cache, q, x)
		r.Attend(o, q, cache, 2, 2)
		r.Output(o)
		r.Tail(last, o)
		r.Logits(logitsOf(r, logits, table, last))
	})
}

func logitsOf(r op.Builder, out op.Buffer, table op.Weight, x op.Buffer) op.Buffer {
	r.MatVec(out, table, x)
	return out
}

func room(n, heads, k int) *op.Out {
	out := &op.Out{Hidden: make([]float32, n*16), Logits: make([]float32, heads*40), K: k, Top: make([][]op.Candidate, heads)}
	for i := range out.Top {
		out.Top[i] = make([]op.Candidate, 0, k)
	}
	return out
}

var tokens = []int32{3, 39, 0, 3, 17, 8, 8, 21, 30, 1, 2, 4, 5, 6, 7, 9}

// A column's bits depend neither on the columns beside it nor on the number of workers.
func TestColumnsAndWorkersDontMatter(t *testing.T) {
	whole := room(16, 16, 5)
	if err := small(newBench(t, 1), 16).Run(context.Background(), op.Frame{N: 16, Tokens: tokens}, nil, whole); err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{1, 2, 7} {
		for _, step := range []int{1, 3, 5} {
			p := small(newBench(t, workers), 16)
			for pos := 0; pos < 16; pos += step {
				n := min(step, 16-pos)
				out := room(n, 1, 5)
				if err := p.Run(context.Background(), op.Frame{Pos: pos, N: n, HeadFrom: n - 1, Tokens: tokens[pos : pos+n]}, nil, out); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(out.Hidden, whole.Hidden[pos*16:(pos+n)*16]) {
					t.Fatalf("%d workers, %d columns from %d: hidden values differ", workers, n, pos)
				}
				last := pos + n - 1
				if !slices.Equal(out.Logits, whole.Logits[last*40:(last+1)*40]) || !slices.Equal(out.Top[0], whole.Top[last]) {
					t.Fatalf("%d workers, %d columns from %d: logits differ", workers, n, pos)
				}
			}
		}
	}
}

func TestTopIsTheOrderOfLogits(t *testing.T) {
	out := room(2, 2, 40)
	if err := small(newBench(t, 2), 16).Run(context.Background(), op.Frame{N: 2, Tokens: tokens[:2]}, nil, out); err != nil {
		t.Fatal(err)
	}
	for c, top := range out.Top {
		if len(top) != 40 {
			t.Fatalf("column %d has %d candidates, want 40", c, len(top))
		}
		for i, x := range top {
			if x.Logit != out.Logits[c*40+int(x.ID)] {
				t.Errorf("column %d candidate %d has %g, want %g", c, i, x.Logit, out.Logits[c*40+int(x.ID)])
			}
			if i > 0 && top[i-1].Logit < x.Logit {
				t.Errorf("column %d candidate %d is larger than the one before", c, i)
			}
		}
	}
}

// What is recorded after a tail sees the head columns at their own positions.
func TestPositionsAfterTail(t *testing.T) {
	b := newBench(t, 2)
	x, last := b.buf(4), b.buf(4)
	table, err := b.dev.Rope(4, 10, 20)
	must(t, table, err)
	all := b.program(func(r op.Builder) {
		r.Input(x)
		r.NormRope(x, nil, 1, table, 0)
		r.Logits(x)
	})
	after := b.program(func(r op.Builder) {
		r.Input(x)
		r.Tail(last, x)
		r.NormRope(last, nil, 1, table, 0)
		r.Logits(last)
	})
	in := random(30, 3*4)
	want, got := op.Out{Logits: make([]float32, 12)}, op.Out{Logits: make([]float32, 4)}
	if err := all.Run(context.Background(), op.Frame{Pos: 5, N: 3}, in, &want); err != nil {
		t.Fatal(err)
	}
	if err := after.Run(context.Background(), op.Frame{Pos: 5, N: 3, HeadFrom: 2}, in, &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Logits, want.Logits[8:]) || slices.Equal(got.Logits, in[8:]) {
		t.Errorf("got %v, want %v, from %v", got.Logits, want.Logits[8:], in[8:])
	}
}

func TestRunRefuses(t *testing.T) {
	p := small(newBench(t, 2), 16)
	for _, c := range []struct {
		name string
		f    op.Frame
		in   []float32
		out  *op.Out
	}{
		{"no columns", op.Frame{}, nil, nil},
		{"too many columns", op.Frame{N: 17, Tokens: make([]int32, 17)}, nil, nil},
		{"negative columns", op.Frame{N: -1}, nil, nil},
		{"negative position", op.Frame{Pos: -1, N: 1, Tokens: tokens[:1]}, nil, nil},
		{"past the cache", op.Frame{Pos: 15, N: 2, Tokens: tokens[:2]}, nil, nil},
		{"position overflow", op.Frame{Pos: math.MaxInt, N: 2, Tokens: tokens[:2]}, nil, nil},
		{"token past the table", op.Frame{N: 1, Tokens: []int32{40}}, nil, nil},
		{"negative token", op.Frame{N: 1, Tokens: []int32{-1}}, nil, nil},
		{"too few tokens", op.Frame{N: 2, Tokens: tokens[:1]}, nil, nil},
		{"input without Input", op.Frame{N: 1, Tokens: tokens[:1]}, make([]float32, 16), nil},
		{"head past the columns", op.Frame{N: 1, HeadFrom: 2, Tokens: tokens[:1]}, nil, nil},
		{"negative head", op.Frame{N: 1, HeadFrom: -1, Tokens: tokens[:1]}, nil, nil},
		{"hidden of another size", op.Frame{N: 1, Tokens: tokens[:1]}, nil, &op.Out{Hidden: make([]float32, 15)}},
		{"logits of another size", op.Frame{N: 1, Tokens: tokens[:1]}, nil, &op.Out{Logits: make([]float32, 80)}},
		{"too many candidates", op.Frame{N: 1, Tokens: tokens[:1]}, nil, &op.Out{K: 65, Top: [][]op.Candidate{make([]op.Candidate, 65)}}},
		{"more candidates than tokens", op.Frame{N: 1, Tokens: tokens[:1]}, nil, &op.Out{K: 41, Top: [][]op.Candidate{make([]op.Candidate, 41)}}},
		{"no room for candidates", op.Frame{N: 1, Tokens: tokens[:1]}, nil, &op.Out{K: 2, Top: [][]op.Candidate{nil}}},
		{"candidates for another number of columns", op.Frame{N: 1, Tokens: tokens[:1]}, nil, &op.Out{K: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := p.Run(context.Background(), c.f, c.in, c.out); !errors.Is(err, errArgument) {
				t.Errorf("got %v, want a wrong argument", err)
			}
		})
	}
	if err := p.Run(context.Background(), op.Frame{Pos: 14, N: 2, HeadFrom: 2, Tokens: tokens[:2]}, nil, room(2, 0, 0)); err != nil {
		t.Errorf("the last two rows without a head: %v", err)
	}
}

func TestBuildRefuses(t *testing.T) {
	b := newBench(t, 1)
	x, y, z := b.buf(8), b.buf(8), b.buf(6)
	w, v := b.f32("w", 6, 8, random(1, 48)), b.f32("v", 1, 8, random(1, 8))
	cache, err := b.dev.KV("kv", 4, 8, op.KVF32)
	must(t, cache, err)
	turn, err := b.dev.Rope(8, 1e4, 4)
	must(t, turn, err)
	closed := b.buf(8)
	closed.Close()
	foreign := newBench(t, 1).buf(8)
	for _, c := range []struct {
		name   string
		record func(op.Builder)
		want   error
	}{
		{"nothing", func(op.Builder) {}, errArgument},
		{"nil buffer", func(r op.Builder) { r.Input(nil) }, errForeign},
		{"nil weight", func(r op.Builder) { r.MatVec(z, nil, x) }, errForeign},
		{"another device", func(r op.Builder) { r.Input(foreign) }, errForeign},
		{"closed", func(r op.Builder) { r.Input(closed) }, errClosed},
		{"two inputs", func(r op.Builder) { r.Input(x); r.Input(y) }, errArgument},
		{"embedding of another width", func(r op.Builder) { r.Embed(z, w) }, errArgument},
		{"norm of another width", func(r op.Builder) { r.RMSNorm(z, x, v, 0) }, errArgument},
		{"norm with a matrix", func(r op.Builder) { r.RMSNorm(x, y, w, 0) }, errArgument},
		{"matrix rows", func(r op.Builder) { r.MatVec(x, w, y) }, errArgument},
		{"matrix columns", func(r op.Builder) { r.MatVecAdd(z, w, z) }, errArgument},
		{"matrix in place", func(r op.Builder) { r.MatVec(x, b.f32("s", 8, 8, random(1, 64)), x) }, errArgument},
		{"heads that don't divide", func(r op.Builder) { r.NormRope(x, nil, 3, turn, 0) }, errArgument},
		{"no heads", func(r op.Builder) { r.NormRope(x, nil, 0, turn, 0) }, errArgument},
		{"rotation wider than a head", func(r op.Builder) { r.NormRope(x, nil, 2, turn, 0) }, errArgument},
		{"keys of another width", func(r op.Builder) { r.StoreKV(cache, z, x) }, errArgument},
		{"attention widths", func(r op.Builder) { r.Attend(z, x, cache, 2, 2) }, errArgument},
		{"attention heads", func(r op.Builder) { r.Attend(y, x, cache, 3, 2) }, errArgument},
		{"attention in place", func(r op.Builder) { r.Attend(x, x, cache, 2, 2) }, errArgument},
		{"silu widths", func(r op.Builder) { r.SiluMul(x, y, z) }, errArgument},
		{"tail widths", func(r op.Builder) { r.Tail(x, z) }, errArgument},
		{"two tails", func(r op.Builder) { r.Tail(x, y); r.Tail(x, y) }, errArgument},
		{"output after the tail", func(r op.Builder) { r.Tail(x, y); r.Output(y) }, errArgument},
		{"after logits", func(r op.Builder) { r.Logits(x); r.Output(x) }, errArgument},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := b.dev.Program("wrong", op.MaxCols)
			c.record(r)
			if p, err := r.Build(); !errors.Is(err, c.want) || p != nil {
				t.Errorf("got %v, %v; want %v", p, err, c.want)
			}
		})
	}
}

func TestMemoryRefuses(t *testing.T) {
	b := newBench(t, 1)
	load := func(s op.WeightSpec, src string) error {
		s.Src = strings.NewReader(src)
		_, err := b.dev.Load(context.Background(), s)
		return err
	}
	kv := func(capacity, width int) error { _, err := b.dev.KV("kv", capacity, width, op.KVF16); return err }
	rope := func(n int, theta float64, capacity int) error {
		_, err := b.dev.Rope(n, theta, capacity)
		return err
	}
	buf := func(width int) error { _, err := b.dev.Buffer("b", width, op.MaxCols); return err }
	for _, c := range []struct {
		name string
		got  error
		want error
	}{
		{"format", load(op.WeightSpec{Type: 99, Rows: 1, Cols: 32}, ""), op.ErrFormat},
		{"part of a block", load(op.WeightSpec{Type: quant.Q8_0, Rows: 1, Cols: 31}, ""), quant.ErrShape},
		{"short file", load(op.WeightSpec{Type: quant.F32, Rows: 1, Cols: 2}, "1234567"), io.ErrUnexpectedEOF},
		{"empty file", load(op.WeightSpec{Type: quant.F32, Rows: 1, Cols: 2}, ""), io.ErrUnexpectedEOF},
		{"no rows", load(op.WeightSpec{Type: quant.F32, Rows: 0, Cols: 2}, ""), errArgument},
		{"too large", load(op.WeightSpec{Type: quant.F32, Rows: 1 << 20, Cols: 1 << 20}, ""), op.ErrMemory},
		{"cache without rows", kv(0, 4), errArgument},
		{"cache too large", kv(math.MaxInt/2, 4), op.ErrMemory},
		{"odd rotation", rope(3, 1e4, 4), errArgument},
		{"no theta", rope(4, math.NaN(), 4), errArgument},
		{"table too large", rope(4, 1e4, math.MaxInt/2), op.ErrMemory},
		{"no width", buf(0), errArgument},
		{"width too large", buf(math.MaxInt), errArgument},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
	if used := b.dev.Used(); used != 0 {
		t.Errorf("%d bytes in use after refusals", used)
	}
}

func TestNotFinite(t *testing.T) {
	b := newBench(t, 2)
	x := b.buf(4)
	p := b.program(func(r op.Builder) { r.Input(x); r.Output(x); r.Logits(x) })
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		name string
		in   []float32
		out  *op.Out
		want error
	}{
		{"NaN in hidden", []float32{1, nan, 2, 3}, &op.Out{Hidden: make([]float32, 4)}, op.ErrNotFinite},
		{"infinity in logits", []float32{1, inf, 2, 3}, &op.Out{Logits: make([]float32, 4)}, op.ErrNotFinite},
		{"NaN below the candidates", []float32{1, nan, 2, 3}, &op.Out{K: 1, Top: [][]op.Candidate{make([]op.Candidate, 1)}}, op.ErrNotFinite},
		{"not read back", []float32{1, nan, 2, 3}, &op.Out{}, nil},
		{"finite", []float32{1, 0, 2, math.MaxFloat32}, &op.Out{Hidden: make([]float32, 4)}, nil},
	} {
		if err := p.Run(context.Background(), op.Frame{N: 1}, c.in, c.out); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if !strings.Contains(op.ErrNotFinite.Error(), "NaN") {
		t.Errorf("%q doesn't contain NaN", op.ErrNotFinite)
	}
}

// cancelAfter cancels when it was read once.
type cancelAfter struct {
	io.Reader
	cancel context.CancelFunc
}

func (c cancelAfter) Read(p []byte) (int, error) { c.cancel(); return c.Reader.Read(p) }

func TestCancel(t *testing.T) {
	b := newBench(t, 2)
	p := small(b, 16)
	ctx, cancel := context.WithCancel(context.Background())
	src := cancelAfter{bytes.NewReader(make([]byte, 2*readChunk)), cancel}
	if _, err := b.dev.Load(ctx, op.WeightSpec{Type: quant.F32, Rows: 2, Cols: readChunk / 4, Src: src}); !errors.Is(err, context.Canceled) {
		t.Errorf("load: got %v, want canceled", err)
	}
	if err := p.Run(ctx, op.Frame{N: 1, Tokens: tokens[:1]}, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("run: got %v, want canceled", err)
	}
	b.dev.turn <- struct{}{} // as if another program were running
	if err := p.Run(ctx, op.Frame{N: 1, Tokens: tokens[:1]}, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for the turn: got %v, want canceled", err)
	}
	<-b.dev.turn
}

func TestClosed(t *testing.T) {
	b := newBench(t, 2)
	p := small(b, 16)
	frame := op.Frame{N: 1, Tokens: tokens[:1]}
	x := b.buf(4)
	q := b.program(func(r op.Builder) { r.Input(x) })
	before := b.dev.Used()
	x.Close()
	x.Close()
	if got, want := b.dev.Used(), before-4*4*op.MaxCols; got != want {
		t.Errorf("%d bytes in use after closing a buffer twice, want %d", got, want)
	}
	if err := q.Run(context.Background(), op.Frame{N: 1}, make([]float32, 4), nil); !errors.Is(err, errClosed) {
		t.Errorf("run with a closed buffer: got %v", err)
	}
	p.Close()
	if err := p.Run(context.Background(), frame, nil, nil); !errors.Is(err, errClosed) {
		t.Errorf("run of a closed program: got %v", err)
	}
	p = small(b, 16)
	for range 2 {
		if err := b.dev.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Run(context.Background(), frame, nil, nil); !errors.Is(err, errClosed) {
		t.Errorf("run on a closed device: got %v", err)
	}
	if _, err := b.dev.Buffer("late", 4, op.MaxCols); !errors.Is(err, errClosed) {
		t.Errorf("buffer on a closed device: got %v", err)
	}
}

func TestSteadyRunsDontAllocateMuch(t *testing.T) {
	p := small(newBench(t, 1), 16)
	out := room(1, 1, 5)
	frame := op.Frame{N: 1, Tokens: tokens[:1]}
	ctx := context.Background()
	if n := testing.AllocsPerRun(50, func() {
		if err := p.Run(ctx, frame, nil, out); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%g allocations per run, want 0", n)
	}
}
