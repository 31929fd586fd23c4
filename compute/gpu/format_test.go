package gpu

import (
	"context"
	"errors"
	"sync"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
	"pooled/shaders"
)

// Every format has a layout that kernels read, with as many arrays.
func TestFormatsHaveKernels(t *testing.T) {
	for typ, f := range formats {
		if _, ok := typ.Format(); !ok {
			t.Errorf("%v: package quant doesn't know it", typ)
		}
		for _, name := range []string{f.kernel("embed", ""), f.kernel("matvec", ""), f.kernel("matvec", "_cols")} {
			if k, ok := shaders.Lookup(name); !ok || k.Weights != len(f.arrays) {
				t.Errorf("%v: kernel %s with %d arrays, want %d", typ, name, k.Weights, len(f.arrays))
			}
		}
	}
}

// Repacking moves bits: blocks of a single bit give arrays of a single bit, each its own. (Widened formats, whose bits are
// not moved, are left out; package optest compares values.)
func TestRepackMovesBits(t *testing.T) {
	for _, typ := range []quant.Type{quant.F16, quant.Q8_0, quant.Q4_0, quant.Q4_1, quant.Q5_1, quant.Q4_K, quant.Q5_K, quant.Q6_K} {
		f, q := formats[typ], must2(typ.Format())(t)
		seen := make(map[[2]int]int)
		for bit := range 8 * q.BlockBytes {
			src := make([]byte, q.BlockBytes)
			src[bit/8] = 1 << (bit % 8)
			var dst [][]byte
			for _, n := range f.arrays {
				dst = append(dst, make([]byte, n))
			}
			f.repack(dst, src)
			set := 0
			for i, a := range dst {
				for j := range 8 * len(a) {
					if a[j/8]>>(j%8)&1 == 1 {
						set++
						if was, ok := seen[[2]int{i, j}]; ok {
							t.Fatalf("%v: bits %d and %d both become bit %d of array %d", typ, was, bit, j, i)
						}
						seen[[2]int{i, j}] = bit
					}
				}
			}
			if set != 1 {
				t.Fatalf("%v: bit %d becomes %d bits", typ, bit, set)
			}
		}
	}
}

func must2[T any](v T, ok bool) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if !ok {
			t.Fatal("not there")
		}
		return v
	}
}

// A matrix is cut by the binding limit, in multiples of 64 rows.
func TestPieces(t *testing.T) {
	cases := []struct {
		name       string
		typ        quant.Type
		rows, cols int
		binding    int64
		want       []int
	}{
		{"whole", quant.Q8_0, 100, 64, 6400, []int{100}},
		{"one row over", quant.Q8_0, 101, 64, 6400, []int{64, 37}},
		{"many", quant.F32, 300, 16, 128 * 64, []int{128, 128, 44}},
		{"rows of a whole binding", quant.F32, 3, 1024, 4096, []int{1, 1, 1}},
	}
	for _, c := range cases {
		d := newDevice()
		d.info = op.Info{MaxBinding: c.binding, MaxBuffer: 1 << 30}
		w, err := d.plan(op.WeightSpec{Type: c.typ, Rows: c.rows, Cols: c.cols, Src: f32Bytes()})
		if c.name == "rows of a whole binding" { // fewer than 64 rows fit: no multiple is possible
			if !errors.Is(err, op.ErrMemory) {
				t.Errorf("%s: got %v, want ErrMemory", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		next := 0
		for i, p := range w.pieces {
			if p.row0 != next || i >= len(c.want) || p.rows != c.want[i] {
				t.Errorf("%s: piece %d: rows %d from %d, want %v", c.name, i, p.rows, p.row0, c.want)
			}
			next += p.rows
		}
		if next != c.rows {
			t.Errorf("%s: %d rows in pieces, want %d", c.name, next, c.rows)
		}
	}
}

// Memory closed while a program that uses it runs elsewhere: the run fails or works, the process lives.
func TestMemoryClosedDuringRuns(t *testing.T) {
	d := openTest(t, Options{})
	for range 20 {
		x := must[op.Buffer](t)(d.Buffer("x", 32, op.MaxCols))
		b := d.Program("p", op.MaxCols)
		b.Input(x)
		b.Output(x)
		p := must[op.Program](t)(b.Build())
		var wg sync.WaitGroup
		wg.Add(1)
		go func() {
			defer wg.Done()
			in, out := make([]float32, 32), op.Out{Hidden: make([]float32, 32)}
			for {
				if err := p.Run(context.Background(), op.Frame{N: 1}, in, &out); err != nil {
					if !errors.Is(err, errReleased) {
						t.Errorf("got %v, want %v", err, errReleased)
					}
					return
				}
			}
		}()
		x.Close()
		wg.Wait()
		p.Close()
	}
}
