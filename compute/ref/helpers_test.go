package ref

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"pooled/compute/op"
	"pooled/compute/quant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench makes what a test needs on one device and ends the test on errors.
type bench struct {
	t   testing.TB
	dev *device
}

func newBench(t testing.TB, workers int) *bench {
	t.Helper()
	d := open(workers)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if used := d.Used(); used != 0 {
			t.Errorf("%d bytes in use after Close", used)
		}
	})
	return &bench{t, d}
}

func must[T any](t testing.TB, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (b *bench) f32(name string, rows, cols int, values []float32) op.Weight {
	b.t.Helper()
	raw := make([]byte, 4*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(v))
	}
	return b.load(name, quant.F32, rows, cols, raw)
}

func (b *bench) load(name string, t quant.Type, rows, cols int, raw []byte) op.Weight {
	b.t.Helper()
	w, err := b.dev.Load(context.Background(), op.WeightSpec{Name: name, Type: t, Rows: rows, Cols: cols, Src: bytes.NewReader(raw)})
	return must(b.t, w, err)
}

func (b *bench) buf(width int) op.Buffer {
	b.t.Helper()
	x, err := b.dev.Buffer("test", width, op.MaxCols)
	return must(b.t, x, err)
}

func (b *bench) program(record func(op.Builder)) op.Program {
	b.t.Helper()
	r := b.dev.Program("test", op.MaxCols)
	record(r)
	p, err := r.Build()
	return must(b.t, p, err)
}

// apply runs record, whose source is a buffer of inWidth and whose result is a buffer of outWidth, over n columns.
func (b *bench) apply(record func(r op.Builder, out, in op.Buffer), outWidth, inWidth, pos, n int, in []float32) []float32 {
	b.t.Helper()
	x, out := b.buf(inWidth), b.buf(outWidth)
	p := b.program(func(r op.Builder) {
		r.Input(x)
		record(r, out, x)
		r.Output(out)
	})
	got := op.Out{Hidden: make([]float32, n*outWidth)}
	if err := p.Run(context.Background(), op.Frame{Pos: pos, N: n, HeadFrom: n}, in, &got); err != nil {
		b.t.Fatal(err)
	}
	return got.Hidden
}

func random(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		switch r.IntN(12) {
		case 0:
			v[i] = 0
		case 1:
			v[i] = 1e-40 // subnormal
		case 2:
			v[i] = float32(r.NormFloat64() * 30)
		default:
			v[i] = float32(r.NormFloat64())
		}
	}
	return v
}

// near compares with a float64 result: one float32 rounding, plus what the order of a float64 sum can change.
func near(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if diff := math.Abs(float64(got[i]) - want[i]); !(diff <= 1e-7*math.Abs(want[i])+1e-10) {
			t.Fatalf("%s: value %d is %g, want %g", what, i, got[i], want[i])
		}
	}
}
