package gpu

import (
	"context"
	"math"
	"testing"

	"pooled/compute/op"
)

// attending is a program over a cache that is long enough to be split.
func attending(t *testing.T, d *Device) op.Program {
	const width = 16
	q, out := must[op.Buffer](t)(d.Buffer("q", width, op.MaxCols)), must[op.Buffer](t)(d.Buffer("out", width, op.MaxCols))
	cache := must[op.KV](t)(d.KV("kv", 400, width, op.KVF32))
	b := d.Program("attend", op.MaxCols)
	b.Input(q)
	b.StoreKV(cache, q, q)
	b.Attend(out, q, cache, 2, 2)
	b.Output(out)
	return must[op.Program](t)(b.Build())
}

// Commands recorded ahead give the bits of those recorded in time; those that don't fit the run are thrown away.
func TestEncodeAhead(t *testing.T) {
	const width = 16
	positions := []int{0, 1, 2, 3, 10, 11, 12, 254, 255, 256, 257, 258, 320, 321, 3, 4}
	result := func(on bool) (all []float32, aheads, fit int64) {
		d := openTest(t, Options{})
		d.ahead = on
		p := attending(t, d)
		grid := gridOf(t, p)
		other, in, out := identity(t, d, 8)
		for i, pos := range positions {
			x := make([]float32, width)
			for j := range x {
				x[j] = float32(math.Sin(float64(i*width + j)))
			}
			o := op.Out{Hidden: make([]float32, width)}
			if err := p.Run(context.Background(), op.Frame{N: 1, Pos: pos}, x, &o); err != nil {
				t.Fatal(err)
			}
			all = append(all, o.Hidden...)
			// What was recorded after the run before is for the next position; the run after 5 and after 10 can't use it.
			if i > 0 && i != 6 && i != 11 && grid(positions[i-1]+1) == grid(pos) {
				fit++
			}
			switch i {
			case 5: // another program takes a slot of the ring
				if err := other.Run(context.Background(), op.Frame{N: 1}, in, out); err != nil {
					t.Fatal(err)
				}
			case 10: // the staging buffer is replaced
				if err := d.do(func() error { d.dropReadback(); return nil }); err != nil {
					t.Fatal(err)
				}
			}
		}
		p.Close()
		return all, d.aheads.Load(), fit
	}
	want, none, _ := result(false)
	got, some, fit := result(true)
	compareBits(t, 1, want, got)
	if fit < 8 || fit > 13 {
		t.Fatalf("%d of 15 runs fit: the positions no longer test both", fit)
	}
	if none != 0 || some != fit {
		t.Errorf("%d and %d runs used what was recorded ahead, want 0 and %d", none, some, fit)
	}
}

// gridOf returns what of a program's launches depends on the position: the number of splits of attention. From where on
// it splits is the device's business.
func gridOf(t *testing.T, p op.Program) func(pos int) uint32 {
	t.Helper()
	pr := p.(*program)
	for _, s := range pr.planned {
		if s.shape == bySplit {
			return func(pos int) uint32 { return s.attend.most(pos, 1) }
		}
	}
	t.Fatal("the program does not split its cache")
	return nil
}

// A program closed with commands in hand, and a device closed after it, free them.
func TestCloseWithCommandsAhead(t *testing.T) {
	d := openTest(t, Options{})
	d.ahead = true
	p, in, out := identity(t, d, 8)
	for range 3 {
		if err := p.Run(context.Background(), op.Frame{N: 1}, in, out); err != nil {
			t.Fatal(err)
		}
	}
	p.Close()
	q, in, out := identity(t, d, 8)
	if err := q.Run(context.Background(), op.Frame{N: 1}, in, out); err != nil {
		t.Error(err)
	}
}
