package gpu

import (
	"math"
	"slices"

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

// directMax is the number of positions up to which a column's attention is one workgroup per head. On a GPU more of them wait less
// than one, even with the launch that puts them together.
func (d *Device) directMax() uint32 {
	if d.info.Software {
		return 256
	}
	return 128
}

// Attend records three dispatches of which a run launches the first, the last two, or all: see shape.
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
		!b.require(hd%8 == 0 && hd <= 2*attnWG, "Attend", "heads of %d values; a multiple of 8 up to %d is supported", hd, 2*attnWG) {
		return
	}
	splits := min(max(256/kvHeads, 16), 64)
	b.p.capacity = min(b.p.capacity, c.capacity)
	size := int64(op.MaxCols) * int64(heads) * int64(splits) * int64(hd+2) * 4
	most := b.p.dev.directMax()
	if b.wide() {
		most = math.MaxInt32
	}
	consts := func(direct uint32) shaders.Consts {
		return shaders.Consts{"HEADS": uint32(heads), "KVHEADS": uint32(kvHeads), "HD": uint32(hd), "SPLITS": uint32(splits),
			"DIRECT": direct, "DIRECT_MAX": most, "WG": attnWG}
	}
	r := record{op: "Attend", shape: byDirect, splits: splits, perPos: int64(2 * heads * hd), consts: consts(1),
		params: []uint32{math.Float32bits(float32(1 / math.Sqrt(float64(hd))))}}
	keys, values, partial := c.view(c.keys), c.view(c.values), view{size: size, scratch: attendScratch}
	if b.p.dev.plain {
		r.kernel, r.x, r.views = "attn_decode_"+c.kind.String(), uint32(heads), []view{m[1].view(), keys, values, m[0].view()}
	} else {
		r.kernel, r.x = "attn_split_"+c.kind.String(), uint32(kvHeads*((heads/kvHeads+3)/4))
		r.views, r.cached = []view{m[1].view(), m[0].view()}, []view{keys, values}
	}
	if b.wide() {
		r.shape = byColumnY
		b.add(r, m[0], m[1])
		return
	}
	b.add(r, m[0], m[1])
	b.scratch = max(b.scratch, size)
	r.shape, r.consts, r.views = bySplit, consts(0), slices.Clone(r.views)
	r.views[len(r.views)-1] = partial
	b.add(r, nil, m[1])
	b.add(record{op: "Attend", kernel: "attn_combine", shape: byCombine, x: uint32(heads),
		consts: shaders.Consts{"HEADS": uint32(heads), "HD": uint32(hd), "SPLITS": uint32(splits), "DIRECT_MAX": b.p.dev.directMax(), "WG": attnWG},
		views:  []view{{size: size, scratch: attendScratch}, m[0].view()}}, m[0])
}
