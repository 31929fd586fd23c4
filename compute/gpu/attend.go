package gpu

import (
	"math"

	"pooled/compute/op"
	"pooled/shaders"
)

// StoreKV writes keys and values in one dispatch.
func (b *builder) StoreKV(cache op.KV, k, v op.Buffer) {
	m := b.buffers("StoreKV", k, v)
	c, ok := use[*kv](b, "StoreKV", cache)
	if !ok || !b.require(m[0].width == c.width && m[1].width == c.width, "StoreKV",
		"keys of %d and values of %d into rows of %d", m[0].width, m[1].width, c.width) {
		return
	}
	n := c.width
	if c.kind == op.KVF16 {
		n /= 2
	}
	b.p.capacity = min(b.p.capacity, c.capacity)
	b.add(record{op: "StoreKV", kernel: "kv_store_" + c.kind.String(), shape: byColumnY, x: groups(n, elementWG),
		consts: shaders.Consts{"WIDTH": uint32(c.width), "WG": elementWG},
		views:  []view{m[0].view(), m[1].view(), c.view(c.keys), c.view(c.values)}, args: storeArgs{c, m[0], m[1]}}, nil, m...)
}

// attendShape says how attention of a column is cut. The cuts decide the order of sums and so the bits: they don't depend on the
// number of columns (the bit contract of package op).
type attendShape struct {
	wg     int  // threads of a workgroup
	splits int  // the most splits of a column's positions
	step   int  // splits are multiples of that
	direct int  // positions up to which a column has one split, whose workgroup needs none to put splits together
	held   int  // query heads of a workgroup
	apart  bool // rotation and store are a launch of their own
	lanes  bool // for software adapters: attn_lanes
}

const (
	maxHead   = 512 // values of a head
	teamWG    = 256
	combineWG = 256
	tinyHeld  = 4 // heads of a workgroup of attn_lanes
)

// team is how many threads share a key: a thread takes up to four octets.
func team(hd int) int {
	n := 1
	for 4*n*8 < hd {
		n *= 2
	}
	return n
}

// attendShape follows from the sizes and the kind of device: docs/kernels.md has the numbers.
func (d *Device) attendShape(heads, kvHeads, hd int) attendShape {
	s := attendShape{wg: teamWG, splits: min(max(256/kvHeads, 16), 64), step: 64, direct: 128, held: min(heads/kvHeads, 8)}
	if d.info.Software {
		s.direct, s.lanes = 1024, true
	}
	if d.attend != nil {
		d.attend(&s)
	}
	if s.lanes {
		s.held = min(s.held, tinyHeld)
	}
	for s.held > 1 && s.memory(hd) > int(d.limits.max_workgroup_storage) {
		s.held = (s.held + 1) / 2
	}
	share := heads / kvHeads
	folds := (share + s.held - 1) / s.held
	s.held = (share + folds - 1) / folds
	return s
}

// memory is the workgroup memory of attn_rope in bytes.
func (s attendShape) memory(hd int) int {
	values := s.held*hd + 8*(s.wg+4) + s.held*s.wg/team(hd) + 2*s.held*(s.wg/(hd/8)) + s.wg
	return 4 * values
}

// split is the number of splits of a column that sees n positions; splits.wgsl cuts them in the same way.
func (s attendShape) split(n int) int {
	if n <= s.direct {
		return 1
	}
	length := ((n+s.splits-1)/s.splits + s.step - 1) / s.step * s.step
	return (n + length - 1) / length
}

// most is the largest number of splits of the n columns from pos on.
func (s attendShape) most(pos, n int) uint32 {
	most := 0
	for c := range n {
		most = max(most, s.split(pos+c+1))
	}
	return uint32(most)
}

// attendScratchBytes is the size of the partial results of an Attend.
func (d *Device) attendScratchBytes(heads, kvHeads, hd int) int64 {
	if d.slowAttend(hd) {
		return 0
	}
	return int64(op.MaxCols) * int64(heads) * int64(d.attendShape(heads, kvHeads, hd).splits) * int64(hd+4) * 4
}

// slowAttend says whether heads of that size are left to the plain kernel.
func (d *Device) slowAttend(hd int) bool { return d.plain || hd%8 != 0 }

// attention is an Attend that was recorded.
type attention struct {
	out, q         *buffer
	c              *kv
	heads, kvHeads int
	hd             int
	shape          attendShape
}

