package compute

import (
	"context"
	"fmt"
	"slices"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// Need is the device memory that a shard takes, in bytes.
type Need struct {
	Weights int64
	Caches  int64 // keys and values
	States  int64 // of recurrent layers, with what an undo takes
	Work    int64 // activations, tables, and what programs have for themselves
}

// Total is all of it.
func (n Need) Total() int64 { return n.Weights + n.Caches + n.States + n.Work }

// Need computes what LoadShard would take on a device. Nothing is made and no weight is read.
func (s ShardSpec) Need(dev op.Device, m *Model) (Need, error) {
	if err := s.check(m); err != nil {
		return Need{}, fmt.Errorf("compute: %w", err)
	}
	z := &sizer{dev: dev}
	l := &loader{
		run:    func() error { return nil },
		load:   func(w op.WeightSpec) (op.Weight, error) { return z.Load(context.Background(), w) },
		dev:    z,
		model:  m,
		spec:   s,
		report: func(int64) {},
	}
	newShard(l)
	if l.err != nil {
		return Need{}, fmt.Errorf("compute: %w", l.err)
	}
	return z.need, nil
}

// wideShare is how much of a shard's memory its wide passes may add: one part in so many.
const wideShare = 16

// Widened gives the shard the widest passes for prompts that add little memory to what it needs anyway, if the device gains by
// them.
func (s ShardSpec) Widened(dev op.Device, m *Model) (ShardSpec, error) {
	if !dev.Info().Wide || s.Lo == s.Hi {
		return s, nil
	}
	s.Wide = 0
	narrow, err := s.Need(dev, m)
	if err != nil {
		return s, err
	}
	for wide := op.MaxWide; wide >= 64; wide /= 2 {
		w := s
		w.Wide = wide
		need, err := w.Need(dev, m)
		if err == nil && need.Total()-narrow.Total() <= narrow.Total()/wideShare {
			return w, nil
		}
	}
	return s, nil
}

// sizer is a device that adds up what is asked of it and makes nothing. So a need follows from the same code as the
// loading.
type sizer struct {
	dev  op.Device
	need Need
}

// sized stands for anything that a sizer makes.
type sized struct {
	width, cols, capacity int
	bytes                 int64
	weight                op.WeightSpec
}

func (s *sized) Close()              {}
func (s *sized) Width() int          { return s.width }
func (s *sized) Cols() int           { return s.cols }
func (s *sized) NRot() int           { return s.width }
func (s *sized) Capacity() int       { return s.capacity }
func (s *sized) Bytes() int64        { return s.bytes }
func (s *sized) Spec() op.WeightSpec { return s.weight }
func (s *sized) Run(context.Context, op.Frame, []float32, *op.Out) error {
	return fmt.Errorf("%w: a program without a device", ErrCall)
}
func (s *sized) Chain(context.Context, op.Frame, []float32, op.Program, []int32) error {
	return fmt.Errorf("%w: a program without a device", ErrCall)
}

// sizedState is a recurrent state; its Spec is of another type.
type sizedState struct {
	sized
	spec op.RecurrentSpec
}

func (s *sizedState) Spec() op.RecurrentSpec { return s.spec }

func (z *sizer) Info() op.Info { return z.dev.Info() }
func (z *sizer) Used() int64   { return z.need.Total() }
func (z *sizer) Close() error  { return nil }

func (z *sizer) WeightBytes(t quant.Type, rows, cols int) int64 {
	return z.dev.WeightBytes(t, rows, cols)
}

func (z *sizer) Load(_ context.Context, w op.WeightSpec) (op.Weight, error) {
	w.Src = nil
	bytes := z.dev.WeightBytes(w.Type, w.Rows, w.Cols)
	if bytes == 0 {
		return nil, fmt.Errorf("%w: %v", op.ErrFormat, w.Type)
	}
	z.need.Weights += bytes
	return &sized{bytes: bytes, weight: w}, nil
}

func (z *sizer) Buffer(_ string, width, cols int) (op.Buffer, error) {
	z.need.Work += 4 * int64(cols) * int64(width)
	return &sized{width: width, cols: cols}, nil
}

func (z *sizer) KV(_ string, capacity, width int, t op.KVType) (op.KV, error) {
	bytes := 4 * int64(capacity) * int64(width)
	if t == op.KVF32 {
		bytes *= 2
	}
	z.need.Caches += bytes
	return &sized{width: width, capacity: capacity, bytes: bytes}, nil
}

func (z *sizer) Rope(nRot int, _ float64, capacity int) (op.Rope, error) {
	z.need.Work += 4 * int64(nRot) * int64(capacity)
	return &sized{width: nRot, capacity: capacity}, nil
}

func (z *sizer) Recurrent(_ string, r op.RecurrentSpec) (op.Recurrent, error) {
	bytes := r.Bytes() + r.UndoBytes()
	z.need.States += bytes
	return &sizedState{sized{bytes: bytes}, r}, nil
}

func (z *sizer) Memory([]op.KV, []op.Recurrent) (op.Memory, error) {
	return nil, fmt.Errorf("%w: memory without a device", ErrCall)
}

func (z *sizer) ProgramBytes(s op.Sketch) int64 { return z.dev.ProgramBytes(s) }

func (z *sizer) Program(_ string, cols int) op.Builder {
	return &sketcher{z: z, s: op.Sketch{Cols: cols}}
}

// sketcher is a builder that notes what the memory of a program depends on.
type sketcher struct {
	z *sizer
	s op.Sketch
}

func (k *sketcher) Build() (op.Program, error) {
	k.z.need.Work += k.z.dev.ProgramBytes(k.s)
	return &sized{}, nil
}

func (k *sketcher) Attend(_, q op.Buffer, cache op.KV, heads, kvHeads int) {
	k.s.Steps++
	a := op.AttendSize{Heads: heads, KVHeads: kvHeads, Head: q.Width() / heads, Capacity: cache.Capacity()}
	if !slices.Contains(k.s.Attend, a) {
		k.s.Attend = append(k.s.Attend, a)
	}
}

func (k *sketcher) Experts(out, x, _ op.Buffer, gate, _, _ op.Weight, experts, used int) {
	k.s.Steps++
	e := op.ExpertsSize{Used: used, Experts: experts, In: x.Width(), Inner: gate.Spec().Rows / experts, Out: out.Width()}
	if !slices.Contains(k.s.Experts, e) {
		k.s.Experts = append(k.s.Experts, e)
	}
}

func (k *sketcher) Logits(x op.Buffer) {
	k.s.Steps++
	k.s.Logits = x.Width()
}

func (k *sketcher) Embed(op.Buffer, op.Weight) {
	k.s.Steps++
	k.s.Embeds = true
}

func (k *sketcher) Input(op.Buffer)                                      { k.s.Steps++ }
func (k *sketcher) RMSNorm(op.Buffer, op.Buffer, op.Weight, float32)     { k.s.Steps++ }
func (k *sketcher) MatVec(op.Buffer, op.Weight, op.Buffer)               { k.s.Steps++ }
func (k *sketcher) MatVecRows(op.Buffer, op.Weight, op.Buffer)           { k.s.Steps++ }
func (k *sketcher) MatVecAdd(op.Buffer, op.Weight, op.Buffer)            { k.s.Steps++ }
func (k *sketcher) NormRope(op.Buffer, op.Weight, int, op.Rope, float32) { k.s.Steps++ }
func (k *sketcher) StoreKV(op.KV, op.Buffer, op.Buffer)                  { k.s.Steps++ }
func (k *sketcher) SiluMul(op.Buffer, op.Buffer, op.Buffer)              { k.s.Steps++ }
func (k *sketcher) Deinterleave(op.Buffer, op.Buffer, op.Buffer, int)    { k.s.Steps++ }
func (k *sketcher) SigmoidMul(op.Buffer, op.Buffer)                      { k.s.Steps++ }
func (k *sketcher) Conv(op.Buffer, op.Buffer, op.Weight, op.Recurrent)   { k.s.Steps++ }
func (k *sketcher) Delta(op.Buffer, op.Buffer, op.Buffer, op.Buffer, op.Weight, op.Weight, op.Recurrent, int) {
	k.s.Steps++
}
func (k *sketcher) NormGate(op.Buffer, op.Buffer, op.Buffer, op.Weight, int, float32) { k.s.Steps++ }
func (k *sketcher) Route(op.Buffer, op.Buffer, int)                                   { k.s.Steps++ }

func (k *sketcher) GateAdd(op.Buffer, op.Buffer, op.Buffer) { k.s.Steps++ }
func (k *sketcher) Concat(op.Buffer, op.Buffer, op.Buffer)  { k.s.Steps++ }
func (k *sketcher) Output(op.Buffer)                        { k.s.Steps++ }
func (k *sketcher) Tail(op.Buffer, op.Buffer)               { k.s.Steps++ }
