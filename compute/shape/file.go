package shape

import (
	"errors"
	"hash/fnv"
	"io"
	"math/bits"
	"sort"

	"pooled/compute/gguf"
)

// runBytes is about how much of a pool is copied at once: less than most rows, so that no two rows are alike.
const runBytes = 256

// seed makes the weights; another one would make others.
const seed = 0x9001ed

// File is the model file of a shape. Its weights are made when they are read; nothing is on disk.
type File struct {
	shape  Shape
	header []byte
	data   []data // in file order, without gaps but the alignment's
	size   int64
}

// data is a tensor's place in the file and what it is made of.
type data struct {
	offset, bytes int64
	name          uint64 // hashed
	pool          *pool
}

// Open makes the file of a shape.
func (s Shape) Open() (*File, error) {
	f := &File{shape: s}
	tensors := s.Tensors()
	offsets := make([]int64, len(tensors))
	pools := map[poolKey]*pool{}
	var end int64
	for i := range tensors {
		t := &tensors[i]
		n, err := t.Bytes()
		if err != nil {
			return nil, err
		}
		k := poolKey{t.Type, t.values}
		if pools[k] == nil {
			pools[k] = newPool(k, seed)
		}
		offsets[i] = end
		f.data = append(f.data, data{end, n, hashed(t.Name), pools[k]})
		end += aligned(n)
	}
	h := &header{arch: s.Arch}
	h.describe(&s)
	f.header = h.bytes(tensors, offsets)
	for i := range f.data {
		f.data[i].offset += int64(len(f.header))
	}
	f.size = int64(len(f.header)) + end
	return f, nil
}

// Shape is what the file was made from.
func (f *File) Shape() Shape { return f.shape }

// Size is the file's length in bytes.
func (f *File) Size() int64 { return f.size }

// Part is the file for gguf.Open and compute.OpenModel.
func (f *File) Part() gguf.Part { return gguf.Part{Name: f.shape.Name, R: f, Size: f.size} }

var errOffset = errors.New("shape: negative offset")

// ReadAt makes the bytes of the file from off on, as io.ReaderAt wants it.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errOffset
	}
	n := 0
	if off < int64(len(f.header)) {
		n = copy(p, f.header[off:])
	}
	at := off + int64(n)
	for i := f.first(at); n < len(p) && at < f.size; i++ {
		end := f.size // of this tensor's part of the file, its padding included
		if i+1 < len(f.data) {
			end = f.data[i+1].offset
		}
		piece := p[n:min(len(p), n+int(min(end-at, int64(len(p)))))]
		f.data[i].read(piece, at-f.data[i].offset)
		n += len(piece)
		at += int64(len(piece))
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// first is the index of the tensor whose part of the file holds byte at.
func (f *File) first(at int64) int {
	return sort.Search(len(f.data), func(i int) bool { return f.data[i].offset > at }) - 1
}

// read makes the tensor's bytes from off on; zeros past its end.
func (d *data) read(p []byte, off int64) {
	run := int64(d.pool.run * d.pool.blockBytes)
	for len(p) > 0 && off < d.bytes {
		i, skip := off/run, off%run
		from := d.pool.start(d.name, uint64(i))
		n := copy(p, d.pool.blocks[from+int(skip):from+int(min(run, d.bytes-i*run))])
		p, off = p[n:], off+int64(n)
	}
	clear(p)
}

// start is where in the pool run i of a tensor begins, in bytes.
func (p *pool) start(name, i uint64) int {
	hi, _ := bits.Mul64(mixed(name+i*0x9e3779b97f4a7c15), p.starts)
	return int(hi) * p.blockBytes
}

// mixed is the output function of SplitMix64 (Steele, Lea and Flood, 2014): every bit depends on all of x.
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func hashed(name string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // never fails
	return h.Sum64()
}
