package gpu

import (
	"maps"
	"math"
	"slices"
	"strings"

	"pooled/shaders"
)

// Some operations that follow each other become one launch. A fused kernel leaves every buffer as the single ones would, so
// it doesn't matter who reads them later; its bits may differ from theirs, but the choice is made once, in Build, for every
// number of columns.

type normRopeArgs struct {
	x     *buffer
	w     view // of f32, or the zero buffer
	norm  uint32
	heads int
	r     *rope
	eps   float32
}

type storeArgs struct {
	c    *kv
	k, v *buffer
}

type matVecArgs struct {
	out *buffer
	w   *weight
	x   *buffer
	acc uint32
}

type siluArgs struct{ out, gate, up *buffer }

type normArgs struct {
	out, x *buffer
	w      view
	eps    float32
}

// fuser replaces groups of records. It runs on the device goroutine, because merging matrices moves them.
type fuser struct {
	d      *Device
	hidden *buffer // of Output: has to hold what was recorded
	recs   []record
	folded map[*buffer]normArgs // buffers that are norms of others, formed by the matrices that read them
	out    []record
}

func (d *Device) fuse(recs []record, hidden *buffer) ([]record, error) {
	if d.plain {
		return recs, nil
	}
	f := &fuser{d: d, hidden: hidden, recs: recs, folded: make(map[*buffer]normArgs)}
	for len(f.recs) > 0 {
		n, err := f.next()
		if err != nil {
			return nil, err
		}
		f.recs = f.recs[n:]
	}
	return f.out, nil
}

// next adds the record that stands for the first n ones.
func (f *fuser) next() (n int, err error) {
	recs := f.recs
	if a, ok := recs[0].args.(normArgs); ok {
		delete(f.folded, a.out)
		if fold, dead := f.foldable(a); fold {
			f.folded[a.out] = a
			if dead {
				return 1, nil
			}
		}
	}
	if r, ok := f.d.ropeAttend(recs); ok {
		f.add(r, 4)
		f.rotated(recs[4:], recs[0])
		f.rotated(recs[4:], recs[1])
		return 4, nil
	}
	if len(recs) >= 3 && recs[0].tail == recs[2].tail {
		if r, ok := ropeStore(&recs[0], &recs[1], &recs[2]); ok {
			return f.add(r, 3), nil
		}
	}
	if len(recs) >= 3 && recs[0].tail == recs[2].tail {
		if r, ok, err := f.gateUp(recs[0], recs[1], recs[2]); ok || err != nil {
			return f.add(r, 3), err
		}
	}
	if !recs[0].wide {
		if r, n, err := f.expertGateUp(); n > 0 || err != nil {
			return f.add(r, n), err
		}
	}
	if r, n, err := f.matVec3(); n > 0 || err != nil {
		return f.add(r, n), err
	}
	r := recs[0]
	if a, ok := r.args.(matVecArgs); ok && !r.wide {
		f.norm(&r, a.x)
	}
	return f.add(r, 1), nil
}

func (f *fuser) add(r record, n int) int {
	r.tail, r.wide = f.recs[0].tail, f.recs[0].wide
	f.out = append(f.out, r)
	return n
}

// rotated adds what a fused launch has left out, a NormRope in place, unless its result is computed anew before anything reads it.
func (f *fuser) rotated(rest []record, r record) {
	x := r.args.(normRopeArgs).x
	for _, later := range rest {
		if slices.Contains(later.reads, x) || later.out2 == x {
			break
		}
		if later.out == x {
			if m, ok := later.args.(matVecArgs); ok && m.acc == 0 || later.op == "Deinterleave" {
				return
			}
			break // changes it in place
		}
	}
	f.out = append(f.out, r)
}

// foldable says whether the matrices that read a norm form it themselves: until it is computed anew or the program ends nothing
// else reads it, its input stays, and they are few. That must not depend on what the program holds besides: a layer has the same
// bits alone and among others. Only whether the norm is computed too does: it is left out (dead) when it is computed anew in this
// program, so that no other program can want it.
func (f *fuser) foldable(a normArgs) (fold, dead bool) {
	if a.x.width%8 != 0 || f.recs[0].wide {
		return false, false
	}
	readers, changed := 0, false
	for _, r := range f.recs[1:] {
		if again, ok := r.args.(normArgs); ok && again.out == a.out && again.x != a.out {
			return readers > 0, r.tail == f.recs[0].tail && a.out != f.hidden
		}
		if r.out == a.out || r.out2 == a.out {
			return false, false
		}
		if slices.Contains(r.reads, a.out) {
			m, ok := r.args.(matVecArgs)
			if readers++; !ok || changed || m.w.format.any() || m.out == a.x || readers > maxFolds || r.tail != f.recs[0].tail {
				return false, false
			}
		}
		changed = changed || r.out == a.x || r.out2 == a.x
	}
	return readers > 0, false
}

