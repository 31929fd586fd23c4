package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
	"pooled/shaders"
)

// mixture is a mixture of experts for tests.
type mixture struct {
	width, ff, experts, used int
	gate, up, down           op.Weight
}

func newMixture(t testing.TB, d *Device, width, ff, experts, used int, in, down quant.Type) *mixture {
	t.Helper()
	m := &mixture{width: width, ff: ff, experts: experts, used: used}
	load := func(typ quant.Type, rows, cols, seed int) op.Weight {
		src := &finite{blocks{at: 34 * seed}}
		w := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: typ, Rows: rows, Cols: cols, Src: src}))
		t.Cleanup(w.Close)
		return w
	}
	m.gate, m.up, m.down = load(in, experts*ff, width, 1), load(in, experts*ff, width, 2), load(down, experts*width, ff, 3)
	return m
}

// run adds what the experts give for n columns of x to a buffer of ones.
func (m *mixture) run(t testing.TB, d *Device, x, logits []float32, n, cols int) ([]float32, error) {
	t.Helper()
	buffer := func(width int) op.Buffer {
		b := must[op.Buffer](t)(d.Buffer("b", width, cols))
		t.Cleanup(b.Close)
		return b
	}
	in, lg, sel, out := buffer(m.width), buffer(m.experts), buffer(2*m.used), buffer(m.width)
	ones := make([]float32, n*m.width)
	for i := range ones {
		ones[i] = 1
	}
	for _, s := range []struct {
		b    op.Buffer
		data []float32
	}{{lg, logits[:n*m.experts]}, {out, ones}} {
		r := d.Program("set", cols)
		r.Input(s.b)
		p := must[op.Program](t)(r.Build())
		if err := p.Run(context.Background(), op.Frame{N: n}, s.data, nil); err != nil {
			t.Fatal(err)
		}
		p.Close()
	}
	r := d.Program("experts", cols)
	r.Input(in)
	r.Route(sel, lg, m.used)
	r.Experts(out, in, sel, m.gate, m.up, m.down, m.experts, m.used)
	r.Output(out)
	p := must[op.Program](t)(r.Build())
	defer p.Close()
	o := op.Out{Hidden: make([]float32, n*m.width)}
	err := p.Run(context.Background(), op.Frame{N: n}, x[:n*m.width], &o)
	return o.Hidden, err
}

// routings are ways in which columns choose.
var routings = map[string]func(column, expert int) float64{
	"spread":     func(c, e int) float64 { return math.Sin(float64(c*c*31 + e*e*7 + c*e)) },
	"all alike":  func(_, e int) float64 { return float64(e % 5) },
	"one expert": func(c, e int) float64 { return float64(min(e, 1)) * math.Sin(float64(c+e*e)) * -10 },
}

func (m *mixture) logits(n int, of func(c, e int) float64) []float32 {
	list := make([]float32, n*m.experts)
	for i := range list {
		list[i] = float32(of(i/m.experts, i%m.experts))
	}
	return list
}

func waves(n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(math.Sin(float64(i*i%1009))) * 0.1
	}
	return list
}

// Experts of a wide program, grouped, give what they give column by column: for every layout, however the columns choose, in tiles
// that are not full, and with WebGPU's default limits.
func TestGroupedExpertsEqualSingle(t *testing.T) {
	for _, o := range []Options{{}, {DefaultLimits: true}} {
		d := openTest(t, o)
		for i, f := range shaders.Formats {
			in, down := typeOf(t, f.Name), typeOf(t, shaders.Formats[(i+3)%len(shaders.Formats)].Name)
			const n, cols = 45, 48
			m := newMixture(t, d, 256, 256, 7, 3, in, down)
			x := waves(n * m.width)
			for name, of := range routings {
				if name != "spread" && f.Name != "q4_0" || o.DefaultLimits && f.Name > "f16" {
					continue
				}
				logits := m.logits(n, of)
				d.plain = true
				want, err := m.run(t, d, x, logits, n, cols)
				d.plain = false
				for _, d.pairTile = range []int{pairTile, 32} {
					if d.pairTile != pairTile && f.Name != "q4_0" {
						continue
					}
					got, err2 := m.run(t, d, x, logits, n, cols)
					if err = errors.Join(err, err2); err != nil {
						t.Fatal(err)
					}
					near(t, fmt.Sprintf("%v and %v, %s, tile %d", in, down, name, d.pairTile), got, want, 1e-5)
				}
				d.pairTile = pairTile
			}
		}
	}
}

// Matrices that don't fit in one binding are cut inside an expert.
func TestGroupedExpertsInPieces(t *testing.T) {
	const n, cols = 20, 32
	result := func(limit int64, plain bool) []float32 {
		d := openTest(t, Options{})
		d.info.MaxBinding, d.plain = min(limit, d.info.MaxBinding), plain
		m := newMixture(t, d, 256, 96, 8, 3, quant.Q8_0, quant.Q8_0)
		if got := len(m.gate.(*weight).pieces); (got > 1) == plain {
			t.Fatalf("%d pieces", got)
		}
		got, err := m.run(t, d, waves(n*m.width), m.logits(n, routings["spread"]), n, cols)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	near(t, "pieces", result(100<<10, false), result(1<<30, true), 1e-5)
}

// Router logits that are no numbers are reported; nothing hangs or reads beyond a buffer, and the next run is right.
func TestGroupedExpertsOfNaN(t *testing.T) {
	d := openTest(t, Options{})
	const n, cols = 33, 48
	m := newMixture(t, d, 64, 32, 40, 3, quant.Q8_0, quant.Q8_0)
	x, good := waves(n*m.width), m.logits(n, routings["spread"])
	want, err := m.run(t, d, x, good, n, cols)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]float64{"NaN": math.NaN(), "infinity": math.Inf(1), "minus infinity": math.Inf(-1)} {
		for _, all := range []bool{false, true} {
			bad := m.logits(n, func(c, e int) float64 {
				if all || c == 7 && e%4 != 1 {
					return v
				}
				return routings["spread"](c, e)
			})
			if _, err := m.run(t, d, x, bad, n, cols); !errors.Is(err, op.ErrNotFinite) && (all || name == "infinity") {
				t.Errorf("%s, all %v: got %v, want ErrNotFinite", name, all, err) // some: others are chosen
			}
		}
	}
	got, err := m.run(t, d, x, good, n, cols)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "afterwards", got, want, 1e-9)
}

// A selection that Route didn't make may name experts that don't exist, or one twice.
func TestGroupedExpertsOfAnySelection(t *testing.T) {
	d := openTest(t, Options{})
	const n, cols, used = 40, 48, 2
	m := newMixture(t, d, 64, 32, 5, used, quant.Q8_0, quant.Q8_0)
	buffer := func(width int) op.Buffer {
		b := must[op.Buffer](t)(d.Buffer("b", width, cols))
		t.Cleanup(b.Close)
		return b
	}
	sel, x := buffer(2*used), buffer(m.width)
	r := d.Program("any", cols)
	r.Input(sel)
	r.Experts(x, buffer(m.width), sel, m.gate, m.up, m.down, m.experts, used)
	r.Output(x)
	p := must[op.Program](t)(r.Build())
	defer p.Close()
	in := make([]float32, n*2*used)
	for i := range in {
		in[i] = math.Float32frombits([]uint32{4, 4, 0xffffffff, 1 << 31, 5, 0}[i*7%6])
	}
	out := op.Out{Hidden: make([]float32, n*m.width)}
	if err := p.Run(context.Background(), op.Frame{N: n}, in, &out); err != nil && !errors.Is(err, op.ErrNotFinite) {
		t.Fatal(err)
	}
}
