package ref

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync/atomic"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// readChunk is the number of bytes read between two looks at the context while a weight is loaded.
const readChunk = 4 << 20

// memory is the part that everything a device makes has in common: its size and whether it was closed.
type memory struct {
	dev    *device
	bytes  int64
	closed atomic.Bool
}

func (m *memory) Bytes() int64 { return m.bytes }

func (m *memory) take(d *device, bytes int64) {
	m.dev, m.bytes = d, bytes
	d.used.Add(bytes)
}

// release returns false when it was already called.
func (m *memory) release() bool {
	if m.closed.Swap(true) {
		return false
	}
	m.dev.used.Add(-m.bytes)
	return true
}

// check fails unless the memory is d's and still open.
func (m *memory) check(d *device) error {
	if m.dev != d {
		return errForeign
	}
	if m.closed.Load() {
		return errClosed
	}
	return nil
}

// weight is a stored tensor in its file format.
type weight struct {
	memory
	spec   op.WeightSpec
	format quant.Format
	row    int // bytes of a row
	data   []byte
}

func (w *weight) Spec() op.WeightSpec { return w.spec }

func (w *weight) Close() {
	if w.release() {
		w.data = nil
		w.dev.disown(w)
	}
}

// decode writes row r's values to dst, which holds a row.
func (w *weight) decode(dst []float32, r int) { w.format.Decode(dst, w.data[r*w.row:(r+1)*w.row]) }

// Load reads a weight. The error wraps op.ErrFormat for an unknown format and io.ErrUnexpectedEOF for a short source.
func (d *device) Load(ctx context.Context, s op.WeightSpec) (op.Weight, error) {
	if d.closed.Load() {
		return nil, fmt.Errorf("ref: load %s: %w", s.Name, errClosed)
	}
	format, ok := s.Type.Format()
	if !ok {
		return nil, fmt.Errorf("ref: load %s: %v: %w", s.Name, s.Type, op.ErrFormat)
	}
	size, err := quant.Bytes(s.Type, s.Cols, s.Rows)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ref: load %s: %w", s.Name, err)
	case size == 0 || s.Src == nil:
		return nil, fmt.Errorf("ref: load %s: %w: no values", s.Name, errArgument)
	case size > maxAlloc:
		return nil, fmt.Errorf("ref: load %s: %d bytes, at most %d allowed: %w", s.Name, size, int64(maxAlloc), op.ErrMemory)
	}
	data := make([]byte, size)
	for at := int64(0); at < size; at += readChunk {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("ref: load %s: %w", s.Name, err)
		}
		if _, err := io.ReadFull(s.Src, data[at:min(at+readChunk, size)]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("ref: load %s: at byte %d of %d: %w", s.Name, at, size, err)
		}
	}
	s.Src = nil
	w := &weight{spec: s, format: format, row: int(size / int64(s.Rows)), data: data}
	w.take(d, size)
	d.adopt(w)
	return w, nil
}

// WeightBytes is the size in the file: weights stay as they are.
func (d *device) WeightBytes(t quant.Type, rows, cols int) int64 {
	n, err := quant.Bytes(t, cols, rows)
	if err != nil {
		return 0
	}
	return n
}

// buffer holds cols columns of width values.
type buffer struct {
	memory
	name        string
	width, cols int
	data        []float32
}

func (b *buffer) Width() int { return b.width }
func (b *buffer) Cols() int  { return b.cols }

func (b *buffer) Close() {
	if b.release() {
		b.dev.disown(b)
	}
}

// col returns column c.
func (b *buffer) col(c int) []float32 { return b.data[c*b.width : (c+1)*b.width] }

// Buffer makes a zeroed activation buffer.
func (d *device) Buffer(name string, width, cols int) (op.Buffer, error) {
	if d.closed.Load() {
		return nil, fmt.Errorf("ref: buffer %s: %w", name, errClosed)
	}
	if err := op.CheckCols(cols); err != nil {
		return nil, fmt.Errorf("ref: buffer %s: %w", name, err)
	}
	if width < 1 || width > maxAlloc/4/cols {
		return nil, fmt.Errorf("ref: buffer %s: %w: width %d", name, errArgument, width)
	}
	b := &buffer{name: name, width: width, cols: cols, data: make([]float32, cols*width)}
	b.take(d, int64(len(b.data))*4)
	d.adopt(b)
	return b, nil
}

