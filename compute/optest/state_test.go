package optest

import (
	"errors"
	"slices"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// net is one DeltaNet layer on a device: its input is [convolution | alpha | beta] in three buffers.
type net struct {
	r                 *rig
	spec              op.RecurrentSpec
	keys              int
	u, y, al, be, out op.Buffer
	st                op.Recurrent
	mem               op.Memory
	step              op.Program
	in                [3][]float32 // columns of u, alpha, beta
}

// netCase has keys key heads and values value heads of dim.
type netCase struct{ keys, values, dim, taps int }

const netColumns = 32

func newNet(r *rig, c netCase) *net {
	r.t.Helper()
	spec := op.RecurrentSpec{Channels: (2*c.keys + c.values) * c.dim, Taps: c.taps, Heads: c.values, Dim: c.dim}
	n := &net{r: r, spec: spec, keys: c.keys}
	n.u, n.y, n.al, n.be, n.out = r.buffer(spec.Channels), r.buffer(spec.Channels), r.buffer(c.values), r.buffer(c.values), r.buffer(c.values*c.dim)
	var err error
	n.st, err = r.dev.Recurrent("state", spec)
	r.check(err)
	r.t.Cleanup(n.st.Close)
	n.mem, err = r.dev.Memory(nil, []op.Recurrent{n.st})
	r.check(err)
	r.t.Cleanup(n.mem.Close)
	taps := load(r, quant.F32, spec.Channels, c.taps, weights(rng(100), quant.F32, spec.Channels, c.taps))
	a := values(rng(101), c.values)
	for i := range a {
		a[i] = -0.01 - 0.3*float32(i)
	}
	ssmA, dt := load(r, quant.F32, 1, c.values, floatBytes(a)), load(r, quant.F32, 1, c.values, weights(rng(102), quant.F32, 1, c.values))
	n.step = r.program(func(b op.Builder) {
		b.Input(n.u)
		b.Conv(n.y, n.u, taps, n.st)
		b.Delta(n.out, n.y, n.al, n.be, ssmA, dt, n.st, c.keys)
		b.Output(n.out)
	})
	for i, w := range []int{spec.Channels, c.values, c.values} {
		n.in[i] = values(rng(uint64(103+i)), netColumns*w)
		for j := range n.in[i] {
			n.in[i][j] *= 0.2
		}
	}
	return n
}

// run treats columns from to to-1 in one run.
func (n *net) run(from, to int, spec bool) []float32 {
	n.r.t.Helper()
	h, ch := n.spec.Heads, n.spec.Channels
	n.r.set(n.al, n.in[1][from*h:to*h])
	n.r.set(n.be, n.in[2][from*h:to*h])
	return n.r.run(n.step, op.Frame{N: to - from, Pos: from, Spec: spec}, n.in[0][from*ch:to*ch], h*n.spec.Dim)
}

// all treats all columns from the start, step in a run.
func (n *net) all(step int) (out []float32) {
	n.r.t.Helper()
	n.control(op.Control{Reset: true})
	for i := 0; i < netColumns; i += step {
		out = append(out, n.run(i, min(i+step, netColumns), false)...)
	}
	return out
}

func (n *net) control(c op.Control) {
	n.r.t.Helper()
	n.r.check(n.mem.Apply(n.r.t.Context(), c))
}

var netCases = []netCase{{2, 4, 64, 4}, {2, 6, 128, 4}, {1, 1, 16, 2}, {3, 3, 32, 5}, {1, 2, 6, 4}, {1, 1, 1, 3}}

func TestDelta(t *testing.T) {
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, c := range netCases {
			t.Run(caseName("%d and %d heads of %d, %d taps", c.keys, c.values, c.dim, c.taps), func(t *testing.T) {
				n := newNet(g.on(t), c)
				single := n.all(1)
				near(t, "delta", TolDelta, single, newNet(openRef(t), c).all(16), c.values*c.dim)
				for _, step := range []int{2, 7, 16} {
					same(t, caseName("%d together", step), n.all(step), single)
				}
			})
		}
	})
}

// TestUndo keeps a run's columns and takes some back: what follows has the bits of a state that never saw them.
func TestUndo(t *testing.T) {
	eachLimits(t, func(t *testing.T, g *rig) {
		for _, c := range netCases {
			t.Run(caseName("%d and %d heads of %d, %d taps", c.keys, c.values, c.dim, c.taps), func(t *testing.T) {
				n := newNet(g.on(t), c)
				want := n.all(1)
				width := c.values * c.dim
				for _, took := range []int{1, 4, 8} {
					n.control(op.Control{Reset: true})
					n.run(0, 5, false)
					n.run(5, 13, true)
					n.control(op.Control{Rollback: took})
					same(t, caseName("%d of 8 taken", took), n.run(5+took, 20, true), want[(5+took)*width:20*width])
					if err := n.mem.Apply(t.Context(), op.Control{Rollback: 16}); !errors.Is(err, op.ErrUndo) {
						t.Errorf("16 of %d: got %v, want ErrUndo", 15-took, err)
					}
				}
				n.run(20, 24, false)
				if err := n.mem.Apply(t.Context(), op.Control{Rollback: 1}); !errors.Is(err, op.ErrUndo) {
					t.Errorf("after a run that kept nothing: got %v, want ErrUndo", err)
				}
			})
		}
	})
}

