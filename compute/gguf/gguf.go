// Package gguf reads model files of the GGUF format, versions 2 and 3, lazily and suspiciously (spec engine.md 1.1 to
// 1.5).
//
//	+--------+---------+---------+------+----------------+-----------------+-------+-----------------+
//	| "GGUF" | version | tensors | keys | keys and values| tensor records  | pad   | tensor data ... |
//	|  4 B   |  u32    |  u64    | u64  |                | name dims type  | to the alignment         |
//	+--------+---------+---------+------+----------------+-----------------+-------+-----------------+
//
// Lazy. Open reads the header once through a small window and keeps the position of every value and tensor; strings
// and arrays (a vocabulary is 250,000 strings) are skipped, and decoded when somebody asks. Tensor data is never read
// here: Reader gives a view of it.
//
// Suspicious. Every number that a file announces is checked against the file's size and the limits below before memory
// is reserved or a position is computed from it: counts, lengths, dimensions and their product, offsets, alignment. A
// tensor lies inside its file and overlaps no other; names are unique; a split file has exactly its parts, in order.
// What Open returns can therefore be used without further checks of ranges. Memory grows with the bytes really read, at
// most a few times the header. Whatever the bytes, Open returns an error and does not panic; the error wraps one of the
// sentinels of this package, an error of the reader, or both quant.ErrType and ErrUnsupported for a weight format that
// package quant does not know.
//
// Split files. The first part carries all keys; every part has its own tensors, its own alignment and its own data.
//
// A File is safe for concurrent use when its io.ReaderAt parts are. It does not close them.
package gguf

import (
	"io"
	"slices"

	"pooled/compute/quant"
)

// Limits on what a file may announce, far above any real model's.
const (
	maxHeader  = 256 << 20 // bytes from the start of a part to the end of its tensor records (spec room.md 2.1)
	maxKeys    = 1 << 16
	maxTensors = 1 << 16
	maxName    = 1<<16 - 1 // bytes of a key or a tensor's name
	maxDims    = 4
	maxStrings = 1 << 22 // strings in one array
	maxInts    = 1 << 22 // numbers in one array, when they are asked for
	maxString  = 16 << 20
)

// Part is one file of a model, or the only one.
type Part struct {
	Name string // for messages
	R    io.ReaderAt
	Size int64 // bytes
}

// File is the header of a model.
type File struct {
	parts   []Part
	keys    []string // in file order
	values  map[string]value
	tensors []Tensor // in file order, part after part
	byName  map[string]int
}

// Tensor says where a tensor's data is. The Dims slice belongs to the File and must not be changed.
type Tensor struct {
	Name   string
	Dims   []uint64 // 1 to 4, ne0 (the contiguous one) first, none 0
	Type   quant.Type
	Part   int   // index of the part that holds it
	Offset int64 // of its first byte in that part
	Bytes  int64
}

// Cols is the length of a row: ne0.
func (t Tensor) Cols() int { return int(t.Dims[0]) }

// Rows is the number of rows: the product of the other dimensions.
func (t Tensor) Rows() int {
	n := 1
	for _, d := range t.Dims[1:] {
		n *= int(d)
	}
	return n
}

// Arch is the value of general.architecture, or "" when the file has none.
func (f *File) Arch() string { return f.StrOr("general.architecture", "") }

// Tensor returns the tensor of that name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// Tensors returns all tensors in file order.
func (f *File) Tensors() []Tensor { return slices.Clone(f.tensors) }

// Reader returns a view of the data of one of the file's tensors.
func (f *File) Reader(t Tensor) *io.SectionReader {
	return io.NewSectionReader(f.parts[t.Part].R, t.Offset, t.Bytes)
}
