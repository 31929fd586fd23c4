package gpu

import (
	"context"
	"fmt"
	"io"
	"math"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// BenchmarkHybrid reports the parts of a DeltaNet layer and of a feed-forward network of the catalogue's hybrid models, each part
// by itself over the weights of several layers, for one column, a few, and a wide pass.
func BenchmarkHybrid(b *testing.B) {
	d := openTest(b, Options{})
	for _, m := range hybridModels {
		if m.big == d.Info().Software {
			continue // a software adapter's own is small
		}
		l := newHybridLayers(bench{b, d}, m, op.MaxWide)
		for _, part := range hybridParts(m) {
			for _, n := range []int{1, 4, 128, op.MaxWide} {
				b.Run(fmt.Sprintf("%s/%s/cols=%d", m.name, part.name, n), func(b *testing.B) { l.measure(bench{b, d}, part, n) })
				if part.name == "moe,experts" && n >= 128 {
					b.Run(fmt.Sprintf("%s/%s/cols=%d,tile=32", m.name, part.name, n), func(b *testing.B) {
						d.pairTile = 32
						defer func() { d.pairTile = pairTile }()
						l.measure(bench{b, d}, part, n)
					})
				}
			}
		}
	}
}

// hybridModel is the shape of a hybrid model and the formats of its matrices.
type hybridModel struct {
	name                   string
	big                    bool
	layers                 int // that are made
	width, keyHeads, heads int
	ff                     int // of the dense network, or of one expert and of the shared one
	experts, used          int
	formats                map[string]quant.Type // others are Q4_0
}

const hybridDim = 128

var hybridModels = []hybridModel{
	{"small", false, 2, 256, 2, 4, 64, 8, 2, nil},
	{"35B", true, 3, 2048, 16, 32, 512, 256, 8, map[string]quant.Type{"alpha": quant.F32, "router": quant.BF16, "gate": quant.F32, "shared": quant.Q8_0}},
	{"27B", true, 3, 5120, 16, 48, 17408, 0, 0, map[string]quant.Type{"alpha": quant.BF16, "out": quant.Q5_K}},
}

func (m hybridModel) typ(name string) quant.Type {
	if t, ok := m.formats[name]; ok {
		return t
	}
	return quant.Q4_0
}

// zeros are weights that leave the hidden state as it is, so that runs can be repeated.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// hybridLayer is one layer on a device.
type hybridLayer struct {
	norm, conv, a, dt, headNorm                    op.Weight
	qkv, z, alpha, beta, out                       op.Weight
	router, gate, up, down                         op.Weight
	sharedGate, sharedUp, sharedDown, sharedWeight op.Weight
	state                                          op.Recurrent
}

// hybridLayers are a few layers and the buffers that they share.
type hybridLayers struct {
	m                                     hybridModel
	layers                                []hybridLayer
	x, xn, u, y, z, alpha, beta, o, gated op.Buffer
	gate, up, product, logits, sel, out   op.Buffer
	weight                                op.Buffer
}

func newHybridLayers(x bench, m hybridModel, cols int) *hybridLayers {
	l := &hybridLayers{m: m}
	keys, values := m.keyHeads*hybridDim, m.heads*hybridDim
	for b, width := range map[*op.Buffer]int{&l.x: m.width, &l.xn: m.width, &l.u: 2*keys + values, &l.y: 2*keys + values, &l.z: values,
		&l.alpha: m.heads, &l.beta: m.heads, &l.o: values, &l.gated: values, &l.gate: m.ff, &l.up: m.ff, &l.product: m.ff,
		&l.logits: max(m.experts, 1), &l.sel: 2 * max(m.used, 1), &l.out: m.width, &l.weight: 1} {
		*b = must[op.Buffer](x.b)(x.d.Buffer("b", width, cols))
		x.b.Cleanup((*b).Close)
	}
	for i := range m.layers {
		l.layers = append(l.layers, newHybridLayer(x, m, i))
	}
	l.fill(x, cols)
	return l
}

func newHybridLayer(x bench, m hybridModel, i int) (l hybridLayer) {
	keys, values := m.keyHeads*hybridDim, m.heads*hybridDim
	load := func(name string, typ quant.Type, rows, cols int) op.Weight {
		var src io.Reader = &finite{blocks{at: 34 * (17*i + len(name))}}
		if name == "down" || name == "out" {
			src = zeros{}
		}
		w := must[op.Weight](x.b)(x.d.Load(context.Background(), op.WeightSpec{Name: name, Type: typ, Rows: rows, Cols: cols, Src: src}))
		x.b.Cleanup(w.Close)
		return w
	}
	l.norm, l.a, l.dt, l.headNorm = x.vector(m.width), x.vector(m.heads), x.vector(m.heads), x.vector(hybridDim)
	l.conv = load("conv", quant.F32, 2*keys+values, 4)
	l.qkv, l.z = load("qkv", m.typ("qkv"), 2*keys+values, m.width), load("z", m.typ("z"), values, m.width)
	l.alpha, l.beta = load("alpha", m.typ("alpha"), m.heads, m.width), load("beta", m.typ("alpha"), m.heads, m.width)
	l.out = load("out", m.typ("out"), m.width, values)
	spec := op.RecurrentSpec{Channels: 2*keys + values, Taps: 4, Heads: m.heads, Dim: hybridDim}
	l.state = must[op.Recurrent](x.b)(x.d.Recurrent("state", spec))
	x.b.Cleanup(l.state.Close)
	if m.experts == 0 {
		l.gate, l.up, l.down = load("gate", m.typ("ff"), m.ff, m.width), load("up", m.typ("ff"), m.ff, m.width), load("down", m.typ("ff"), m.width, m.ff)
		return l
	}
	l.router, l.sharedWeight = load("router", m.typ("router"), m.experts, m.width), load("weight", m.typ("gate"), 1, m.width)
	l.gate, l.up = load("gate", m.typ("ff"), m.experts*m.ff, m.width), load("up", m.typ("ff"), m.experts*m.ff, m.width)
	l.down = load("down", m.typ("ff"), m.experts*m.width, m.ff)
	l.sharedGate, l.sharedUp = load("gate", m.typ("shared"), m.ff, m.width), load("up", m.typ("shared"), m.ff, m.width)
	l.sharedDown = load("down", m.typ("shared"), m.width, m.ff)
	return l
}

// fill gives the hidden states values, and what later parts read: the parts are measured apart.
func (l *hybridLayers) fill(x bench, cols int) {
	for _, b := range []op.Buffer{l.x, l.xn, l.u, l.y, l.z, l.product, l.gated, l.logits} {
		r := x.d.Program("fill", cols)
		r.Input(b)
		p := must[op.Program](x.b)(r.Build())
		data := make([]float32, cols*b.Width())
		for i := range data {
			data[i] = float32(math.Sin(float64(i*i%10007) + float64(b.Width())))
		}
		x.run(p, op.Frame{N: cols}, data, nil)
		p.Close()
	}
	r := x.d.Program("route", cols)
	r.Input(l.logits)
	if l.m.experts > 0 {
		r.Route(l.sel, l.logits, l.m.used)
		p := must[op.Program](x.b)(r.Build())
		data := make([]float32, cols*l.m.experts)
		for i := range data {
			data[i] = float32(math.Sin(float64(i * i % 10007)))
		}
		x.run(p, op.Frame{N: cols}, data, nil)
		p.Close()
	}
}

func (l *hybridLayers) measure(x bench, part hybridPart, n int) {
	cols := max(op.MaxCols, n)
	r := x.d.Program("bench", cols)
	rounds := 1
	if n <= op.MaxCols && !x.d.info.Software {
		rounds = 6 // a submit and its wait are shared
	}
	for range rounds {
		for i := range l.layers {
			part.record(r, l, &l.layers[i])
		}
	}
	layers := float64(rounds * l.m.layers)
	p := must[op.Program](x.b)(r.Build())
	x.b.Cleanup(p.Close)
	before := x.d.Stats()
	for range 2 {
		x.run(p, op.Frame{N: n}, nil, nil)
	}
	launches := x.d.Stats().Launches - before.Launches
	for x.b.Loop() {
		x.run(p, op.Frame{N: n}, nil, nil)
	}
	x.b.ReportMetric(x.b.Elapsed().Seconds()*1e6/float64(x.b.N)/layers, "us/layer")
	x.b.ReportMetric(float64(launches)/2/layers, "launches/layer")
}

// hybridPart is a part of a layer.
type hybridPart struct {
	name   string
	record func(r op.Builder, l *hybridLayers, w *hybridLayer)
}

func hybridParts(m hybridModel) []hybridPart {
	list := []hybridPart{
		{"deltanet", func(r op.Builder, l *hybridLayers, w *hybridLayer) {
			l.norm(r, w)
			l.deltaIn(r, w)
			l.deltaState(r, w)
			r.MatVecAdd(l.x, w.out, l.gated)
		}},
		{"deltanet,in", func(r op.Builder, l *hybridLayers, w *hybridLayer) { l.norm(r, w); l.deltaIn(r, w) }},
		{"deltanet,state", func(r op.Builder, l *hybridLayers, w *hybridLayer) { l.deltaState(r, w) }},
		{"deltanet,out", func(r op.Builder, l *hybridLayers, w *hybridLayer) { r.MatVecAdd(l.x, w.out, l.gated) }},
	}
	if m.experts == 0 {
		return append(list, hybridPart{"ff", func(r op.Builder, l *hybridLayers, w *hybridLayer) {
			l.norm(r, w)
			l.ff(r, w.gate, w.up)
			r.MatVecAdd(l.x, w.down, l.product)
		}})
	}
	return append(list,
		hybridPart{"moe", func(r op.Builder, l *hybridLayers, w *hybridLayer) {
			l.norm(r, w)
			l.route(r, w)
			l.experts(r, w)
			l.shared(r, w)
		}},
		hybridPart{"moe,route", func(r op.Builder, l *hybridLayers, w *hybridLayer) { l.norm(r, w); l.route(r, w) }},
		hybridPart{"moe,experts", func(r op.Builder, l *hybridLayers, w *hybridLayer) { l.experts(r, w) }},
		hybridPart{"moe,shared", func(r op.Builder, l *hybridLayers, w *hybridLayer) { l.shared(r, w) }})
}

func (l *hybridLayers) norm(r op.Builder, w *hybridLayer) { r.RMSNorm(l.xn, l.x, w.norm, 1e-6) }

func (l *hybridLayers) deltaIn(r op.Builder, w *hybridLayer) {
	r.MatVec(l.u, w.qkv, l.xn)
	r.MatVec(l.z, w.z, l.xn)
	r.MatVec(l.alpha, w.alpha, l.xn)
	r.MatVec(l.beta, w.beta, l.xn)
}

func (l *hybridLayers) deltaState(r op.Builder, w *hybridLayer) {
	r.Conv(l.y, l.u, w.conv, w.state)
	r.Delta(l.o, l.y, l.alpha, l.beta, w.a, w.dt, w.state, l.m.keyHeads)
	r.NormGate(l.gated, l.o, l.z, w.headNorm, l.m.heads, 1e-6)
}

func (l *hybridLayers) route(r op.Builder, w *hybridLayer) {
	r.MatVec(l.logits, w.router, l.xn)
	r.Route(l.sel, l.logits, l.m.used)
}

func (l *hybridLayers) experts(r op.Builder, w *hybridLayer) {
	r.Experts(l.x, l.xn, l.sel, w.gate, w.up, w.down, l.m.experts, l.m.used)
}

func (l *hybridLayers) ff(r op.Builder, gate, up op.Weight) {
	r.MatVec(l.gate, gate, l.xn)
	r.MatVec(l.up, up, l.xn)
	r.SiluMul(l.product, l.gate, l.up)
}

func (l *hybridLayers) shared(r op.Builder, w *hybridLayer) {
	l.ff(r, w.sharedGate, w.sharedUp)
	r.MatVec(l.out, w.sharedDown, l.product)
	r.MatVec(l.weight, w.sharedWeight, l.xn)
	r.GateAdd(l.x, l.out, l.weight)
}
