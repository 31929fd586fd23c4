package gpu

import (
	"pooled/compute/op"
	"pooled/shaders"
)

// Experts for many columns. The pairs of a column and a chosen expert are grouped by expert, so that each expert's weights are
// read once for all columns that chose it: experts_sort makes tiles of pairs, experts_tile multiplies them (gate, then up with the
// activation, then down), experts_sum adds up what each column's experts gave. The slow twin is the narrow way, column by column.

const (
	pairTile = 16 // pairs of the same expert in a tile: 16 or 32
	expertWG = 256
)

// expertSlots is the memory of a program for each kind of scratch from gateScratch on.
type expertSlots [groupScratch - gateScratch + 1]int64

func (s *expertSlots) of(which scratch) *int64 { return &s[which-gateScratch] }

// grow makes room for what another one needs too.
func (s *expertSlots) grow(o expertSlots) {
	for i := range s {
		s[i] = max(s[i], o[i])
	}
}

func (s *expertSlots) total() (sum int64) {
	for _, n := range s {
		sum += n
	}
	return sum
}

// pairGroups says where the parts of what experts_sort makes are, in bytes.
type pairGroups struct{ tiles, list, place, bits, before, end int64 }

func newPairGroups(e op.ExpertsSize, cols, tile int) (g pairGroups) {
	pairs, words := int64(cols)*int64(e.Used), int64(groups(cols, 32))
	at := int64(0)
	part := func(size int64) int64 {
		from := at
		at = align(at+size, alignment)
		return from
	}
	g.tiles = part(16 * (1 + int64(mostTiles(e, cols, tile))))
	g.list, g.place = part(4*pairs), part(4*pairs)
	g.bits, g.before = part(4*words*int64(e.Experts)), part(4*words*int64(e.Experts))
	g.end = at
	return g
}

// mostTiles is how many tiles the pairs of n columns can make: each expert has one that is not full.
func mostTiles(e op.ExpertsSize, n, tile int) int {
	pairs := n * e.Used
	return pairs/tile + min(pairs, e.Experts)
}

// grouped says whether the experts of a program are grouped: it has many columns, and a launch can bind what they give.
func (d *Device) grouped(e op.ExpertsSize, cols int) bool {
	pairs := int64(cols) * int64(e.Used)
	return cols > op.MaxCols && e.In%8 == 0 && e.Inner%8 == 0 && 4*pairs*int64(max(e.Inner, e.Out)) <= d.info.MaxBinding &&
		newPairGroups(e, cols, d.pairTile).end <= d.info.MaxBinding && mostTiles(e, cols, d.pairTile) <= maxWorkgroups
}

// expertSlots is the memory that an Experts of a program takes.
func (d *Device) expertSlots(e op.ExpertsSize, cols int) (s expertSlots) {
	inner := 4 * int64(cols) * int64(e.Used) * int64(e.Inner)
	*s.of(productScratch) = inner
	if d.grouped(e, cols) {
		*s.of(downScratch), *s.of(groupScratch) = 4*int64(cols)*int64(e.Used)*int64(e.Out), newPairGroups(e, cols, d.pairTile).end
	} else {
		*s.of(gateScratch), *s.of(upScratch) = inner, inner
	}
	return s
}

func (a *expertArgs) size() op.ExpertsSize {
	return op.ExpertsSize{Used: a.used, Experts: a.experts, In: a.x.width, Inner: a.ff, Out: a.out.width}
}

// groupedExperts records the experts of a wide program.
func (b *builder) groupedExperts(a expertArgs) {
	e, cols := a.size(), b.cols()
	slots := b.p.dev.expertSlots(e, cols)
	b.slots.grow(slots)
	g := newPairGroups(e, cols, b.p.dev.pairTile)
	part := func(from, to int64) view { return view{off: from, size: to - from, scratch: groupScratch} }
	tiles, list, place := part(g.tiles, g.list), part(g.list, g.place), part(g.place, g.bits)
	product := view{size: *slots.of(productScratch), scratch: productScratch}
	down := view{size: *slots.of(downScratch), scratch: downScratch}
	b.add(record{op: "Experts", kernel: "experts_sort", shape: byAll,
		consts: shaders.Consts{"EXPERTS": uint32(e.Experts), "USED": uint32(e.Used), "WORDS": groups(cols, 32), "TILE": uint32(b.p.dev.pairTile), "WG": expertWG},
		views:  []view{a.sel.view(), tiles, list, place, part(g.bits, g.before), part(g.before, g.end)}}, nil, a.sel)
	for i, w := range []*weight{a.gate, a.up, a.down} {
		x, out, act := a.x.view(), product, uint32(i)
		if i == 2 {
			x, out, act = product, down, 0
		}
		for j := range w.pieces {
			b.add(b.p.dev.pairRecord(e, w, j, []view{x, tiles, list, out}, act, i < 2), nil, a.x)
		}
	}
	b.add(record{op: "Experts", kernel: "experts_sum", shape: byColumnY, x: groups(e.Out, elementWG),
		consts: shaders.Consts{"WIDTH": uint32(e.Out), "USED": uint32(e.Used), "WG": elementWG},
		views:  []view{down, place, a.sel.view(), a.out.view()}}, a.out, a.sel)
}

// pairRecord multiplies one piece of a matrix with the pairs of its experts.
func (d *Device) pairRecord(e op.ExpertsSize, w *weight, i int, views []view, act uint32, byColumn bool) record {
	p, rows := w.pieces[i], w.spec.Rows/e.Experts
	depth, column := uint32(32), uint32(0)
	if d.limits.max_workgroup_storage < 20<<10 {
		depth = 16
	}
	if byColumn {
		column = 1
	}
	return record{op: "Experts", kernel: w.format.kernel("experts_tile", ""), shape: byPairs, x: groups(rows, 128), pairs: e, tile: d.pairTile,
		bytes: p.bytes() * int64(e.Used) / int64(e.Experts), views: views, matrix: w, piece: i, at: 2,
		consts: shaders.Consts{"COLS": uint32(w.spec.Cols), "F": uint32(rows), "USED": uint32(e.Used), "BY_COLUMN": column, "ACT": act,
			"TX": uint32(d.pairTile / 4), "BK": depth, "FAST_HALF": d.fastHalf},
		params: []uint32{uint32(p.rows), uint32(p.row0), 0}}
}
