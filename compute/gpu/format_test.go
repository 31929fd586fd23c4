package gpu

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
	"pooled/shaders"
)

// Every format names kernels that exist, with one binding per array.
func TestFormatsHaveKernels(t *testing.T) {
	for typ, f := range formats {
		q, ok := typ.Format()
		if !ok {
			t.Errorf("%s: package quant doesn't know it", f.name)
		}
		var sum int64
		for _, a := range f.arrays {
			sum += a
		}
		if sum < int64(q.BlockBytes) {
			t.Errorf("%s: %d bytes a block on the device, %d in the file", f.name, sum, q.BlockBytes)
		}
		n := len(f.arrays)
		want := map[string]string{
			f.embed:      strings.Repeat("r", n) + "wu",
			f.matVec:     "r" + strings.Repeat("r", n) + "wu",
			f.matVecCols: "r" + strings.Repeat("r", n) + "wu",
		}
		if f.gateUp != "" {
			want[f.gateUp] = "r" + strings.Repeat("r", 2*n) + "wwwu"
			want[f.gateUpCols] = want[f.gateUp]
		}
		for name, signature := range want {
			if k, ok := shaders.Lookup(name); !ok || k.Bindings != signature {
				t.Errorf("%s: kernel %q with bindings %q, want %q", f.name, name, k.Bindings, signature)
			}
		}
	}
}

// Repacking moves bytes: put together again they are the file's.
func TestRepackQ8_0(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 31, 64} {
		src := make([]byte, 34*n)
		for i := range src {
			src[i] = byte(r.IntN(256))
		}
		dst := [][]byte{make([]byte, 32*n), make([]byte, 2*n)}
		repackQ8_0(dst, src)
		var back []byte
		for i := range n {
			back = append(append(back, dst[1][2*i:2*i+2]...), dst[0][32*i:32*i+32]...)
		}
		if !bytes.Equal(back, src) {
			t.Errorf("%d blocks: bytes changed", n)
		}
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
		x := must[op.Buffer](t)(d.Buffer("x", 32))
		b := d.Program("p")
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