func TestSlots(t *testing.T) {
	eachLimits(t, func(t *testing.T, g *rig) {
		c := netCases[0]
		n := newNet(g.on(t), c)
		want, width := n.all(1), c.values*c.dim
		n.control(op.Control{Reset: true})
		n.run(0, 10, false)
		n.control(op.Control{Save: 7})
		n.run(10, 20, true)
		// In order: 4 of the 10 stay and are saved, slot 7 is loaded.
		n.control(op.Control{Rollback: 4, Save: 9, Reset: true, Load: 7})
		same(t, "slot 7", n.run(10, 12, false), want[10*width:12*width])
		n.control(op.Control{Load: 9})
		same(t, "slot 9", n.run(14, 20, false), want[14*width:20*width])
		if got := n.mem.Slots(); !slices.Equal(got, []int{7, 9}) {
			t.Errorf("slots: got %v, want 7 and 9", got)
		}
		if got := n.mem.Bytes(); got != 2*n.spec.Bytes() {
			t.Errorf("bytes: got %d, want %d", got, 2*n.spec.Bytes())
		}
		for name, c := range map[string]op.Control{"a missing one": {Load: 8}, "a dropped one": {Drop: []int{7}, Load: 7}} {
			if err := n.mem.Apply(t.Context(), c); !errors.Is(err, op.ErrSlot) {
				t.Errorf("%s: got %v, want ErrSlot", name, err)
			}
		}
		for _, c := range []op.Control{{Save: op.MaxSlot + 1}, {Load: -1}, {Rollback: -1}, {Rollback: op.MaxCols + 1}} {
			if err := n.mem.Apply(t.Context(), c); err == nil {
				t.Errorf("%+v: no error", c)
			}
		}
		before := g.dev.Used()
		n.control(op.Control{Drop: []int{7, 8}})
		n.control(op.Control{DropAll: true})
		if got := before - g.dev.Used(); got != 2*n.spec.Bytes() {
			t.Errorf("dropping all freed %d bytes, want %d", got, 2*n.spec.Bytes())
		}
	})
}

// TestSlotsOfCaches saves rows of a KV cache, overwrites them and loads them back.
func TestSlotsOfCaches(t *testing.T) {
	for _, typ := range []op.KVType{op.KVF16, op.KVF32} {
		t.Run(typ.String(), func(t *testing.T) {
			eachLimits(t, func(t *testing.T, g *rig) {
				const width = 16
				k, v, q, out, cache := g.buffer(width), g.buffer(width), g.buffer(width), g.buffer(width), g.kv(40, width, typ)
				mem, err := g.dev.Memory([]op.KV{cache}, nil)
				g.check(err)
				store := g.program(func(b op.Builder) { b.Input(k); b.StoreKV(cache, k, v) })
				read := g.program(func(b op.Builder) { b.Input(q); b.Attend(out, q, cache, 2, 2); b.Output(out) })
				fill := func(pos int, seed uint64) {
					g.set(v, values(rng(seed), 10*width))
					g.check(store.Run(t.Context(), op.Frame{N: 10, Pos: pos}, values(rng(seed+1), 10*width), nil))
				}
				look := func(pos int) []float32 { return g.run(read, op.Frame{N: 1, Pos: pos}, values(rng(1), width), width) }
				fill(0, 10)
				fill(10, 20)
				want, whole := look(9), look(19)
				g.check(mem.Apply(t.Context(), op.Control{Save: 1, Pos: 10}))
				g.check(mem.Apply(t.Context(), op.Control{Save: 2, Pos: 0, Rollback: 3}))
				fill(0, 30)
				if slices.Equal(look(9), want) {
					t.Fatal("other rows gave the same result")
				}
				g.check(mem.Apply(t.Context(), op.Control{Load: 2}))
				if slices.Equal(look(9), want) {
					t.Error("an empty slot brought rows back")
				}
				g.check(mem.Apply(t.Context(), op.Control{Load: 1}))
				same(t, "saved rows", look(9), want)
				same(t, "rows after them", look(19), whole)
				mem.Close()
				if err := mem.Apply(t.Context(), op.Control{Load: 1}); err == nil {
					t.Error("a closed memory took a control")
				}
			})
		})
	}
}