// maxFolds is how many matrices may form a norm each for themselves.
const maxFolds = 4

// norm makes a matrix record read the input of a norm that was folded.
func (f *fuser) norm(r *record, x *buffer) {
	if a, ok := f.folded[x]; ok {
		r.consts, r.colsConsts = maps.Clone(r.consts), maps.Clone(r.colsConsts)
		r.set("NORM", 1)
		r.kernel = strings.TrimSuffix(r.kernel, shaders.Uniform) + f.d.form(a.x)
		r.cols = strings.TrimSuffix(r.cols, shaders.Uniform) + f.d.form(a.x)
		r.views = append([]view{a.x.view(), a.w}, r.views[2:]...)
		r.params = slices.Clone(r.params)
		r.params[len(r.params)-1] = math.Float32bits(a.eps)
	}
}

// matVec3: up to three MatVec of the same x.
func (f *fuser) matVec3() (record, int, error) {
	first, ok := f.recs[0].args.(matVecArgs)
	if !ok || first.acc != 0 || first.w.format.any() {
		return record{}, 0, nil
	}
	ws, outs := []*weight{first.w}, []*buffer{first.out}
	for _, r := range f.recs[1:min(3, len(f.recs))] {
		a, ok := r.args.(matVecArgs)
		if !ok || a.acc != 0 || a.x != first.x || r.tail != f.recs[0].tail || slices.Contains(outs, a.out) || f.startsGateUp(len(ws)) {
			break
		}
		ws, outs = append(ws, a.w), append(outs, a.out)
	}
	for ; len(ws) > 1; ws, outs = ws[:len(ws)-1], outs[:len(outs)-1] {
		if ok, err := f.d.merge(ws); err != nil {
			return record{}, 0, err
		} else if ok {
			return f.merged(ws, outs, first.x), len(ws), nil
		}
	}
	return record{}, 0, nil
}

// startsGateUp says whether the records from i on are better fused otherwise.
func (f *fuser) startsGateUp(i int) bool {
	if len(f.recs) < i+3 {
		return false
	}
	g, ok1 := f.recs[i].args.(matVecArgs)
	u, ok2 := f.recs[i+1].args.(matVecArgs)
	s, ok3 := f.recs[i+2].args.(siluArgs)
	return ok1 && ok2 && ok3 && s.gate == g.out && s.up == u.out
}

func (f *fuser) merged(ws []*weight, outs []*buffer, x *buffer) record {
	if f.recs[0].wide {
		return f.d.gemm3(ws, outs, x)
	}
	cols := ws[0].spec.Cols
	views := []view{x.view(), x.view()}
	ends := []uint32{}
	rows, bytes := 0, int64(0)
	for i, w := range ws {
		rows += w.spec.Rows
		bytes += w.bytes
		ends = append(ends, uint32(rows))
		views = append(views, outs[i].view())
	}
	if len(ws) == 2 {
		views = append(views, whole(f.d.shared.sink))
	}
	s := f.d.matVecShape(rows, cols, ws[0].format)
	r := record{op: "MatVec", kernel: ws[0].format.kernel("matvec3", f.d.form(x)), cols: ws[0].format.kernel("matvec3", "_cols"+f.d.form(x)), shape: byMatVec,
		bytes: bytes, consts: s.consts(cols), views: views, matrix: ws[0], at: 3,
		params: []uint32{uint32(rows), ends[0], ends[1], 0, 0}}
	r.several(f.d, s, cols, rows)
	r.set("NORM", 0)
	r.set("FAST_HALF", f.d.fastHalf)
	f.norm(&r, x)
	return r
}

const gateUpOp = "MatVec, SiluMul"