// kv is the cache of one layer: bytes for halves, float32 otherwise.
type kv struct {
	memory
	name            string
	capacity, width int
	keys, values    store
}

// store is capacity rows of width values, in one of two forms.
type store struct {
	width int
	half  []byte
	full  []float32
}

func newStore(capacity, width int, t op.KVType) store {
	if t == op.KVF32 {
		return store{width: width, full: make([]float32, capacity*width)}
	}
	return store{width: width, half: make([]byte, 2*capacity*width)}
}

// put stores a row.
func (s *store) put(row int, v []float32) {
	if s.full != nil {
		copy(s.full[row*s.width:], v)
		return
	}
	quant.PutF16Slice(s.half[2*row*s.width:2*(row+1)*s.width], v)
}

// get returns n values of a row, from column at on; scratch holds them when they have to be converted.
func (s *store) get(row, at, n int, scratch []float32) []float32 {
	from := row*s.width + at
	if s.full != nil {
		return s.full[from : from+n]
	}
	quant.F16Slice(scratch[:n], s.half[2*from:2*(from+n)])
	return scratch[:n]
}

func (c *kv) Capacity() int { return c.capacity }
func (c *kv) Width() int    { return c.width }

func (c *kv) Close() {
	if c.release() {
		c.keys, c.values = store{}, store{}
		c.dev.disown(c)
	}
}

// KV makes an empty cache.
func (d *device) KV(name string, capacity, width int, t op.KVType) (op.KV, error) {
	if d.closed.Load() {
		return nil, fmt.Errorf("ref: cache %s: %w", name, errClosed)
	}
	if capacity < 1 || width < 1 || t > op.KVF32 {
		return nil, fmt.Errorf("ref: cache %s: %w: %d rows of %d values, type %d", name, errArgument, capacity, width, t)
	}
	if capacity > maxAlloc/8/width {
		return nil, fmt.Errorf("ref: cache %s: %d rows of %d values: %w", name, capacity, width, op.ErrMemory)
	}
	c := &kv{name: name, capacity: capacity, width: width, keys: newStore(capacity, width, t), values: newStore(capacity, width, t)}
	per := int64(4)
	if t == op.KVF32 {
		per = 8
	}
	c.take(d, per*int64(capacity)*int64(width))
	d.adopt(c)
	return c, nil
}

// rope holds cosine and sine of pair i at position p in element p*nRot/2+i.
type rope struct {
	memory
	nRot, capacity int
	cos, sin       []float32
}

func (r *rope) NRot() int { return r.nRot }

func (r *rope) Close() {
	if r.release() {
		r.cos, r.sin = nil, nil
		r.dev.disown(r)
	}
}

// Rope computes the table in float64 and keeps it in float32, as a GPU would.
func (d *device) Rope(nRot int, theta float64, capacity int) (op.Rope, error) {
	switch {
	case d.closed.Load():
		return nil, fmt.Errorf("ref: rope: %w", errClosed)
	case nRot < 2 || nRot%2 != 0 || capacity < 1 || !(theta > 0) || math.IsInf(theta, 0):
		return nil, fmt.Errorf("ref: rope: %w: %d of theta %g, %d positions", errArgument, nRot, theta, capacity)
	case capacity > maxAlloc/4/nRot:
		return nil, fmt.Errorf("ref: rope: %d positions of %d: %w", capacity, nRot, op.ErrMemory)
	}
	half := nRot / 2
	r := &rope{nRot: nRot, capacity: capacity, cos: make([]float32, capacity*half), sin: make([]float32, capacity*half)}
	for i := range half {
		freq := math.Pow(theta, -2*float64(i)/float64(nRot))
		for p := range capacity {
			sin, cos := math.Sincos(float64(p) * freq)
			r.cos[p*half+i], r.sin[p*half+i] = float32(cos), float32(sin)
		}
	}
	r.take(d, 4*int64(capacity)*int64(nRot))
	d.adopt(r)
	return r, nil
}
