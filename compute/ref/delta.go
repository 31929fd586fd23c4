package ref

import (
	"math"

	"pooled/compute/op"
)

// convGrain is the number of channels of one part of a convolution.
const convGrain = 256

// conv: out[c] = silu(sum over t of w[t] * input[c+t]), input being the window followed by the columns of x.
type conv struct {
	out, x *buffer
	w      []float32 // channel ch's taps are [ch*Taps, (ch+1)*Taps), oldest first
	st     *recurrent
}

func (s *conv) parts(int) int { return (s.st.spec.Channels + convGrain - 1) / convGrain }

func (s *conv) do(part int, r *run, _ *scratch) {
	taps := s.st.spec.Taps
	for ch := part * convGrain; ch < min((part+1)*convGrain, s.st.spec.Channels); ch++ {
		window := s.st.window[ch*(taps-1) : (ch+1)*(taps-1)]
		if s.st.kept > 0 {
			copy(s.st.window0[ch*(taps-1):], window)
		}
		for c := range r.cols {
			x, sum := s.x.col(c)[ch], 0.0
			for t, v := range window {
				sum += float64(s.w[ch*taps+t]) * float64(v)
			}
			sum += float64(s.w[ch*taps+taps-1]) * float64(x)
			copy(window, window[1:])
			window[taps-2] = x
			if s.st.kept > 0 {
				s.st.in[c*s.st.spec.Channels+ch] = x
			}
			s.out.col(c)[ch] = float32(sum / (1 + math.Exp(-sum)))
		}
	}
}

// column is what one column gives to all heads of a delta.
type column struct{ y, alpha, beta []float32 }

// delta moves the matrices of all value heads on, one head after the other being one part (spec engine.md 3.5 steps 3 to
// 6), in the form of step 6:
//
//	S <- decay S;  d_j = beta (v_j - sum_i S_ij k_i);  S_ij <- S_ij + k_i d_j;  o_j = (sum_i S_ij q_i) / sqrt(dim)
type delta struct {
	out, y, alpha, beta *buffer
	a, dt               []float32
	st                  *recurrent
	keyHeads            int
}

func (s *delta) parts(int) int { return s.st.spec.Heads }

func (s *delta) do(h int, r *run, t *scratch) {
	dim := s.st.spec.Dim
	if s.st.kept > 0 {
		copy(s.st.state0[h*dim*dim:(h+1)*dim*dim], s.st.state[h*dim*dim:])
		s.keep(h, r.cols)
	}
	for c := range r.cols {
		s.column(h, column{s.y.col(c), s.alpha.col(c), s.beta.col(c)}, s.out.col(c)[h*dim:(h+1)*dim], t)
	}
}

// keep copies what an undo needs of the columns: head h's part of alpha and beta, and, for head 0, y.
func (s *delta) keep(h, cols int) {
	n, heads := s.st.spec.Channels, s.st.spec.Heads
	if h == 0 {
		s.st.delta = s
	}
	for c := range cols {
		if h == 0 {
			copy(s.st.y[c*n:(c+1)*n], s.y.col(c))
		}
		s.st.alpha[c*heads+h], s.st.beta[c*heads+h] = s.alpha.col(c)[h], s.beta.col(c)[h]
	}
}

// column moves head h's matrix on by one column. out is nil when only the state is wanted.
func (s *delta) column(h int, c column, out []float32, t *scratch) {
	dim, kd := s.st.spec.Dim, s.keyHeads*s.st.spec.Dim
	kh := h % s.keyHeads
	t.query, t.key = unit(t.query, c.y[kh*dim:(kh+1)*dim]), unit(t.key, c.y[kd+kh*dim:kd+(kh+1)*dim])
	v := c.y[2*kd+h*dim : 2*kd+(h+1)*dim]
	beta := 1 / (1 + math.Exp(-float64(c.beta[h])))
	decay := math.Exp(softplus(float64(c.alpha[h])+float64(s.dt[h])) * float64(s.a[h]))
	state := s.st.state[h*dim*dim : (h+1)*dim*dim]
	t.sums = grow(t.sums, dim)
	clear(t.sums)
	for i, k := range t.key { // sum_i (decay S_ij) k_i
		for j, x := range state[i*dim : (i+1)*dim] {
			t.sums[j] += decay * float64(x) * k
		}
	}
	for j := range t.sums { // d
		t.sums[j] = beta * (float64(v[j]) - t.sums[j])
	}
	for i, k := range t.key {
		row := state[i*dim : (i+1)*dim]
		for j, d := range t.sums {
			row[j] = float32(decay*float64(row[j]) + k*d)
		}
	}
	if out == nil {
		return
	}
	clear(t.sums)
	for i, q := range t.query {
		for j, x := range state[i*dim : (i+1)*dim] {
			t.sums[j] += float64(x) * q
		}
	}
	for j, o := range t.sums {
		out[j] = float32(o / math.Sqrt(float64(dim)))
	}
}

// unit is x divided by its norm, which counts as at least op.L2Floor.
func unit(dst []float64, x []float32) []float64 {
	dst = grow(dst, len(x))
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	norm := max(math.Sqrt(sum), op.L2Floor)
	for i, v := range x {
		dst[i] = float64(v) / norm
	}
	return dst
}

// softplus is ln(1 + e^x).
func softplus(x float64) float64 {
	if x > 20 {
		return x
	}
	return math.Log1p(math.Exp(x))
}

// normGate: out = rms(x, w) * silu(z), per head.
type normGate struct {
	out, x, z *buffer
	w         []float32
	heads     int
	eps       float64
}

func (s *normGate) parts(cols int) int { return cols }

func (s *normGate) do(c int, _ *run, _ *scratch) {
	width := len(s.w)
	out, x, z := s.out.col(c), s.x.col(c), s.z.col(c)
	for h := range s.heads {
		at, end := h*width, (h+1)*width
		normalize(out[at:end], x[at:end], s.w, s.eps)
	}
	for i, v := range z {
		g := float64(v)
		out[i] = float32(float64(out[i]) * g / (1 + math.Exp(-g)))
	}
}
