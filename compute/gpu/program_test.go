package gpu

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// parts are things to record wrongly with.
type parts struct {
	a, b, wide op.Buffer
	w, vec     op.Weight
	cache      op.KV
	rope       op.Rope
}

func newParts(t *testing.T, d *Device) parts {
	t.Helper()
	ctx := context.Background()
	return parts{
		a: must[op.Buffer](t)(d.Buffer("a", 8, op.MaxCols)), b: must[op.Buffer](t)(d.Buffer("b", 8, op.MaxCols)), wide: must[op.Buffer](t)(d.Buffer("wide", 9, op.MaxCols)),
		w:     must[op.Weight](t)(d.Load(ctx, op.WeightSpec{Name: "w", Type: quant.F32, Rows: 8, Cols: 8, Src: f32Bytes(make([]float32, 64)...)})),
		vec:   must[op.Weight](t)(d.Load(ctx, op.WeightSpec{Name: "vec", Type: quant.F32, Rows: 1, Cols: 8, Src: f32Bytes(make([]float32, 8)...)})),
		cache: must[op.KV](t)(d.KV("cache", 20, 8, op.KVF16)),
		rope:  must[op.Rope](t)(d.Rope(8, 1e4, 30)),
	}
}

func TestBuildRefuses(t *testing.T) {
	d, other := openTest(t, Options{}), openTest(t, Options{})
	x, foreign := newParts(t, d), newParts(t, other)
	released := must[op.Buffer](t)(d.Buffer("released", 8, op.MaxCols))
	released.Close()
	cases := map[string]struct {
		record func(b op.Builder)
		want   error
	}{
		"nothing":          {func(b op.Builder) {}, errArgument},
		"widths":           {func(b op.Builder) { b.MatVec(x.wide, x.w, x.a) }, errArgument},
		"norm width":       {func(b op.Builder) { b.RMSNorm(x.wide, x.a, x.vec, 1) }, errArgument},
		"norm in place":    {func(b op.Builder) { b.RMSNorm(x.a, x.a, x.vec, 1) }, errArgument},
		"matrix as vector": {func(b op.Builder) { b.RMSNorm(x.b, x.a, x.w, 1) }, errArgument},
		"in place":         {func(b op.Builder) { b.MatVec(x.a, x.w, x.a) }, errArgument},
		"silu in place":    {func(b op.Builder) { b.SiluMul(x.a, x.a, x.b) }, errArgument},
		"embed width":      {func(b op.Builder) { b.Embed(x.wide, x.w) }, errArgument},
		"two inputs":       {func(b op.Builder) { b.Input(x.a); b.Input(x.b) }, errArgument},
		"late input":       {func(b op.Builder) { b.MatVec(x.a, x.w, x.b); b.Input(x.a) }, errArgument},
		"no heads":         {func(b op.Builder) { b.NormRope(x.a, nil, 0, x.rope, 1) }, errArgument},
		"rope too wide":    {func(b op.Builder) { b.NormRope(x.a, nil, 2, x.rope, 1) }, errArgument},
		"cache width":      {func(b op.Builder) { b.StoreKV(x.cache, x.wide, x.a) }, errArgument},
		"head width":       {func(b op.Builder) { b.Attend(x.b, x.a, x.cache, 8, 8) }, errArgument},
		"two tails":        {func(b op.Builder) { b.Tail(x.a, x.b); b.Tail(x.b, x.a) }, errArgument},
		"after logits":     {func(b op.Builder) { b.Logits(x.a); b.Tail(x.b, x.a) }, errArgument},
		"output changed":   {func(b op.Builder) { b.Output(x.a); b.MatVec(x.a, x.w, x.b) }, errArgument},
		"foreign buffer":   {func(b op.Builder) { b.MatVec(foreign.a, x.w, x.b) }, errForeign},
		"foreign weight":   {func(b op.Builder) { b.MatVec(x.a, foreign.w, x.b) }, errForeign},
		"nil buffer":       {func(b op.Builder) { b.MatVec(nil, x.w, x.b) }, errForeign},
		"released buffer":  {func(b op.Builder) { b.MatVec(x.a, x.w, released) }, errReleased},
	}
	used := d.Used()
	for name, c := range cases {
		b := d.Program("program under test", op.MaxCols)
		c.record(b)
		if _, err := b.Build(); !errors.Is(err, c.want) || !strings.Contains(err.Error(), "program under test") {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if got := d.Used(); got != used {
		t.Errorf("%d bytes in use, %d before", got, used)
	}
}

func TestRunRefuses(t *testing.T) {
	d := openTest(t, Options{})
	x := newParts(t, d)
	build := func(record func(b op.Builder)) op.Program {
		b := d.Program("p", op.MaxCols)
		record(b)
		return must[op.Program](t)(b.Build())
	}
	tokens := build(func(b op.Builder) {
		b.Embed(x.a, x.w)
		b.NormRope(x.a, nil, 1, x.rope, 1)
		b.StoreKV(x.cache, x.a, x.a)
		b.Output(x.a)
		b.Tail(x.b, x.a)
		b.Logits(x.b)
	})
	hidden := build(func(b op.Builder) { b.Input(x.a); b.Output(x.a) })
	room := func(n int) [][]op.Candidate {
		top := make([][]op.Candidate, n)
		for i := range top {
			top[i] = make([]op.Candidate, 0, 4)
		}
		return top
	}
	ids := make([]int32, op.MaxCols+1)
	cases := map[string]struct {
		p   op.Program
		f   op.Frame
		in  []float32
		out *op.Out
	}{
		"no columns":        {tokens, op.Frame{}, nil, nil},
		"many columns":      {tokens, op.Frame{N: 17, Tokens: ids}, nil, nil},
		"before the start":  {tokens, op.Frame{N: 1, Pos: -1, Tokens: ids[:1]}, nil, nil},
		"past the cache":    {tokens, op.Frame{N: 2, Pos: 19, Tokens: ids[:2]}, nil, nil},
		"missing token":     {tokens, op.Frame{N: 2, Tokens: ids[:1]}, nil, nil},
		"unknown token":     {tokens, op.Frame{N: 1, Tokens: []int32{8}}, nil, nil},
		"negative token":    {tokens, op.Frame{N: 1, Tokens: []int32{-1}}, nil, nil},
		"head before":       {tokens, op.Frame{N: 1, HeadFrom: -1, Tokens: ids[:1]}, nil, nil},
		"head past the end": {tokens, op.Frame{N: 1, HeadFrom: 2, Tokens: ids[:1]}, nil, nil},
		"input not wanted":  {tokens, op.Frame{N: 1, Tokens: ids[:1]}, make([]float32, 8), nil},
		"short hidden":      {tokens, op.Frame{N: 2, Tokens: ids[:2]}, nil, &op.Out{Hidden: make([]float32, 8)}},
		"short logits":      {tokens, op.Frame{N: 2, Tokens: ids[:2]}, nil, &op.Out{Logits: make([]float32, 8)}},
		"many candidates":   {tokens, op.Frame{N: 1, Tokens: ids[:1]}, nil, &op.Out{K: 9, Top: room(1)}},
		"no room for them":  {tokens, op.Frame{N: 1, Tokens: ids[:1]}, nil, &op.Out{K: 5, Top: room(1)}},
		"columns of them":   {tokens, op.Frame{N: 2, Tokens: ids[:2]}, nil, &op.Out{K: 1, Top: room(1)}},
		"short input":       {hidden, op.Frame{N: 2}, make([]float32, 8), nil},
		"no logits":         {hidden, op.Frame{N: 1}, make([]float32, 8), &op.Out{K: 1, Top: room(1)}},
	}
	submits := d.Stats().Submits
	for name, c := range cases {
		if err := c.p.Run(context.Background(), c.f, c.in, c.out); !errors.Is(err, errArgument) {
			t.Errorf("%s: got %v, want %v", name, err, errArgument)
		}
	}
	if got := d.Stats().Submits; got != submits {
		t.Errorf("%d submits for refused runs", got-submits)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := hidden.Run(cancelled, op.Frame{N: 1}, make([]float32, 8), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	x.a.Close()
	if err := hidden.Run(context.Background(), op.Frame{N: 1}, make([]float32, 8), nil); !errors.Is(err, errReleased) {
		t.Errorf("after a buffer was closed: got %v, want %v", err, errReleased)
	}
}

// A run is one submit and at most one readback, and its number of launches is known.
func TestStats(t *testing.T) {
	d := openTest(t, Options{})
	p, in, out := identity(t, d, 32)
	before := d.Stats()
	run := func(out *op.Out) {
		if err := p.Run(context.Background(), op.Frame{N: 1}, in, out); err != nil {
			t.Fatal(err)
		}
	}
	run(out)
	run(nil)
	got := d.Stats().Since(before)
	got.Encoding, got.Waiting = 0, 0
	want := Stats{Launches: 2, Submits: 2, Readbacks: 1, Uploads: 4, BytesDown: 128, BytesUp: 2 * (frameSlot + 128)}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	d := openTest(t, Options{})
	p, in, out := identity(t, d, 32)
	ctx, frame := context.Background(), op.Frame{N: 1}
	got := testing.AllocsPerRun(50, func() {
		if err := p.Run(ctx, frame, in, out); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations per run, want 0", got)
	}
}

// A run that would take long is cut into several submits, with the same result, and ends with its
// context between two of them.
func TestLongRunsAreCut(t *testing.T) {
	d := openTest(t, Options{})
	const width = 64
	ctx := context.Background()
	r := make([]float32, width*width)
	for i := range r {
		r[i] = float32(i%13-6) / 50
	}
	w := must[op.Weight](t)(d.Load(ctx, op.WeightSpec{Name: "w", Rows: width, Cols: width, Src: f32Bytes(r...)}))
	x, y := must[op.Buffer](t)(d.Buffer("x", width, op.MaxCols)), must[op.Buffer](t)(d.Buffer("y", width, op.MaxCols))
	b := d.Program("long", op.MaxCols)
	b.Input(x)
	for range 5 {
		b.MatVec(y, w, x)
		b.MatVec(x, w, y)
	}
	b.Output(x)
	p := must[op.Program](t)(b.Build())
	run := func() ([]float32, int64) {
		out := op.Out{Hidden: make([]float32, 8*width)}
		in := make([]float32, 8*width)
		for i := range in {
			in[i] = float32(i % 7)
		}
		before := d.Stats().Submits
		if err := p.Run(ctx, op.Frame{N: 8}, in, &out); err != nil {
			t.Fatal(err)
		}
		return out.Hidden, d.Stats().Submits - before
	}
	want, submits := run()
	if submits != 1 {
		t.Errorf("%d submits, want 1", submits)
	}
	// Of ten steps two fit: a step reads the matrix for each of eight columns.
	d.do(func() error { d.mostWork = 2.5 * 8 * width * width * 4; return nil })
	got, submits := run()
	if submits != 5 {
		t.Errorf("%d submits, want 5", submits)
	}
	for i := range want {
		if got[i] != want[i] || want[0] == 0 {
			t.Fatalf("value %d: got %v, want %v", i, got[i], want[i])
		}
	}
	d.do(func() error { d.mostWork = 1; return nil })
	ending := &endsAfter{Context: ctx, calls: 3}
	err := p.Run(ending, op.Frame{N: 8}, make([]float32, 8*width), nil)
	if !errors.Is(err, context.Canceled) || d.Stats().Submits > 20 {
		t.Errorf("a context that ended: %v after %d submits", err, d.Stats().Submits)
	}
}

// endsAfter is a context that has ended when it was asked some times.
type endsAfter struct {
	context.Context
	calls int
}

func (e *endsAfter) Err() error {
	if e.calls--; e.calls < 0 {
		return context.Canceled
	}
	return nil
}

// The pace is measured where a submit takes long enough to say something.
func TestPace(t *testing.T) {
	d := &Device{submitTime: time.Second}
	p := &program{dev: d}
	if p.most() != firstPace {
		t.Errorf("at first %g, want %g", p.most(), float64(firstPace))
	}
	p.work, p.began = 1e10, time.Now().Add(-time.Microsecond)
	if p.paced(); p.pace < 1e10 {
		t.Errorf("a short submit of 1e10 set the pace to %g", p.pace)
	}
	fast := p.pace
	p.work, p.began = 1, time.Now().Add(-time.Microsecond)
	if p.paced(); p.pace != fast {
		t.Errorf("a shorter one changed the pace from %g to %g", fast, p.pace)
	}
	p.pace, p.work = 0, 1e10
	p.began = time.Now().Add(-10 * time.Second)
	if p.paced(); p.most() < 9e8 || p.most() > 1e9 {
		t.Errorf("1e10 in 10 s: %g a submit of a second, want just under 1e9", p.most())
	}
	p.work, p.began = 3e10, time.Now().Add(-10*time.Second)
	if p.paced(); p.most() < 19e8 || p.most() > 2e9 {
		t.Errorf("then 3e10: %g, want just under 2e9", p.most())
	}
	p.pace, p.work, p.began = 0, 1, time.Now().Add(-10*time.Second)
	if p.paced(); p.most() != slowestPace {
		t.Errorf("next to nothing in 10 s: %g, want %g", p.most(), float64(slowestPace))
	}
	s := &planned{bytes: 10, perPos: 2}
	if got := s.work(4, 3); got != 3*(10+2*7) {
		t.Errorf("work %g, want 72", got)
	}
}

// The library's waiting poll gives up after five seconds and frees what is in use: a slow adapter must be waited for
// otherwise. The run takes that long on any software adapter.
func TestSlowRunIsWaitedFor(t *testing.T) {
	d := openTest(t, Options{})
	if !d.Info().Software || testing.Short() {
		t.Skip("SKIPPED: for software adapters, and takes more than five seconds")
	}
	const width = 2048
	data := make([]float32, width*width)
	for i := range width {
		data[i*width+i] = 1
	}
	w := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Rows: width, Cols: width, Src: f32Bytes(data...)}))
	x, y := must[op.Buffer](t)(d.Buffer("x", width, op.MaxCols)), must[op.Buffer](t)(d.Buffer("y", width, op.MaxCols))
	in := make([]float32, op.MaxCols*width)
	for i := range in {
		in[i] = float32(i%101) / 8
	}
	for n := 8; ; n *= 2 {
		b := d.Program("slow", op.MaxCols)
		b.Input(x)
		for range n {
			b.MatVec(y, w, x)
			b.MatVec(x, w, y)
		}
		b.Output(x)
		p := must[op.Program](t)(b.Build())
		out := op.Out{Hidden: make([]float32, len(in))}
		began := time.Now()
		if err := p.Run(context.Background(), op.Frame{N: op.MaxCols}, in, &out); err != nil {
			t.Fatal(err)
		}
		for i := range in {
			if out.Hidden[i] != in[i] {
				t.Fatalf("%v, value %d: got %v, want %v", time.Since(began), i, out.Hidden[i], in[i])
			}
		}
		if took := time.Since(began); took > 6*time.Second {
			t.Logf("%d products took %v", 2*n, took)
			return
		}
	}
}
