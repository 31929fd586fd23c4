package catalog

import "fmt"

// Contexts in positions (spec room.md 2.2).
const (
	otherCtx   = 2048 // of a model without an entry of its own
	hybridCtx  = 8192 // the same for a hybrid
	leastCtx   = 2048
	ctxStep    = 256
	leastBound = 128 << 20 // every device binds this many bytes at once
)

// Ctx is the context for an ask of that many positions: the nearest multiple of 256 between 2048 and the model's most,
// ties up; the default when ask is 0 or less. A model that the catalogue does not know (the zero Entry) has 2048.
func (e Entry) Ctx(ask int) int { return e.ctx(ask, e.CtxDefault) }

// NodeCtx is Ctx for a room opened from a terminal: without an ask it opens at the model's most.
func (e Entry) NodeCtx(ask int) int { return e.ctx(ask, e.CtxMax) }

func (e Entry) ctx(ask, unasked int) int {
	switch {
	case e.CtxMax == 0 && e.Kind == Hybrid:
		return hybridCtx
	case e.CtxMax == 0:
		return otherCtx
	case ask <= 0:
		return unasked
	case ask >= e.CtxMax:
		return e.CtxMax
	}
	return min(e.CtxMax, max(leastCtx, (ask+ctxStep/2)/ctxStep*ctxStep))
}

// HostHeld is what the model host holds besides its layers (spec room.md 2.3): the embedding, the head (the embedding
// again when head is 0) and, for a hybrid with a draft block, that block and the embedding once more.
func HostHeld(kind string, embed, head, draft int64) int64 {
	if head == 0 {
		head = embed
	}
	n := embed + head
	if kind == Hybrid && draft > 0 {
		n += draft + embed
	}
	return n
}

// HostBytes is HostHeld of the entry.
func (e Entry) HostBytes() int64 { return HostHeld(e.Kind, e.EmbedBytes, e.HeadBytes, e.DraftBytes) }

// LayerCost is the weights of one layer and its cache for ctx positions. Models without the mode KVQ8 use the plain one.
func (e Entry) LayerCost(ctx int, kv string) int64 {
	per := e.KVPerPos
	if kv == KVQ8 && e.KVPerPosQ8 > 0 {
		per = e.KVPerPosQ8
	}
	return e.LayerBytes + int64(ctx)*per
}

// RoomBytes is what the whole model takes in a room: every layer with its cache, and what the host holds.
func (e Entry) RoomBytes(ctx int, kv string) int64 {
	return int64(e.Layers)*e.LayerCost(ctx, kv) + e.HostBytes()
}

// KVShape is the shape of a hybrid's caches, from its file's header. A zero Interval counts as 1.
type KVShape struct {
	Heads    int // key and value heads
	Length   int // values of one head
	Interval int // every how many layers there is attention
}

// PerPos is the bytes of keys and values per position, averaged over the layers: two bytes a value in f16; in q8 one
// byte and a float32 scale for every 32.
func (s KVShape) PerPos(kv string) int64 {
	width := int64(s.Heads) * int64(s.Length)
	per := 2 * width
	if kv == KVQ8 {
		per = width + width/8
	}
	return 2 * per / int64(max(s.Interval, 1))
}

// CtxForBinding is the longest context up to ctx, a multiple of 256, whose cache of keys (or values) of one layer can
// be bound at once by a device that binds at most limit bytes (spec room.md 2.4). A limit under 128 MiB counts as that.
func (s KVShape) CtxForBinding(ctx int, kv string, limit int64) int {
	per := int64(s.Heads) * int64(s.Length)
	if kv != KVQ8 {
		per *= 2
	}
	if per <= 0 {
		return ctx
	}
	return int(min(int64(ctx), max(limit, leastBound)/per/ctxStep*ctxStep))
}

// FormatBytes writes a size for people (spec cli.md 3.4): "19.4 GB", "610 MB", "12 KB", "7 B", and "?" for a negative
// one, which means unknown. A GB has 2^30 bytes, shown with one decimal below 100; smaller units are whole.
func FormatBytes(n int64) string {
	const kb, mb, gb = 1 << 10, 1 << 20, 1 << 30
	whole := func(unit int64) int64 { return n/unit + (n%unit+unit/2)/unit }
	tenths := func() int64 { return n/gb*10 + (n%gb*10+gb/2)/gb }
	switch {
	case n < 0:
		return "?"
	case n < kb:
		return fmt.Sprintf("%d B", n)
	case whole(kb) < 1024:
		return fmt.Sprintf("%d KB", whole(kb))
	case whole(mb) < 1024:
		return fmt.Sprintf("%d MB", whole(mb))
	case tenths() < 1000:
		return fmt.Sprintf("%d.%d GB", tenths()/10, tenths()%10)
	}
	return fmt.Sprintf("%d GB", whole(gb))
}
