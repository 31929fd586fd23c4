package optest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"pooled/compute/gpu"
	"pooled/compute/op"
	"pooled/compute/quant"
	"pooled/compute/ref"
)

// eachLimits runs f with the GPU opened both ways.
func eachLimits(t *testing.T, f func(t *testing.T, g *rig)) {
	for _, mode := range []struct {
		name     string
		defaults bool
	}{{"adapter limits", false}, {"default limits", true}} {
		t.Run(mode.name, func(t *testing.T) { f(t, openGPU(t, mode.defaults)) })
	}
}

// gpus are the devices of all tests, with the adapter's and with default limits, opened when first asked for. Tests release what
// they make on them; pipelines stay, so that equal ones are compiled once.
var gpus = map[bool]func() (op.Device, error){false: opener(false), true: opener(true)}

func opener(defaults bool) func() (op.Device, error) {
	return sync.OnceValues(func() (op.Device, error) {
		d, err := gpu.Open(context.Background(), gpu.Options{DefaultLimits: defaults})
		if err == nil {
			opened = append(opened, d)
		}
		return d, err
	})
}

var opened []op.Device

func TestMain(m *testing.M) {
	code := m.Run()
	for _, d := range opened {
		d.Close()
	}
	os.Exit(code)
}

func openGPU(t testing.TB, defaults bool) *rig {
	t.Helper()
	d, err := gpus[defaults]()
	if errors.Is(err, op.ErrNoAdapter) && os.Getenv("POOLED_NO_GPU") == "1" {
		t.Skipf("SKIPPED, NOT TESTED: no GPU adapter and POOLED_NO_GPU=1: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, d}
}

func openRef(t testing.TB) *rig {
	d := ref.Open()
	t.Cleanup(func() { d.Close() })
	return &rig{t, d}
}

// on is the rig for a subtest.
func (r *rig) on(t testing.TB) *rig { return &rig{t, r.dev} }

// rig makes things on a device and fails the test when that fails.
type rig struct {
	t   testing.TB
	dev op.Device
}

func (r *rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) weight(typ quant.Type, rows, cols int, src io.Reader) op.Weight {
	r.t.Helper()
	w, err := r.dev.Load(r.t.Context(), op.WeightSpec{Name: "w", Type: typ, Rows: rows, Cols: cols, Src: src})
	r.check(err)
	r.t.Cleanup(w.Close)
	return w
}

func (r *rig) buffer(width int) op.Buffer {
	r.t.Helper()
	b, err := r.dev.Buffer("b", width, op.MaxCols)
	r.check(err)
	r.t.Cleanup(b.Close)
	return b
}

func (r *rig) kv(capacity, width int, typ op.KVType) op.KV {
	r.t.Helper()
	c, err := r.dev.KV("kv", capacity, width, typ)
	r.check(err)
	r.t.Cleanup(c.Close)
	return c
}

func (r *rig) rope(nRot int, theta float64, capacity int) op.Rope {
	r.t.Helper()
	p, err := r.dev.Rope(nRot, theta, capacity)
	r.check(err)
	r.t.Cleanup(p.Close)
	return p
}

func (r *rig) program(record func(b op.Builder)) op.Program {
	r.t.Helper()
	b := r.dev.Program("test", op.MaxCols)
	record(b)
	p, err := b.Build()
	r.check(err)
	r.t.Cleanup(p.Close)
	return p
}

// set fills the first columns of a buffer.
func (r *rig) set(b op.Buffer, data []float32) {
	r.t.Helper()
	p := r.program(func(rec op.Builder) { rec.Input(b) })
	r.check(p.Run(context.Background(), op.Frame{N: len(data) / b.Width()}, data, nil))
}

// run returns the columns of a program's Output.
func (r *rig) run(p op.Program, f op.Frame, in []float32, width int) []float32 {
	r.t.Helper()
	out := op.Out{Hidden: make([]float32, f.N*width)}
	r.check(p.Run(context.Background(), f, in, &out))
	return out.Hidden
}

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

// values are n inputs: normal ones with zeros, subnormals, large and negative ones between.
func values(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
		switch r.IntN(40) {
		case 0:
			v[i] = 0
		case 1:
			v[i] = 1e-40
		case 2:
			v[i] = -300
		case 3:
			v[i] = 250
		}
	}
	return v
}

func floatBytes(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// halves are the places of half-precision scales in a block, by format.
var halves = map[quant.Type][]int{quant.F16: {0}, quant.Q8_0: {0}, quant.Q4_0: {0}, quant.Q4_1: {0, 2}, quant.Q5_0: {0}, quant.Q5_1: {0, 2},
	quant.Q4_K: {0, 2}, quant.Q5_K: {0, 2}, quant.Q6_K: {208}}

// weights are the bytes of a matrix in file order: random bits with scales of a usual size, and zero, tiny and
// negative ones between.
func weights(r *rand.Rand, typ quant.Type, rows, cols int) []byte {
	f, ok := typ.Format()
	if !ok {
		panic("no such format")
	}
	var b []byte
	for range rows * cols / f.BlockLen {
		block := make([]byte, f.BlockBytes)
		for i := range block {
			block[i] = byte(r.IntN(256))
		}
		for _, at := range halves[typ] {
			d := float32(r.Float64() * 0.02)
			if f.BlockLen == 256 {
				d /= 32
			}
			switch r.IntN(50) {
			case 0:
				d = 0
			case 1:
				d = 3e-7 // a subnormal half
			case 2:
				d = -0.03
			}
			if typ == quant.F16 {
				d = float32(r.NormFloat64()) * 0.1
			}
			binary.LittleEndian.PutUint16(block[at:], quant.ToF16(d))
		}
		switch v := math.Float32bits(float32(r.NormFloat64())); {
		case typ == quant.F32 && r.IntN(30) != 0:
			binary.LittleEndian.PutUint32(block, v)
		case typ == quant.BF16 && r.IntN(30) != 0:
			binary.LittleEndian.PutUint16(block, uint16(v>>16))
		case typ == quant.F32 || typ == quant.BF16:
			clear(block)
		}
		b = append(b, block...)
	}
	return b
}

func load(r *rig, typ quant.Type, rows, cols int, data []byte) op.Weight {
	r.t.Helper()
	return r.weight(typ, rows, cols, bytes.NewReader(data))
}

// near fails the test unless got is finite, not constant and within the tolerance.
func near(t testing.TB, what string, tol Tolerance, got, want []float32, width int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d values, want %d", what, len(got), len(want))
	}
	for i, v := range got {
		if v-v != 0 {
			t.Fatalf("%s: value %d is %v", what, i, v)
		}
	}
	if len(got) > 1 && slices.Min(got) == slices.Max(got) {
		t.Fatalf("%s: all %d values are %v", what, len(got), got[0])
	}
	if d := tol.Compare(got, want, width); d.Excess > 0 {
		t.Errorf("%s: value %d: got %v, want %v, %.3g beyond %+v", what, d.At, d.Got, d.Want, d.Excess, tol)
	}
}

// same fails the test unless the bits are equal.
func same(t testing.TB, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("%s: value %d: got %v (%08x), want %v (%08x)", what, i,
				got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
			return
		}
	}
}

// sizes are the widths that every operation on vectors is tried with.
var sizes = []int{1, 31, 32, 33, 192, 255, 1024, 2560}

func caseName(format string, args ...any) string { return fmt.Sprintf(format, args...) }
