package ref

import (
	"math"

	"pooled/compute/op"
)

// Every step works on columns 0..cols-1; column c is the token at position run.pos+c. Element i of column c of a buffer
// is data[c*width+i].

// embed: out[c] = row tokens[c] of the table.
type embed struct {
	out   *buffer
	table *weight
}

func (e *embed) parts(cols int) int { return cols }

func (e *embed) do(c int, r *run, _ *scratch) { e.table.decode(e.out.col(c), int(r.frame.Tokens[c])) }

// input: out[c] = in[c].
type input struct{ out *buffer }

func (s *input) parts(int) int { return 1 }

func (s *input) do(_ int, r *run, _ *scratch) { copy(s.out.data, r.in) }

// rmsNorm: out = x / sqrt(mean(x^2) + eps) * w.
type rmsNorm struct {
	out, x *buffer
	w      []float32
	eps    float64
}

func (s *rmsNorm) parts(cols int) int { return cols }

func (s *rmsNorm) do(c int, _ *run, _ *scratch) { normalize(s.out.col(c), s.x.col(c), s.w, s.eps) }

func normalize(out, x, w []float32, eps float64) {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	scale := 1 / math.Sqrt(sum/float64(len(x))+eps)
	for i, v := range x {
		out[i] = float32(float64(v) * scale * float64(w[i]))
	}
}

// matVec: out[c][r] = sum over i of w[r][i] x[c][i] for the rows that out has, added to what out holds when add is set. A part is grain rows; each
// is decoded once for all columns.
type matVec struct {
	out, x *buffer
	w      *weight
	add    bool
	grain  int
}

// partWork is the number of multiplications a part of a matVec should have: enough to be worth a wake-up.
const partWork = 8192

func newMatVec(out *buffer, w *weight, x *buffer, add bool) *matVec {
	return &matVec{out: out, x: x, w: w, add: add, grain: max(1, partWork/w.spec.Cols)}
}

func (s *matVec) parts(int) int { return (s.out.width + s.grain - 1) / s.grain }

func (s *matVec) do(part int, r *run, t *scratch) {
	t.row = grow(t.row, s.w.spec.Cols)
	for row := part * s.grain; row < min((part+1)*s.grain, s.out.width); row++ {
		s.w.decode(t.row, row)
		for c := range r.cols {
			sum := dot(t.row, s.x.col(c))
			if s.add {
				sum += float64(s.out.data[c*s.out.width+row])
			}
			s.out.data[c*s.out.width+row] = float32(sum)
		}
	}
}

// dot is the sum of products in float64, in four interleaved chains (an addition can't start before the one it depends
// on has ended), joined in a fixed order.
func dot(a, b []float32) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += float64(x[0]) * float64(y[0])
		s1 += float64(x[1]) * float64(y[1])
		s2 += float64(x[2]) * float64(y[2])
		s3 += float64(x[3]) * float64(y[3])
	}
	for ; i < len(a); i++ {
		s0 += float64(a[i]) * float64(b[i])
	}
	return (s0 + s1) + (s2 + s3)
}

// normRope normalizes each head of x (unless w is nil) and rotates pairs (i, i+nRot/2) of its first nRot values.
type normRope struct {
	x     *buffer
	w     []float32
	heads int
	table *rope
	eps   float64
}

func (s *normRope) parts(cols int) int { return cols }

func (s *normRope) do(c int, r *run, _ *scratch) {
	half := s.table.nRot / 2
	at := (r.pos + c) * half
	cos, sin := s.table.cos[at:at+half], s.table.sin[at:at+half]
	width := s.x.width / s.heads
	for h := range s.heads {
		head := s.x.col(c)[h*width : (h+1)*width]
		if s.w != nil {
			normalize(head, head, s.w, s.eps)
		}
		for i := range half {
			a, b := float64(head[i]), float64(head[i+half])
			cosI, sinI := float64(cos[i]), float64(sin[i])
			head[i] = float32(a*cosI - b*sinI)
			head[i+half] = float32(b*cosI + a*sinI)
		}
	}
}

// storeKV writes the columns of k and v to rows pos+c of the cache.
type storeKV struct {
	cache *kv
	k, v  *buffer
}

func (s *storeKV) parts(cols int) int { return cols }

func (s *storeKV) do(c int, r *run, _ *scratch) {
	s.cache.keys.put(r.pos+c, s.k.col(c))
	s.cache.values.put(r.pos+c, s.v.col(c))
}

