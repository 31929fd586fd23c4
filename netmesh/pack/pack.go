// Package pack is BinaryPack as PeerJS speaks it on its data channels, and PeerJS's cutting of long messages into
// chunks (spec wire.md 3.2, 3.3). It is pure: bytes in, values out, no I/O and no goroutines.
//
// # Format
//
// One value is one byte that says what it is, then its content. It resembles MessagePack but strings and binaries have
// other codes and there is no 8-bit length. All integers and lengths are big-endian; a string's length counts UTF-8
// bytes.
//
//	00-7f  integer 0..127        c0     null            ca cb        float32, float64
//	80-8f  map of n              c1     undefined       cc cd ce cf  uint 8, 16, 32, 64
//	90-9f  array of n            c2 c3  false, true     d0 d1 d2 d3  int 8, 16, 32, 64
//	a0-af  binary of n bytes     d4-d7  undefined       d8 d9        string, 16 and 32-bit length
//	b0-bf  string of n bytes                            da db        binary, 16 and 32-bit length
//	e0-ff  integer -32..-1                              dc dd        array, 16 and 32-bit count
//	                                                    de df        map, 16 and 32-bit count
//
// # Values
//
// Unmarshal gives nil (null and undefined), bool, int64 (uint64 above 2^63-1), float64, string, []byte, []any and
// map[string]any. Marshal takes those, Map where the order of keys matters, and what reflection finds to be one of
// them (named strings, other integers, slices of any of these, maps with string keys, pointers).
//
// A number without a fraction is always sent as an integer, also when it is a float64: PeerJS misreads a double zero.
// NaN, infinities and integers outside -2^31..2^64-1 are refused, because PeerJS reads them wrongly or not at all.
//
// # Trust
//
// Every length is checked against the bytes that are left before anything is allocated, depth and the total number of
// elements are limited, and no input makes the package panic. Decoded values share no memory with the input.
package pack

// Map is a map that keeps its order on the wire. A key should appear once; the last one wins at the reader.
type Map []KV

// KV is one entry of a Map.
type KV struct {
	Key   string
	Value any
}

// Limits bound what Unmarshal accepts. A zero field means its default.
type Limits struct {
	Depth    int // nested arrays and maps, default DefaultDepth
	Elements int // array items and map entries in all, default DefaultElements
}

// Defaults of Limits, far above anything a room sends.
const (
	DefaultDepth    = 32
	DefaultElements = 1 << 16
)

func (l Limits) withDefaults() Limits {
	if l.Depth <= 0 {
		l.Depth = DefaultDepth
	}
	if l.Elements <= 0 {
		l.Elements = DefaultElements
	}
	return l
}

// Codes that introduce a value; the ranges of short forms are named by their first code.
const (
	fixMap    = 0x80
	fixArray  = 0x90
	fixBinary = 0xa0
	fixString = 0xb0
	negFix    = 0xe0 // integer -32

	codeNull  = 0xc0
	codeUndef = 0xc1
	codeFalse = 0xc2
	codeTrue  = 0xc3
	codeF32   = 0xca
	codeF64   = 0xcb
	codeU8    = 0xcc
	codeU16   = 0xcd
	codeU32   = 0xce
	codeU64   = 0xcf
	codeI8    = 0xd0
	codeI16   = 0xd1
	codeI32   = 0xd2
	codeI64   = 0xd3
	codeResA  = 0xd4 // d4-d7 read as undefined
	codeResB  = 0xd7
	codeStr16 = 0xd8
	codeStr32 = 0xd9
	codeBin16 = 0xda
	codeBin32 = 0xdb
	codeArr16 = 0xdc
	codeArr32 = 0xdd
	codeMap16 = 0xde
	codeMap32 = 0xdf

	fixMax = 15 // the most a short form counts
)