// gateUp: MatVec(gate, wg, x), MatVec(up, wu, x), SiluMul(out, gate, up).
func (f *fuser) gateUp(a, b, c record) (record, bool, error) {
	g, ok1 := a.args.(matVecArgs)
	u, ok2 := b.args.(matVecArgs)
	s, ok3 := c.args.(siluArgs)
	if !ok1 || !ok2 || !ok3 || g.acc+u.acc != 0 || g.x != u.x || s.gate != g.out || s.up != u.out || g.out == u.out || s.out == g.x {
		return record{}, false, nil
	}
	if ok, err := f.d.merge([]*weight{g.w, u.w}); !ok || err != nil {
		return record{}, false, err
	}
	if a.wide {
		return f.d.gemmGateUp(g, u, s), true, nil
	}
	rows, cols := g.w.spec.Rows, g.w.spec.Cols
	sh := f.d.matVecShape(2*rows, cols, g.w.format).pairs()
	r := record{op: gateUpOp, kernel: g.w.format.kernel("gate_up", f.d.form(g.x)), cols: g.w.format.kernel("gate_up", "_cols"+f.d.form(g.x)),
		shape: byMatVec, bytes: g.w.bytes + u.w.bytes, consts: sh.consts(cols), matrix: g.w, at: 1,
		views:  []view{g.x.view(), g.x.view(), g.out.view(), u.out.view(), s.out.view()},
		params: []uint32{uint32(rows), 0, 0, 0}}
	r.several(f.d, sh, cols, 2*rows)
	r.set("NORM", 0)
	r.set("FAST_HALF", f.d.fastHalf)
	f.norm(&r, g.x)
	return r, true, nil
}

// expertGateUp: the rows of gate, those of up, and their product, of the chosen experts.
func (f *fuser) expertGateUp() (record, int, error) {
	a, ok := f.recs[0].args.(expertArgs)
	if !ok {
		return record{}, 0, nil
	}
	if ok, err := f.d.merge([]*weight{a.gate, a.up}); !ok || err != nil {
		return record{}, 0, err
	}
	cols := a.gate.spec.Cols
	s := f.d.matVecShape(2*a.ff*a.used, cols, a.gate.format).pairs()
	r := record{op: "Experts", kernel: a.gate.format.kernel("experts_gate_up", ""), shape: byColumnX, columns: a.used,
		consts: s.consts(cols), matrix: a.gate, at: 1,
		views:  []view{a.x.view(), whole(f.d.shared.zero), a.sel.view(), {size: a.bytes, scratch: productScratch}},
		params: []uint32{uint32(a.gate.spec.Rows), 0, 0, 0}}
	r.consts["F"], r.consts["USED"], r.consts["NORM"], r.consts["FAST_HALF"] = uint32(a.ff), uint32(a.used), 0, f.d.fastHalf
	r.y, r.z = fold(groups(a.ff, s.rowsPerWG()/2))
	r.bytes = (a.gate.bytes + a.up.bytes) / int64(a.experts) * int64(a.used)
	return r, 3, nil
}

// ropeStore: NormRope(q), NormRope(k), StoreKV(cache, k, v).
func ropeStore(a, b, c *record) (record, bool) {
	q, ok1 := a.args.(normRopeArgs)
	k, ok2 := b.args.(normRopeArgs)
	s, ok3 := c.args.(storeArgs)
	if !ok1 || !ok2 || !ok3 {
		return record{}, false
	}
	if hd := q.x.width / q.heads; sameRope(q, k, s) && hd%2 == 0 {
		return record{op: "NormRope, StoreKV", kernel: "norm_rope_store_" + s.c.kind.String(), shape: byColumnY,
			x: uint32(q.heads + k.heads),
			consts: shaders.Consts{"HEADS": uint32(q.heads), "KVHEADS": uint32(k.heads), "HD": uint32(hd),
				"NROT": uint32(q.r.nRot), "NORM": q.norm, "WG": headNormWG},
			views:  []view{q.w, k.w, q.r.view(), s.v.view(), q.x.view(), k.x.view(), s.c.view(s.c.keys), s.c.view(s.c.values)},
			params: []uint32{math.Float32bits(q.eps)}}, true
	}
	return record{}, false
}

// sameRope says whether q and k are treated alike and k is what is stored.
func sameRope(q, k normRopeArgs, s storeArgs) bool {
	return k.x == s.k && q.x != k.x && s.v != q.x && s.v != k.x &&
		q.r == k.r && q.eps == k.eps && q.norm == k.norm && k.x.width/k.heads == q.x.width/q.heads
}

func (r *rope) view() view { return view{buf: r.buf, size: int64(r.capacity) * int64(r.nRot) * 4} }