// Attend records one dispatch, or two of which a run launches the second when a column has several splits.
func (b *builder) Attend(out, q op.Buffer, cache op.KV, heads, kvHeads int) {
	m := b.buffers("Attend", out, q)
	c, ok := use[*kv](b, "Attend", cache)
	if !ok || !b.require(heads > 0 && kvHeads > 0 && heads%kvHeads == 0 && c.width%kvHeads == 0, "Attend",
		"%d heads, %d of the cache, rows of %d values", heads, kvHeads, c.width) {
		return
	}
	hd := c.width / kvHeads
	if !b.require(m[0].width == hd*heads && m[1].width == hd*heads, "Attend",
		"widths %d and %d, want %d", m[0].width, m[1].width, hd*heads) ||
		!b.require(m[0] != m[1], "Attend", "reads and writes buffer %s", m[0].name) ||
		!b.require(hd%2 == 0 && hd <= maxHead, "Attend", "heads of %d values; an even number up to %d is supported", hd, maxHead) {
		return
	}
	b.p.capacity = min(b.p.capacity, c.capacity)
	d := b.p.dev
	a := attention{out: m[0], q: m[1], c: c, heads: heads, kvHeads: kvHeads, hd: hd}
	switch {
	case d.slowAttend(hd) || b.wide() && hd > maxTileHead:
		b.add(a.plain(), m[0], m[1])
		return
	case b.wide():
		b.add(d.tileRecord(a), m[0], m[1])
		return
	}
	a.shape = d.attendShape(heads, kvHeads, hd)
	size := d.attendScratchBytes(heads, kvHeads, hd)
	b.scratch = max(b.scratch, size)
	b.add(d.splitRecord(a, size), m[0], m[1])
	b.add(a.combine(size), m[0])
}

func (a attention) scale() uint32 { return math.Float32bits(float32(1 / math.Sqrt(float64(a.hd)))) }

// consts are those that all kernels of attention have.
func (a attention) consts() shaders.Consts {
	return shaders.Consts{"HEADS": uint32(a.heads), "KVHEADS": uint32(a.kvHeads), "HD": uint32(a.hd)}
}

// record is what all kernels of attention have.
func (a attention) record(kernel string) record {
	return record{op: "Attend", kernel: kernel + "_" + a.c.kind.String(), perPos: int64(2 * a.heads * a.hd), consts: a.consts(),
		params: []uint32{a.scale()}, cached: []view{a.c.view(a.c.keys), a.c.view(a.c.values)}}
}

// plain treats a head of a column in a workgroup, whatever its size. It is the twin of all other kernels.
func (a attention) plain() record {
	r := a.record("attn_decode")
	r.shape, r.x, r.views = byColumnY, uint32(a.heads), []view{a.q.view(), a.out.view()}
	r.consts["WG"] = uint32(max(attnWG, (a.hd/2+15)/16*16))
	return r
}

// splits are the constants of a kernel that treats splits.
func (a attention) splits(r *record) {
	s := a.shape
	r.consts["SPLITS"], r.consts["STEP"], r.consts["DIRECT_MAX"] = uint32(s.splits), uint32(s.step), uint32(s.direct)
	r.consts["HELD"] = uint32(s.held)
	r.shape, r.attend, r.x = bySplit, s, uint32(a.kvHeads*((a.heads/a.kvHeads+s.held-1)/s.held))
}

func (a attention) teams(r *record) {
	r.consts["TEAM"], r.consts["WG"] = uint32(team(a.hd)), uint32(a.shape.wg)
}

// splitRecord computes the splits of all columns; size is that of the partial results.
func (d *Device) splitRecord(a attention, size int64) record {
	var r record
	if a.shape.lanes {
		r = a.record("attn_lanes")
		r.kernel += d.form(a.q)
	} else {
		r = a.record("attn_split")
		a.teams(&r)
	}
	a.splits(&r)
	r.views = []view{a.q.view(), {size: size, scratch: attendScratch}, a.out.view()}
	r.args = a
	return r
}

// combine puts the splits of a column together.
func (a attention) combine(size int64) record {
	s := a.shape
	return record{op: "Attend", kernel: "attn_combine", shape: byCombine, x: uint32(a.heads), attend: s,
		consts: shaders.Consts{"HEADS": uint32(a.heads), "HD": uint32(a.hd), "SPLITS": uint32(s.splits), "STEP": uint32(s.step),
			"DIRECT_MAX": uint32(s.direct), "WG": uint32(combineWG)},
		views: []view{{size: size, scratch: attendScratch}, a.out.view()}}
}

// ropeAttend is NormRope(q), NormRope(k), StoreKV(c, k, v), Attend(out, q, c) in one launch, or false.
func (d *Device) ropeAttend(recs []record) (record, bool) {
	if len(recs) < 4 {
		return record{}, false
	}
	q, ok1 := recs[0].args.(normRopeArgs)
	k, ok2 := recs[1].args.(normRopeArgs)
	s, ok3 := recs[2].args.(storeArgs)
	a, ok4 := recs[3].args.(attention)
	if !ok1 || !ok2 || !ok3 || !ok4 || recs[3].tail != recs[0].tail || !sameRope(q, k, s) {
		return record{}, false
	}
	if a.q != q.x || a.c != s.c || a.out == k.x || a.out == s.v || a.heads != q.heads || a.kvHeads != k.heads || a.shape.apart || a.shape.lanes ||
		q.norm == 0 || a.hd%16 != 0 || q.r.nRot%16 != 0 {
		return record{}, false
	}
	r := a.record("attn_rope")
	a.splits(&r)
	a.teams(&r)
	r.op, r.cached = "NormRope, StoreKV, Attend", nil
	r.consts["NROT"] = uint32(q.r.nRot)
	r.params = append(r.params, math.Float32bits(q.eps))
	partial := recs[3].views[1]
	r.views = []view{q.x.view(), k.x.view(), s.v.view(), q.r.view(), partial, a.out.view(), q.w, k.w, a.c.view(a.c.keys), a.c.view(a.c.values)}
	return r, true
}
