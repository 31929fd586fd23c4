// Package quant knows how model files store weights: the block formats, their sizes, and their exact decoders; and the
// conversion between half and single precision that caches and hidden states use.
//
// Layout. A row of a tensor is cut into blocks of Format.BlockLen weights, each stored in Format.BlockBytes bytes,
// little endian, without padding between blocks or rows. A row therefore holds a whole number of blocks. What the bytes
// of a block mean is the table of spec engine.md 1.4; the formats here are data (one entry each), and nothing outside
// this package branches on a format's name.
//
// Exactness. Decoders compute in float32 in the order that the reference implementation does (scale times quant, then
// the offset, each product rounded on its own), so that two backends can be compared bit for bit. Products are wrapped
// in a conversion where a sum follows: Go may otherwise fuse the two on some processors.
//
// Ownership. Decoders and bulk conversions write into the caller's slices, keep nothing and allocate nothing. Slices
// that are too short are the caller's mistake and panic as any slice expression does; sizes that come from a file go
// through Bytes first.
package quant

import (
	"errors"
	"fmt"
	"math"
)

// Type is a weight format's number in model files (spec engine.md 1.4).
type Type uint32

// The weight formats that this program reads.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2
	Q4_1 Type = 3
	Q5_0 Type = 6
	Q5_1 Type = 7
	Q8_0 Type = 8
	Q4_K Type = 12
	Q5_K Type = 13
	Q6_K Type = 14
	BF16 Type = 30
)

// ErrType: a weight format that this program does not read.
var ErrType = errors.New("unknown weight format")

// ErrShape: a tensor's shape that its format can't have.
var ErrShape = errors.New("impossible tensor shape")

// Format describes how a Type stores weights.
type Format struct {
	Name       string
	BlockLen   int // weights in a block
	BlockBytes int // bytes of a block
	// Decode writes len(dst) weights, a multiple of BlockLen, from the len(dst)/BlockLen blocks at the start of src.
	Decode func(dst []float32, src []byte)
}

// formats is the one table of spec engine.md 1.4.
var formats = map[Type]Format{
	F32:  {"F32", 1, 4, decodeF32},
	F16:  {"F16", 1, 2, F16Slice},
	BF16: {"BF16", 1, 2, decodeBF16},
	Q4_0: {"Q4_0", 32, 18, decodeQ4_0},
	Q4_1: {"Q4_1", 32, 20, decodeQ4_1},
	Q5_0: {"Q5_0", 32, 22, decodeQ5_0},
	Q5_1: {"Q5_1", 32, 24, decodeQ5_1},
	Q8_0: {"Q8_0", 32, 34, decodeQ8_0},
	Q4_K: {"Q4_K", 256, 144, decodeQ4_K},
	Q5_K: {"Q5_K", 256, 176, decodeQ5_K},
	Q6_K: {"Q6_K", 256, 210, decodeQ6_K},
}

// Format returns the description of t; false when t is not a format that this program reads.
func (t Type) Format() (Format, bool) {
	f, ok := formats[t]
	return f, ok
}

// String returns the format's usual name, or "type 99" for a number without one.
func (t Type) String() string {
	if f, ok := formats[t]; ok {
		return f.Name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Bytes is the size of rows rows of cols weights each. The error wraps ErrType or ErrShape: an unknown format, a
// negative count, rows that don't hold whole blocks, or a size past 2^63-1.
func Bytes(t Type, cols, rows int) (int64, error) {
	f, ok := formats[t]
	switch {
	case !ok:
		return 0, fmt.Errorf("%w: %v", ErrType, t)
	case cols < 0 || rows < 0:
		return 0, fmt.Errorf("%w: %d x %d weights", ErrShape, cols, rows)
	case cols%f.BlockLen != 0:
		return 0, fmt.Errorf("%w: rows of %d weights are not whole blocks of %d (%s)", ErrShape, cols, f.BlockLen, f.Name)
	}
	blocks := int64(cols / f.BlockLen)
	if blocks > math.MaxInt64/int64(f.BlockBytes) {
		return 0, fmt.Errorf("%w: %d x %d weights of %s overflow", ErrShape, cols, rows, f.Name)
	}
	row := blocks * int64(f.BlockBytes)
	if rows > 0 && row > math.MaxInt64/int64(rows) {
		return 0, fmt.Errorf("%w: %d x %d weights of %s overflow", ErrShape, cols, rows, f.Name)
	}
	return row * int64(rows), nil
}
