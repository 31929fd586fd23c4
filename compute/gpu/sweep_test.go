package gpu

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// sweepCase is a matrix with ways to share its rows, besides the one that a model gets.
type sweepCase struct {
	typ        quant.Type
	rows, cols int
	shapes     []matVecShape
}

var sweepCases = []sweepCase{
	{quant.Q8_0, 2048, 2048, []matVecShape{{64, 2, 128}, {64, 2, 64}, {32, 2, 128}, {128, 2, 128}}},
	{quant.Q8_0, 4096, 2048, []matVecShape{{64, 4, 128}, {64, 1, 128}, {32, 4, 128}, {64, 2, 256}}},
	{quant.Q8_0, 12288, 2048, []matVecShape{{64, 4, 128}, {32, 4, 128}, {64, 4, 256}, {64, 2, 64}}},
	{quant.Q8_0, 2048, 6144, []matVecShape{{128, 4, 128}, {64, 2, 128}, {128, 2, 256}, {128, 1, 128}}},
	{quant.Q8_0, 151936, 2048, []matVecShape{{32, 2, 128}, {64, 4, 128}}},
	{quant.Q4_0, 17408, 5120, []matVecShape{{64, 4, 128}, {32, 4, 128}, {64, 4, 256}}},
	{quant.Q4_0, 5120, 17408, []matVecShape{{128, 4, 128}, {64, 4, 128}, {128, 4, 256}}},
	{quant.Q6_K, 17408, 5120, []matVecShape{{64, 4, 128}, {32, 4, 128}}},
	{quant.Q4_K, 17408, 5120, []matVecShape{{64, 4, 128}, {32, 4, 128}}},
}

// BenchmarkMatVecSweep compares the shapes of the matrix kernels side by side: every round runs each of them once, and the
// fastest round of each counts, because a shared GPU is disturbed for seconds at a time. It prints microseconds a launch of 1, 4 and
// 16 columns without encoding, and the bytes of weights a second of one column.
func BenchmarkMatVecSweep(b *testing.B) {
	d := openTest(b, Options{})
	cases, launches, rounds := sweepCases, 96, 6
	if d.Info().Software {
		cases, launches, rounds = []sweepCase{{quant.Q8_0, 192, 512, []matVecShape{{32, 2, 64}}}}, 4, 2
	}
	for range b.N {
		for _, c := range cases {
			sweep(bench{b, d}, c, launches, rounds)
		}
	}
}

// tried is a shape with its program and the least time of a run so far by number of columns.
type tried struct {
	name  string
	p     op.Program
	least [3]time.Duration
}

var sweepCols = [3]int{1, 4, 16}

func sweep(x bench, c sweepCase, launches, rounds int) {
	d := x.d
	bytes := d.WeightBytes(c.typ, c.rows, c.cols)
	copies := int(min(max(180<<20/bytes, 1), 16))
	if bytes > 100<<20 {
		launches /= 4
	}
	var ws []op.Weight
	for range copies {
		ws = append(ws, x.typed(c.typ, c.rows, c.cols))
	}
	in, out := x.buffer(c.cols), x.buffer(c.rows)
	build := func(name string, s matVecShape) *tried {
		d.shape = s
		defer func() { d.shape = matVecShape{} }()
		return &tried{name: name, p: x.program(func(r op.Builder) {
			r.Input(in)
			for i := range launches {
				r.MatVec(out, ws[i%copies], in)
			}
		})}
	}
	d.tuning.spent = tuneTime
	all := []*tried{build("default", matVecShape{})}
	d.tuning.spent = 0
	all = append(all, build("tuned", matVecShape{}))
	took := d.tuning.spent
	for _, s := range c.shapes {
		all = append(all, build(fmt.Sprint(s), s))
	}
	data := make([]float32, op.MaxCols*c.cols)
	for i := range data {
		data[i] = float32(i%17) - 8
	}
	for began := time.Now(); time.Since(began) < 200*time.Millisecond && !d.Info().Software; { // the clock of a GPU rises slowly
		x.run(all[0].p, op.Frame{N: 1}, data[:c.cols], nil)
	}
	for range rounds {
		for _, t := range all {
			for i, n := range sweepCols {
				before, began := d.Stats().Encoding, time.Now()
				x.run(t.p, op.Frame{N: n}, data[:n*c.cols], nil)
				single := time.Since(began) - (d.Stats().Encoding - before)
				if t.least[i] == 0 || single < t.least[i] {
					t.least[i] = single
				}
			}
		}
	}
	fmt.Printf("%v %dx%d, by default %v, tuned in %v\n", c.typ, c.rows, c.cols,
		d.matVecShape(c.rows, c.cols, formats[c.typ]), took.Round(time.Millisecond))
	slices.SortStableFunc(all, func(a, b *tried) int { return int(a.least[0] - b.least[0]) })
	for _, t := range all {
		us := func(i int) float64 { return t.least[i].Seconds() * 1e6 / float64(launches) }
		fmt.Printf("  %-18s %8.2f us %6.0f GB/s   4 columns %8.2f us   16 %8.2f us\n", t.name, us(0), float64(bytes)/us(0)/1e3, us(1), us(2))
		t.p.Close()
	}
	for _, w := range ws {
		w.Close()
	}
	in.Close()
	out.Close()
}
