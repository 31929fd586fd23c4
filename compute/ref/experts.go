package ref

import "math"

// route: the used largest logits of a column and the softmax over them (spec engine.md 3.6 step 1). sel holds their
// indices as bits, then their weights.
type route struct {
	sel, logits *buffer
	used        int
}

func (s *route) parts(cols int) int { return cols }

func (s *route) do(c int, _ *run, t *scratch) {
	t.top = grow(t.top, s.used)
	TopK(t.top, s.logits.col(c))
	sum := 0.0
	for _, e := range t.top {
		sum += math.Exp(float64(e.Logit) - float64(t.top[0].Logit))
	}
	sel := s.sel.col(c)
	for k, e := range t.top {
		sel[k] = math.Float32frombits(uint32(e.ID))
		sel[s.used+k] = float32(math.Exp(float64(e.Logit)-float64(t.top[0].Logit)) / sum)
	}
}

// expertInputs is the first half of Experts: the k-th chosen expert of column c gives
// product[(c*used+k)*rows + r] = silu(gate x) * (up x) for each row r of gate and up. A part is grain rows of one expert.
type expertInputs struct {
	x, sel   *buffer
	gate, up *weight
	rows     int
	used     int
	product  []float32 // columns x used x rows
	grain    int
}

func (s *expertInputs) perExpert() int { return (s.rows + s.grain - 1) / s.grain }

func (s *expertInputs) parts(cols int) int { return cols * s.used * s.perExpert() }

func (s *expertInputs) do(part int, _ *run, t *scratch) {
	i, from := part/s.perExpert(), part%s.perExpert()*s.grain
	c, k := i/s.used, i%s.used
	x, first := s.x.col(c), int(math.Float32bits(s.sel.col(c)[k]))*s.rows
	t.row = grow(t.row, len(x))
	for r := from; r < min(from+s.grain, s.rows); r++ {
		s.gate.decode(t.row, first+r)
		g := dot(t.row, x)
		s.up.decode(t.row, first+r)
		s.product[i*s.rows+r] = float32(g / (1 + math.Exp(-g)) * dot(t.row, x))
	}
}

// expertOutputs is the second half: out += sum over k of weight_k * down_k product_k. A part is grain rows of one column.
type expertOutputs struct {
	out, sel *buffer
	down     *weight
	in       *expertInputs
	grain    int
}

func (s *expertOutputs) perColumn() int { return (s.out.width + s.grain - 1) / s.grain }

func (s *expertOutputs) parts(cols int) int { return cols * s.perColumn() }

func (s *expertOutputs) do(part int, _ *run, t *scratch) {
	c, from := part/s.perColumn(), part%s.perColumn()*s.grain
	used, rows := s.in.used, s.in.rows
	sel, out := s.sel.col(c), s.out.col(c)
	t.row = grow(t.row, rows)
	for r := from; r < min(from+s.grain, s.out.width); r++ {
		sum := float64(out[r])
		for k := range used {
			s.down.decode(t.row, int(math.Float32bits(sel[k]))*s.out.width+r)
			i := c*used + k
			sum += float64(sel[used+k]) * dot(t.row, s.in.product[i*rows:(i+1)*rows])
		}
		out[r] = float32(sum)
	}
}

// gateAdd: x += sigmoid(s) * y.
type gateAdd struct{ x, y, s *buffer }

func (s *gateAdd) parts(cols int) int { return cols }

func (s *gateAdd) do(c int, _ *run, _ *scratch) {
	gate := 1 / (1 + math.Exp(-float64(s.s.col(c)[0])))
	x := s.x.col(c)
	for i, y := range s.y.col(c) {
		x[i] = float32(float64(x[i]) + gate*float64(y))
	}
}

// deinterleave: heads pairs of halves to all first and all second halves.
type deinterleave struct {
	a, b, x *buffer
	heads   int
}

func (s *deinterleave) parts(cols int) int { return cols }

func (s *deinterleave) do(c int, _ *run, _ *scratch) {
	w, x := s.a.width/s.heads, s.x.col(c)
	for h := range s.heads {
		copy(s.a.col(c)[h*w:(h+1)*w], x[2*h*w:])
		copy(s.b.col(c)[h*w:(h+1)*w], x[(2*h+1)*w:])
	}
}

// sigmoidMul: x *= sigmoid(g).
type sigmoidMul struct{ x, g *buffer }

func (s *sigmoidMul) parts(cols int) int { return cols }

func (s *sigmoidMul) do(c int, _ *run, _ *scratch) {
	x := s.x.col(c)
	for i, g := range s.g.col(c) {
		x[i] = float32(float64(x[i]) / (1 + math.Exp(-float64(g))))
	}
}

// concat: out = [a | b].
type concat struct{ out, a, b *buffer }

func (s *concat) parts(cols int) int { return cols }

func (s *concat) do(c int, _ *run, _ *scratch) {
	copy(s.out.col(c), s.a.col(c))
	copy(s.out.col(c)[s.a.width:], s.b.col(c))
}

// grainOf is how many rows of that many values make a part.
func grainOf(values int) int { return max(1, partWork/values) }
