package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
)

const (
	magic = 0x5357

	flagSpec  = 1
	flagReset = 2
	maxColumn = 62 // highest column to roll back to
)

// Slices is how many slices the frame takes, at least 1.
func (f *Frame) Slices() int { return sliceCount(len(f.Data)) }

func sliceCount(total int) int { return max(1, (total+PayloadBytes-1)/PayloadBytes) }

// sliceLen is the payload of slice k of a frame of total bytes.
func sliceLen(total, k int) int { return min(PayloadBytes, total-k*PayloadBytes) }

// Check reports why the frame can't be sent, nil if it can.
func (f *Frame) Check() error {
	switch {
	case f.Kind > HiddenRetB:
		return fmt.Errorf("%w: kind %d", ErrFrame, f.Kind)
	case f.N < 0 || f.N > 0xffff:
		return fmt.Errorf("%w: %d columns", ErrFrame, f.N)
	case f.Rollback < 0 || f.Rollback > maxColumn+1:
		return fmt.Errorf("%w: rollback to column %d", ErrFrame, f.Rollback-1)
	case len(f.Data) > MaxFrameBytes:
		return fmt.Errorf("%w: %d bytes", ErrFrame, len(f.Data))
	case slices.Contains(f.Drop, 0):
		return fmt.Errorf("%w: drop of slot 0", ErrFrame)
	case len(f.Drop) > 2 && !slices.Contains(f.Drop, DropAll):
		return fmt.Errorf("%w: %d drops, at most 2", ErrFrame, len(f.Drop))
	}
	return nil
}

// PutSlice writes slice k of the frame under the given id into dst, which must hold SliceBytes, and returns the
// slice's length. The frame must have passed Check and k be below Slices. It does not allocate.
func (f *Frame) PutSlice(dst []byte, id uint32, k int) int {
	be := binary.BigEndian
	be.PutUint16(dst[0:], magic)
	dst[2], dst[3] = byte(f.Kind), f.flags()
	be.PutUint32(dst[4:], id)
	be.PutUint32(dst[8:], f.Pos)
	be.PutUint16(dst[12:], uint16(max(1, f.N)))
	be.PutUint16(dst[14:], uint16(k))
	be.PutUint16(dst[16:], uint16(f.Slices()))
	be.PutUint16(dst[18:], 0)
	be.PutUint32(dst[20:], uint32(len(f.Data)))
	be.PutUint16(dst[24:], f.Save)
	be.PutUint16(dst[26:], f.Load)
	d0, d1 := f.drops()
	be.PutUint16(dst[28:], d0)
	be.PutUint16(dst[30:], d1)
	n := sliceLen(len(f.Data), k)
	return HeaderBytes + copy(dst[HeaderBytes:], f.Data[k*PayloadBytes:][:n])
}

func (f *Frame) flags() byte {
	b := byte(f.Rollback << 2)
	if f.Spec {
		b |= flagSpec
	}
	if f.Reset {
		b |= flagReset
	}
	return b
}

func (f *Frame) setFlags(b byte) {
	f.Spec, f.Reset, f.Rollback = b&flagSpec != 0, b&flagReset != 0, int(b>>2)
}

// drops are the two drop fields. A list with DropAll in it is sent as that alone.
func (f *Frame) drops() (first, second uint16) {
	if slices.Contains(f.Drop, DropAll) {
		return DropAll, 0
	}
	if len(f.Drop) > 0 {
		first = f.Drop[0]
	}
	if len(f.Drop) > 1 {
		second = f.Drop[1]
	}
	return first, second
}

// setDrops is the reverse of drops. A second drop without a first is none.
func (f *Frame) setDrops(first, second uint16) {
	switch {
	case first == 0:
		f.Drop = nil
	case first == DropAll || second == 0:
		f.Drop = []uint16{first}
	default:
		f.Drop = []uint16{first, second}
	}
}

// slice is a slice read: the frame without its data, and where this piece of it belongs.
type slice struct {
	head    []byte // the header, for frame
	id      uint32
	index   int
	count   int
	total   int
	payload []byte
}

// parseSlice reads the header of b; it fails on what can be no slice at all (spec wire.md 4.5). The result refers to b.
func parseSlice(b []byte) (s slice, ok bool) {
	be := binary.BigEndian
	if len(b) < HeaderBytes || be.Uint16(b) != magic {
		return slice{}, false
	}
	return slice{
		head:    b[:HeaderBytes],
		id:      be.Uint32(b[4:]),
		index:   int(be.Uint16(b[14:])),
		count:   int(be.Uint16(b[16:])),
		total:   int(be.Uint32(b[20:])),
		payload: b[HeaderBytes:],
	}, true
}

// fits reports whether the slice is exactly what slice index of such a frame must be.
func (s *slice) fits() bool {
	return s.index < s.count && s.count == sliceCount(s.total) && len(s.payload) == sliceLen(s.total, s.index)
}

// frame is the frame of the slice's header, without data.
func (s *slice) frame() Frame {
	be := binary.BigEndian
	f := Frame{
		Kind: Kind(s.head[2]),
		Pos:  be.Uint32(s.head[8:]),
		N:    max(1, int(be.Uint16(s.head[12:]))),
		Save: be.Uint16(s.head[24:]),
		Load: be.Uint16(s.head[26:]),
	}
	f.setFlags(s.head[3])
	f.setDrops(be.Uint16(s.head[28:]), be.Uint16(s.head[30:]))
	return f
}
