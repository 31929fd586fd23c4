package gpu

import (
	"context"
	"fmt"
	"math"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// finite yields blocks of any format whose scales are finite: no byte has its upper bits set.
type finite struct{ blocks }

func (f *finite) Read(p []byte) (int, error) {
	n, err := f.blocks.Read(p)
	for i := range p[:n] {
		p[i] &= 0x3f
	}
	return n, err
}

// Every way of sharing rows among threads gives the same product, and the same bits for columns together and alone.
func TestShapesAgree(t *testing.T) {
	d := openTest(t, Options{})
	const rows, cols = 45, 512
	x := make([]float32, op.MaxCols*cols)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	var want []float32
	for _, typ := range []quant.Type{quant.Q8_0, quant.Q4_K} {
		want = nil
		for _, sh := range []matVecShape{{1, 1, 32}, {1, 4, 32}, {8, 2, 64}, {16, 1, 64}, {32, 4, 128}, {64, 2, 128}, {128, 1, 128}, {128, 4, 128}} {
			t.Run(fmt.Sprint(typ, sh), func(t *testing.T) {
				d.shape = sh
				defer func() { d.shape = matVecShape{} }()
				w := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: typ, Rows: rows, Cols: cols, Src: new(finite)}))
				in, out := must[op.Buffer](t)(d.Buffer("in", cols, op.MaxCols)), must[op.Buffer](t)(d.Buffer("out", rows, op.MaxCols))
				b := d.Program("p", op.MaxCols)
				b.Input(in)
				b.MatVec(out, w, in)
				b.Output(out)
				p := must[op.Program](t)(b.Build())
				defer p.Close()
				var single []float32
				for _, n := range []int{1, 5, 16} {
					var all []float32
					for c := 0; c < op.MaxCols; c += n {
						k := min(n, op.MaxCols-c)
						o := op.Out{Hidden: make([]float32, k*rows)}
						if err := p.Run(context.Background(), op.Frame{N: k}, x[c*cols:][:k*cols], &o); err != nil {
							t.Fatal(err)
						}
						all = append(all, o.Hidden...)
					}
					if n == 1 {
						single = all
					}
					compareBits(t, n, single, all)
				}
				if want == nil {
					want = single
				}
				for i, v := range want {
					if diff := math.Abs(float64(single[i] - v)); !(diff <= 1e-3+1e-5*math.Abs(float64(v))) {
						t.Fatalf("value %d: got %v, want %v", i, single[i], v)
					}
				}
			})
		}
	}
}

// compareBits compares with the columns that ran one by one.
func compareBits(t *testing.T, n int, single, got []float32) {
	t.Helper()
	for i, v := range single {
		if math.Float32bits(got[i]) != math.Float32bits(v) {
			t.Fatalf("%d columns together: value %d: got %v, alone %v", n, i, got[i], v)
		}
	}
}
