package gpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
)

const storage = wgpu.BufferUsageStorage | wgpu.BufferUsageCopyDst | wgpu.BufferUsageCopySrc

// buffer implements op.Buffer: cols columns of width float32.
type buffer struct {
	dev         *Device
	name        string
	width, cols int
	buf         *wgpu.Buffer
	gone        atomic.Bool
}

// Width is the number of values in a column.
func (b *buffer) Width() int { return b.width }

// Cols is the number of columns.
func (b *buffer) Cols() int { return b.cols }

// Close frees the buffer. Programs that use it must be closed first.
func (b *buffer) Close() { b.dev.drop(b) }

func (b *buffer) release(d *Device) {
	b.gone.Store(true)
	d.freeBuffer(b.buf)
	b.buf = nil
}

// Buffer makes cols columns of width values. Their first content is zero.
func (d *Device) Buffer(name string, width, cols int) (op.Buffer, error) {
	if err := op.CheckCols(cols); err != nil {
		return nil, fmt.Errorf("gpu: buffer %s: %w", name, err)
	}
	if width < 1 || int64(width)*4*int64(cols) > d.info.MaxBinding {
		return nil, fmt.Errorf("gpu: buffer %s: %w: %d columns of width %d", name, errArgument, cols, width)
	}
	b := &buffer{dev: d, name: name, width: width, cols: cols}
	err := d.do(func() (err error) {
		if b.buf, err = d.createBuffer(name, int64(width)*4*int64(cols), storage|wgpu.BufferUsageUniform); err == nil {
			d.live[b] = struct{}{}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("gpu: %w", err)
	}
	return b, nil
}

// kv implements op.KV: one buffer of keys and one of values, capacity rows of width values each.
type kv struct {
	dev             *Device
	capacity, width int
	kind            op.KVType
	keys, values    *wgpu.Buffer
	bytes           int64
	gone            atomic.Bool
}

// Capacity is the number of positions.
func (c *kv) Capacity() int { return c.capacity }

// Width is the number of values in a row of keys (or of values).
func (c *kv) Width() int { return c.width }

// Bytes is the device memory of keys and values.
func (c *kv) Bytes() int64 { return c.bytes }

// Close frees the cache. Programs that use it must be closed first.
func (c *kv) Close() { c.dev.drop(c) }

func (c *kv) release(d *Device) {
	c.gone.Store(true)
	d.freeBuffer(c.keys)
	d.freeBuffer(c.values)
	c.keys, c.values = nil, nil
}

// KV makes the cache of one layer. The keys must fit in one binding (op.Info.MaxBinding), and so must the values.
func (d *Device) KV(name string, capacity, width int, t op.KVType) (op.KV, error) {
	size := int64(4)
	if t == op.KVF16 {
		size = 2
	}
	switch {
	case capacity < 1 || width < 1 || t > op.KVF32:
		return nil, fmt.Errorf("gpu: cache %s: %w: %d rows of %d", name, errArgument, capacity, width)
	case width%2 != 0 && t == op.KVF16:
		return nil, fmt.Errorf("gpu: cache %s: %w: rows of %d halves, an even number is needed", name, errArgument, width)
	case int64(capacity) > d.info.MaxBinding/(size*int64(width)):
		return nil, fmt.Errorf("gpu: cache %s: %d rows of %d bytes, bindings of at most %d: %w",
			name, capacity, size*int64(width), d.info.MaxBinding, op.ErrMemory)
	}
	c := &kv{dev: d, capacity: capacity, width: width, kind: t}
	err := d.do(func() (err error) {
		bytes := size * int64(width) * int64(capacity)
		if c.keys, err = d.createBuffer(name+" keys", bytes, storage); err != nil {
			return err
		}
		if c.values, err = d.createBuffer(name+" values", bytes, storage); err != nil {
			c.release(d)
			return err
		}
		c.bytes = int64(c.keys.GetSize() + c.values.GetSize())
		d.live[c] = struct{}{}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("gpu: %w", err)
	}
	return c, nil
}

// rope implements op.Rope: capacity rows of nRot/2 pairs (cos, sin).
type rope struct {
	dev            *Device
	nRot, capacity int
	buf            *wgpu.Buffer
	gone           atomic.Bool
}

// NRot is the number of rotated values of a head.
func (r *rope) NRot() int { return r.nRot }

// Close frees the table. Programs that use it must be closed first.
func (r *rope) Close() { r.dev.drop(r) }

func (r *rope) release(d *Device) {
	r.gone.Store(true)
	d.freeBuffer(r.buf)
	r.buf = nil
}

// Rope computes the table in float64 and uploads it in chunks.
func (d *Device) Rope(nRot int, theta float64, capacity int) (op.Rope, error) {
	if nRot < 2 || nRot%2 != 0 || capacity < 1 || !(theta > 0) || int64(capacity) > d.info.MaxBinding/(int64(nRot)*4) {
		return nil, fmt.Errorf("gpu: rope table: %w: %d values, base %g, %d positions", errArgument, nRot, theta, capacity)
	}
	r := &rope{dev: d, nRot: nRot, capacity: capacity}
	err := d.do(func() error { return r.fill(theta) })
	if err != nil {
		return nil, fmt.Errorf("gpu: rope table: %w", err)
	}
	return r, nil
}

// fill makes and uploads the table on the device goroutine.
func (r *rope) fill(theta float64) (err error) {
	d, row := r.dev, r.nRot*4
	if r.buf, err = d.createBuffer("rope", int64(row)*int64(r.capacity), storage); err != nil {
		return err
	}
	freq := make([]float64, r.nRot/2)
	for i := range freq {
		freq[i] = math.Pow(theta, -2*float64(i)/float64(r.nRot))
	}
	rows := min(max(1<<20/row, 1), r.capacity)
	chunk := make([]byte, 0, rows*row)
	for p := 0; p < r.capacity; p++ {
		for _, f := range freq {
			sin, cos := math.Sincos(float64(p) * f)
			chunk = binary.LittleEndian.AppendUint32(chunk, math.Float32bits(float32(cos)))
			chunk = binary.LittleEndian.AppendUint32(chunk, math.Float32bits(float32(sin)))
		}
		if len(chunk) == cap(chunk) || p == r.capacity-1 {
			if err := d.upload(r.buf, int64(p+1)*int64(row)-int64(len(chunk)), chunk); err != nil {
				r.release(d)
				return err
			}
			chunk = chunk[:0]
			d.sh.flush()
		}
	}
	d.live[r] = struct{}{}
	return nil
}
