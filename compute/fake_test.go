package compute_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"pooled/compute/op"
	"pooled/compute/quant"
)

var errFake = errors.New("made to fail")

// fake is a device that computes nothing. It counts what is made, fails at the failAt-th call (from 1), and notes in
// which order things are closed.
type fake struct {
	failAt, calls int
	made, closed  []string
	loads         []string
	onCall        func(call int)
	used          int64
	ran           int
}

// thing is everything that a fake device makes.
type thing struct {
	d     *fake
	name  string
	width int
	bytes int64
	spec  op.WeightSpec
	done  bool
}

func (d *fake) make(name string, width int, bytes int64) (*thing, error) {
	d.calls++
	if d.onCall != nil {
		d.onCall(d.calls)
	}
	if d.calls == d.failAt {
		return nil, fmt.Errorf("%s: %w", name, errFake)
	}
	d.made = append(d.made, name)
	d.used += bytes
	return &thing{d: d, name: name, width: width, bytes: bytes}, nil
}

func (t *thing) Close() {
	if t.done {
		return
	}
	t.done = true
	t.d.closed = append(t.d.closed, t.name)
	t.d.used -= t.bytes
}

func (t *thing) Width() int          { return t.width }
func (t *thing) NRot() int           { return t.width }
func (t *thing) Cols() int           { return op.MaxCols }
func (t *thing) Capacity() int       { return 1 << 20 }
func (t *thing) Bytes() int64        { return t.bytes }
func (t *thing) Spec() op.WeightSpec { return t.spec }

// Run fills what is asked for with zeros.
func (t *thing) Run(ctx context.Context, f op.Frame, in []float32, out *op.Out) error {
	t.d.ran++
	clear(out.Hidden)
	clear(out.Logits)
	for i := range out.Top {
		out.Top[i] = out.Top[i][:out.K]
	}
	return ctx.Err()
}

// Chain finds token 0 each time.
func (t *thing) Chain(ctx context.Context, _ op.Frame, _ []float32, _ op.Program, ids []int32) error {
	t.d.ran++
	clear(ids)
	return ctx.Err()
}

func (d *fake) Info() op.Info { return op.Info{Backend: "fake"} }
func (d *fake) Used() int64   { return d.used }
func (d *fake) Close() error  { return nil }

func (d *fake) Load(ctx context.Context, w op.WeightSpec) (op.Weight, error) {
	d.loads = append(d.loads, w.Name)
	n, err := io.Copy(io.Discard, w.Src)
	if err != nil {
		return nil, err
	}
	w.Src = nil
	t, err := d.make(w.Name, 0, n)
	if err != nil {
		return nil, err
	}
	t.spec = w
	return t, nil
}

func (d *fake) Buffer(name string, width, cols int) (op.Buffer, error) {
	return orNil[op.Buffer](d.make(name, width, 4*int64(cols)*int64(width)))
}

func (d *fake) KV(name string, capacity, width int, t op.KVType) (op.KV, error) {
	return orNil[op.KV](d.make(name, width, int64(capacity*width)))
}

func (d *fake) Rope(nRot int, theta float64, capacity int) (op.Rope, error) {
	return orNil[op.Rope](d.make("rope", nRot, int64(nRot*capacity)))
}

// recurrent and memory need methods of their own: Spec and Bytes are taken.
type fakeRecurrent struct {
	*thing
	spec op.RecurrentSpec
}

func (r fakeRecurrent) Spec() op.RecurrentSpec { return r.spec }

func (d *fake) Recurrent(name string, r op.RecurrentSpec) (op.Recurrent, error) {
	t, err := d.make(name, 0, r.Bytes()+r.UndoBytes())
	if err != nil {
		return nil, err
	}
	return fakeRecurrent{t, r}, nil
}

type fakeMemory struct{ *thing }

func (m fakeMemory) Apply(ctx context.Context, _ op.Control) error { return ctx.Err() }
func (m fakeMemory) Slots() []int                                  { return nil }

func (d *fake) Memory([]op.KV, []op.Recurrent) (op.Memory, error) {
	t, err := d.make("memory", 0, 0)
	if err != nil {
		return nil, err
	}
	return fakeMemory{t}, nil
}

func (d *fake) WeightBytes(t quant.Type, rows, cols int) int64 {
	n, err := quant.Bytes(t, cols, rows)
	if err != nil {
		return 0
	}
	return n
}

func (d *fake) ProgramBytes(op.Sketch) int64 { return 0 }

func (d *fake) Program(name string, _ int) op.Builder { return &fakeBuilder{d: d, name: name} }

// orNil avoids an interface that holds a nil pointer.
func orNil[T any](t *thing, err error) (made T, _ error) {
	if err != nil {
		return made, err
	}
	return any(t).(T), nil
}

// fakeBuilder notes the operations' names.
type fakeBuilder struct {
	d    *fake
	name string
	ops  []string
}

func (b *fakeBuilder) Build() (op.Program, error) {
	if !slices.Contains(b.ops, "source") {
		return nil, errors.New("a program without a source")
	}
	return orNil[op.Program](b.d.make("program "+b.name, 0, 0))
}

func (b *fakeBuilder) Embed(op.Buffer, op.Weight)                           { b.ops = append(b.ops, "source") }
func (b *fakeBuilder) Input(op.Buffer)                                      { b.ops = append(b.ops, "source") }
func (b *fakeBuilder) RMSNorm(op.Buffer, op.Buffer, op.Weight, float32)     {}
func (b *fakeBuilder) MatVec(op.Buffer, op.Weight, op.Buffer)               {}
func (b *fakeBuilder) MatVecRows(op.Buffer, op.Weight, op.Buffer)           {}
func (b *fakeBuilder) MatVecAdd(op.Buffer, op.Weight, op.Buffer)            {}
func (b *fakeBuilder) NormRope(op.Buffer, op.Weight, int, op.Rope, float32) {}
func (b *fakeBuilder) StoreKV(op.KV, op.Buffer, op.Buffer)                  {}
func (b *fakeBuilder) Attend(op.Buffer, op.Buffer, op.KV, int, int)         {}
func (b *fakeBuilder) SiluMul(op.Buffer, op.Buffer, op.Buffer)              {}
func (b *fakeBuilder) Output(op.Buffer)                                     {}
func (b *fakeBuilder) Tail(op.Buffer, op.Buffer)                            {}
func (b *fakeBuilder) Logits(op.Buffer)                                     {}
func (b *fakeBuilder) Deinterleave(op.Buffer, op.Buffer, op.Buffer, int)    {}
func (b *fakeBuilder) SigmoidMul(op.Buffer, op.Buffer)                      {}
func (b *fakeBuilder) Conv(op.Buffer, op.Buffer, op.Weight, op.Recurrent)   {}
func (b *fakeBuilder) Delta(op.Buffer, op.Buffer, op.Buffer, op.Buffer, op.Weight, op.Weight, op.Recurrent, int) {
}
func (b *fakeBuilder) NormGate(op.Buffer, op.Buffer, op.Buffer, op.Weight, int, float32) {}
func (b *fakeBuilder) Route(op.Buffer, op.Buffer, int)                                   {}
func (b *fakeBuilder) Experts(op.Buffer, op.Buffer, op.Buffer, op.Weight, op.Weight, op.Weight, int, int) {
}
func (b *fakeBuilder) GateAdd(op.Buffer, op.Buffer, op.Buffer) {}
func (b *fakeBuilder) Concat(op.Buffer, op.Buffer, op.Buffer)  {}