// attend: for each head, scores s_t = q.k_t / sqrt(width) over rows t = 0..pos+c, p = softmax(s), out = sum of p_t v_t.
// A part is one column's query heads of one key/value head.
type attend struct {
	out, q         *buffer
	cache          *kv
	heads, kvHeads int
}

func (s *attend) parts(cols int) int { return cols * s.kvHeads }

func (s *attend) do(part int, r *run, t *scratch) {
	c, kvHead := part/s.kvHeads, part%s.kvHeads
	group := s.heads / s.kvHeads
	for h := kvHead * group; h < (kvHead+1)*group; h++ {
		s.head(c, h, kvHead, r.pos+c+1, t)
	}
}

// head computes head h of column c over the first rows cached rows.
func (s *attend) head(c, h, kvHead, rows int, t *scratch) {
	width := s.cache.width / s.kvHeads
	q := s.q.col(c)[h*width : (h+1)*width]
	t.row = grow(t.row, width)
	t.scores = grow(t.scores, rows)
	scale, top := 1/math.Sqrt(float64(width)), math.Inf(-1)
	for i := range rows {
		t.scores[i] = dot(q, s.cache.keys.get(i, kvHead*width, width, t.row)) * scale
		top = max(top, t.scores[i])
	}
	t.sums = grow(t.sums, width)
	clear(t.sums)
	total := 0.0
	for i := range rows {
		p := math.Exp(t.scores[i] - top)
		total += p
		for j, v := range s.cache.values.get(i, kvHead*width, width, t.row) {
			t.sums[j] += p * float64(v)
		}
	}
	out := s.out.col(c)[h*width : (h+1)*width]
	for j, v := range t.sums {
		out[j] = float32(v / total)
	}
}

// siluMul: out = gate / (1 + exp(-gate)) * up.
type siluMul struct{ out, gate, up *buffer }

func (s *siluMul) parts(cols int) int { return cols }

func (s *siluMul) do(c int, _ *run, _ *scratch) {
	out, up := s.out.col(c), s.up.col(c)
	for i, g := range s.gate.col(c) {
		x := float64(g)
		out[i] = float32(x / (1 + math.Exp(-x)) * float64(up[i]))
	}
}

// output copies all columns to Out.Hidden.
type output struct{ x *buffer }

func (s *output) parts(int) int { return 1 }

func (s *output) do(_ int, r *run, _ *scratch) {
	if r.out == nil || r.out.Hidden == nil {
		return
	}
	copy(r.out.Hidden, s.x.data)
	r.look(r.out.Hidden)
}

// tail copies the head columns of x to the first columns of out. Its own run has the head columns only.
type tail struct{ out, x *buffer }

func (s *tail) parts(cols int) int { return cols }

func (s *tail) do(c int, r *run, _ *scratch) { copy(s.out.col(c), s.x.col(r.frame.HeadFrom+c)) }

// logits copies head columns to Out.Logits and picks Out.Top.
type logits struct{ x *buffer }

func (s *logits) parts(cols int) int { return cols }

func (s *logits) do(c int, r *run, _ *scratch) {
	if r.out == nil || r.out.Logits == nil && r.out.K == 0 {
		return
	}
	col := s.x.col(c)
	r.look(col)
	if r.out.Logits != nil {
		copy(r.out.Logits[c*s.x.width:], col)
	}
	if r.out.K > 0 {
		var allow op.Mask
		if len(r.frame.Allow) > 0 {
			allow = r.frame.Allow[c]
		}
		r.out.Top[c] = topK(r.out.Top[c][:r.out.K], col, allow)
	}
}

// TopK fills dst, not longer than logits, with the largest logits, by value descending, then id ascending. NaN counts as
// the smallest value.
func TopK(dst []op.Candidate, logits []float32) { topK(dst, logits, nil) }

// topK returns the part of dst that it filled.
func topK(dst []op.Candidate, logits []float32, allow op.Mask) []op.Candidate {
	n := 0
	for id, v := range logits {
		if !allow.Allows(id) {
			continue
		}
		if v != v {
			v = float32(math.Inf(-1))
		}
		if n < len(dst) {
			n++
		} else if n == 0 || v <= dst[n-1].Logit {
			continue
		}
		i := n - 1
		for ; i > 0 && dst[i-1].Logit < v; i-- {
			dst[i] = dst[i-1]
		}
		dst[i] = op.Candidate{ID: int32(id), Logit: v}
	}
	return dst[:n]
}
