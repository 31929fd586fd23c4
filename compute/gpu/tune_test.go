package gpu

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// The fastest trial wins, the default within 3%; wrong numbers and errors are out, however fast.
func TestTrialsPick(t *testing.T) {
	const us = time.Microsecond
	broken := errors.New("broken")
	cases := []struct {
		name  string
		times []time.Duration // of each trial; 0: an error
		wrong int             // a trial with other numbers; 0: none
		want  int
	}{
		{"the fastest", []time.Duration{1000 * us, 900 * us, 800 * us, 950 * us}, 0, 2},
		{"the default within 3%", []time.Duration{1000 * us, 975 * us, 1200 * us}, 0, 0},
		{"more than 3%", []time.Duration{1000 * us, 965 * us, 1200 * us}, 0, 1},
		{"wrong numbers", []time.Duration{1000 * us, 100 * us, 900 * us}, 1, 2},
		{"an error", []time.Duration{1000 * us, 0, 900 * us}, 0, 2},
		{"an error of the default", []time.Duration{0, 100 * us}, 0, 0},
		{"a slow device", []time.Duration{time.Second, 100 * us}, 0, 0},
		{"nothing else", []time.Duration{1000 * us}, 0, 0},
	}
	for _, c := range cases {
		calls := make([]int, len(c.times))
		got := trials{len(c.times), func(i int) bool { return i != c.wrong || c.wrong == 0 }, func(i int) (time.Duration, error) {
			if calls[i]++; c.times[i] == 0 {
				return 0, broken
			}
			if calls[i] != 2 { // the least time counts; the first and the last say the opposite
				return 10*time.Millisecond - c.times[i], nil
			}
			return c.times[i], nil
		}}.pick()
		if got != c.want {
			t.Errorf("%s: trial %d, want %d", c.name, got, c.want)
		}
		if c.wrong > 0 && calls[c.wrong] > 0 {
			t.Errorf("%s: the trial with other numbers was timed", c.name)
		}
	}
}

// feedForward records a norm, a gated feed-forward network and its sum with what came in.
func feedForward(t *testing.T, d *Device) op.Program {
	const width, ff = 256, 512
	load := func(rows, cols int) op.Weight {
		return must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.Q8_0, Rows: rows, Cols: cols, Src: new(finite)}))
	}
	buffer := func(n int) op.Buffer { return must[op.Buffer](t)(d.Buffer("b", n, op.MaxCols)) }
	norm := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "n", Rows: 1, Cols: width, Src: ones{}}))
	x, xn, gate, up, product := buffer(width), buffer(width), buffer(ff), buffer(ff), buffer(ff)
	b := d.Program("feed forward", op.MaxCols)
	b.Input(x)
	b.RMSNorm(xn, x, norm, 1e-6)
	b.MatVec(gate, load(ff, width), xn)
	b.MatVec(up, load(ff, width), xn)
	b.SiluMul(product, gate, up)
	b.MatVecAdd(x, load(width, ff), product)
	b.Output(x)
	return must[op.Program](t)(b.Build())
}

// Tuned programs have the bits of untuned ones; what was found for a kind of matrix serves the next program.
func TestTuneKeepsBits(t *testing.T) {
	d := openTest(t, Options{})
	const width = 256
	in := make([]float32, op.MaxCols*width)
	for i := range in {
		in[i] = float32(math.Sin(float64(i*i))) * 0.02
	}
	run := func(p op.Program, n int) []float32 {
		out := op.Out{Hidden: make([]float32, n*width)}
		if err := p.Run(context.Background(), op.Frame{N: n}, in[:n*width], &out); err != nil {
			t.Fatal(err)
		}
		return out.Hidden
	}
	plain := feedForward(t, d)
	want := run(plain, op.MaxCols)
	d.tuning.timer = func(i int) time.Duration { // the last way tried is the fastest
		return time.Duration(10-i) * time.Millisecond
	}
	tuned := feedForward(t, d)
	if got := len(d.tuning.shapes); got != 4 || d.tuning.kinds != 4 {
		t.Fatalf("%d kinds of matrices found, %d tried, want two of one column and two of several", got, d.tuning.kinds)
	}
	for i, s := range tuned.(*program).planned {
		if was := plain.(*program).planned[i]; s.shape == byMatVec && (was.y == s.y && was.one == s.one || was.cols == s.cols) {
			t.Errorf("step %d is launched as before", i)
		}
	}
	compareBits(t, op.MaxCols, want, run(tuned, op.MaxCols))
	compareBits(t, 1, run(tuned, 1), want[:width])
	if feedForward(t, d); d.tuning.kinds != 4 {
		t.Errorf("a second program tried %d kinds anew", d.tuning.kinds-4)
	}
}

// A trial whose sums have another order is found out.
func TestTrialWithOtherBits(t *testing.T) {
	d := openTest(t, Options{})
	const rows, cols = 64, 512
	d.shape = matVecShape{8, 4, 64}
	defer func() { d.shape = matVecShape{} }()
	w := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.Q8_0, Rows: rows, Cols: cols, Src: new(finite)})).(*weight)
	x, out := must[op.Buffer](t)(d.Buffer("x", cols, op.MaxCols)).(*buffer), must[op.Buffer](t)(d.Buffer("out", rows, op.MaxCols)).(*buffer)
	err := d.do(func() error {
		r := d.matVecRecord("MatVec", out, w, 0, x, 0, false)
		p := &program{dev: d}
		var err error
		if p.params, err = d.createBuffer("params", alignment, storage|weightUsage); err != nil {
			return err
		}
		defer d.freeBuffer(p.params)
		if err := d.upload(p.params, 0, paramBytes(r.params)); err != nil {
			return err
		}
		b := &trialBench{p: p, recs: []record{r}, list: []int{0}, n: 1, shapes: []matVecShape{{8, 4, 64}, {8, 2, 128}, {8, 1, 64}}}
		defer b.close()
		if err := b.open(); err != nil {
			return err
		}
		if !b.same(1) || !b.same(2) {
			t.Error("shapes with the same lanes: other bits")
		}
		if took, err := b.time(1); err != nil || took <= 0 || len(b.steps) != tuneLaunches {
			t.Errorf("a measured submit: %v, %v, %d launches", took, err, len(b.steps))
		}
		b.recs[0].consts["LANES"] = 16
		if b.same(1) {
			t.Error("other lanes: the same bits")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
