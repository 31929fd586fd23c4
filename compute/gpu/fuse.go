package gpu

import (
	"math"

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

// fuse replaces groups of records.
func fuse(recs []record) []record {
	out := make([]record, 0, len(recs))
	for len(recs) > 0 {
		r, n := fused(recs)
		out = append(out, r)
		recs = recs[n:]
	}
	return out
}

// fused is the next record and how many it stands for.
func fused(recs []record) (record, int) {
	if len(recs) >= 3 && recs[0].tail == recs[2].tail {
		for _, try := range []func(a, b, c *record) (record, bool){ropeStore} {
			if r, ok := try(&recs[0], &recs[1], &recs[2]); ok {
				r.tail = recs[0].tail
				return r, 3
			}
		}
	}
	return recs[0], 1
}

// ropeStore: NormRope(q), NormRope(k), StoreKV(cache, k, v).
func ropeStore(a, b, c *record) (record, bool) {
	q, ok1 := a.args.(normRopeArgs)
	k, ok2 := b.args.(normRopeArgs)
	s, ok3 := c.args.(storeArgs)
	if !ok1 || !ok2 || !ok3 {
		return record{}, false
	}
	hd := q.x.width / q.heads
	switch {
	case k.x != s.k || q.x == k.x || s.v == q.x || s.v == k.x:
	case q.r != k.r || q.eps != k.eps || q.norm != k.norm || k.x.width/k.heads != hd:
	case hd%2 != 0:
	default:
		return record{op: "NormRope, StoreKV", kernel: "norm_rope_store_" + s.c.kind.String(), shape: byColumnY,
			x: uint32(q.heads + k.heads),
			consts: shaders.Consts{"HEADS": uint32(q.heads), "KVHEADS": uint32(k.heads), "HD": uint32(hd),
				"NROT": uint32(q.r.nRot), "NORM": q.norm, "WG": headNormWG},
			views:  []view{q.w, k.w, q.r.view(), s.v.view(), q.x.view(), k.x.view(), s.c.view(s.c.keys), s.c.view(s.c.values)},
			params: []uint32{math.Float32bits(q.eps)}}, true
	}
	return record{}, false
}

func (r *rope) view() view { return view{buf: r.buf, size: int64(r.capacity) * int64(r.nRot) * 4} }
