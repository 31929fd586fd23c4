package gpu

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
	"pooled/compute/quant"
)

const (
	stagingBytes = 8 << 20 // file bytes repacked and written at a time
	stagingSlots = 3       // chunks in flight between reading and writing
	flushEvery   = 4       // writes between a submit with a wait (T12); at most 4 x 8 MiB of staging memory
	pieceRows    = 64      // pieces of a matrix have a multiple of this many rows, the last one excepted
)

const weightUsage = wgpu.BufferUsageStorage | wgpu.BufferUsageUniform | wgpu.BufferUsageCopyDst | wgpu.BufferUsageCopySrc

// weight implements op.Weight.
type weight struct {
	dev    *Device
	spec   op.WeightSpec
	format format
	pieces []piece
	bytes  int64
	gone   atomic.Bool
}

// piece is a run of rows that fits in one binding per array (spec engine.md 5.8). Its arrays lie in one store.
type piece struct {
	row0, rows int
	before     int // rows of other matrices in the arrays, before these
	store      *store
	arrays     []view // in the store's buffer
}

// at is the octets in the arrays before the piece's, of rows of cols values.
func (p piece) at(cols int) uint32 { return uint32(p.before * (cols / 8)) }

func (p piece) bytes() (n int64) {
	for _, a := range p.arrays {
		n += a.size
	}
	return n
}

// Spec returns the tensor's name, type and size, without its source.
func (w *weight) Spec() op.WeightSpec { return w.spec }

// Bytes is the device memory the weight takes.
func (w *weight) Bytes() int64 { return w.bytes }

// Close frees the weight. Programs that use it must be closed first.
func (w *weight) Close() { w.dev.drop(w) }

func (w *weight) release(d *Device) {
	w.gone.Store(true)
	for _, p := range w.pieces {
		if p.store != nil {
			p.store.drop(d)
		}
	}
	w.pieces = nil
}

// Load copies a weight to the device. Rows are read, repacked and uploaded in chunks of at most 8 MiB, so that neither a whole
// tensor nor more than a few chunks are ever in RAM. Any error frees what was made.
func (d *Device) Load(ctx context.Context, spec op.WeightSpec) (op.Weight, error) {
	w, err := d.plan(spec)
	if err == nil {
		err = d.do(func() error { return w.allocate() })
	}
	if err != nil {
		return nil, fmt.Errorf("gpu: load %s: %w", spec.Name, err)
	}
	if err := w.fill(ctx, spec.Src); err != nil {
		w.Close()
		return nil, fmt.Errorf("gpu: load %s: %w", spec.Name, err)
	}
	return w, nil
}

// plan checks the spec and cuts the rows into pieces.
func (d *Device) plan(spec op.WeightSpec) (*weight, error) {
	if spec.Rows < 1 || spec.Cols < 1 || spec.Src == nil {
		return nil, fmt.Errorf("%w: %d rows of %d values", errArgument, spec.Rows, spec.Cols)
	}
	if _, err := quant.Bytes(spec.Type, spec.Cols, spec.Rows); err != nil {
		return nil, err
	}
	f, ok := formatOf(spec.Type, spec.Cols)
	if !ok {
		return nil, fmt.Errorf("%v: %w", spec.Type, op.ErrFormat)
	}
	q, _ := spec.Type.Format()
	blocks := int64(spec.Cols / q.BlockLen) // per row
	var perRow, largest int64
	for _, a := range f.arrays {
		perRow += a * blocks
		largest = max(largest, a*blocks)
	}
	// Room for the alignment of each array; both limits in bytes.
	most := min(d.info.MaxBinding/largest, (d.info.MaxBuffer-int64(len(f.arrays))*alignment)/perRow)
	if most < int64(spec.Rows) {
		most -= most % pieceRows
	}
	if most < 1 {
		return nil, fmt.Errorf("rows of %d bytes, bindings of at most %d: %w", largest, d.info.MaxBinding, op.ErrMemory)
	}
	w := &weight{dev: d, spec: spec, format: f}
	w.spec.Src = nil
	for r := 0; r < spec.Rows; r += int(most) {
		w.pieces = append(w.pieces, piece{row0: r, rows: min(spec.Rows-r, int(most))})
	}
	return w, nil
}

func align(n, to int64) int64 { return (n + to - 1) / to * to }

// allocate makes the buffers. It runs on the device goroutine.
func (w *weight) allocate() error {
	q, _ := w.spec.Type.Format()
	for i := range w.pieces {
		p := &w.pieces[i]
		blocks := int64(p.rows) * int64(w.spec.Cols/q.BlockLen)
		var size int64
		for _, a := range w.format.arrays {
			p.arrays = append(p.arrays, view{off: size, size: align(a*blocks, 4)})
			size = align(size+a*blocks, alignment)
		}
		b, err := w.dev.createBuffer(w.spec.Name, size, weightUsage)
		if err != nil {
			w.release(w.dev)
			return err
		}
		p.store = &store{b, 1}
		for j := range p.arrays {
			p.arrays[j].buf = b
		}
		w.bytes += int64(b.GetSize())
	}
	w.dev.live[w] = struct{}{}
	return nil
}

// chunk is one slot of the ring between the reader and the device goroutine.
type chunk struct {
	file   []byte
	arrays [][]byte
	piece  *piece
	block  int64 // first block, counted in the piece
	job    *job
	busy   bool
}

// fill reads the source and uploads it. The caller's goroutine reads and repacks while the device goroutine writes.
func (w *weight) fill(ctx context.Context, src io.Reader) error {
	q, _ := w.spec.Type.Format()
	perRow := w.spec.Cols / q.BlockLen
	// A chunk starts on a word in every array: an even number of rows, unless it is the last of its piece.
	rows := max(stagingBytes/(perRow*q.BlockBytes)&^1, 2)
	rows = min(rows, (w.pieces[0].rows+1)&^1)
	ring := make([]chunk, stagingSlots)
	writes := 0
	for i := range ring {
		c := &ring[i]
		c.file = make([]byte, rows*perRow*q.BlockBytes)
		for _, a := range w.format.arrays {
			c.arrays = append(c.arrays, make([]byte, align(int64(rows*perRow)*a, 4)))
		}
		c.job = newJob(func() error { return w.write(c, &writes) })
	}
	next := 0
	var err error
	for i := range w.pieces {
		p := &w.pieces[i]
		for r := 0; r < p.rows && err == nil; r += rows {
			c := &ring[next]
			next = (next + 1) % stagingSlots
			if err = w.settle(c); err != nil {
				break
			}
			n := min(rows, p.rows-r) * perRow
			err = c.load(ctx, src, w.format, n, n*q.BlockBytes)
			if err == nil {
				c.piece, c.block = p, int64(r*perRow)
				err = w.begin(c)
			}
		}
	}
	for i := range ring {
		if e := w.settle(&ring[i]); err == nil {
			err = e
		}
	}
	if err != nil {
		return err
	}
	return w.dev.do(func() error { w.dev.sh.flush(); return w.dev.sh.err("load") })
}

// load reads n blocks and repacks them.
func (c *chunk) load(ctx context.Context, src io.Reader, f format, n, fileBytes int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := io.ReadFull(src, c.file[:fileBytes]); err != nil {
		return err
	}
	for j, a := range f.arrays {
		size := int64(n) * a
		c.arrays[j] = c.arrays[j][:align(size, 4)]
		clear(c.arrays[j][size:])
	}
	f.repack(c.arrays, c.file[:fileBytes])
	return nil
}

// begin hands the chunk to the device goroutine without waiting for the write.
func (w *weight) begin(c *chunk) error {
	select {
	case w.dev.jobs <- c.job:
		c.busy = true
		return nil
	case <-w.dev.quit:
		return ErrClosed
	}
}

// settle waits for the chunk's last write.
func (w *weight) settle(c *chunk) error {
	if !c.busy {
		return nil
	}
	<-c.job.done
	c.busy = false
	return c.job.err
}

// write uploads a chunk. It runs on the device goroutine; writes counts what the library has staged.
func (w *weight) write(c *chunk, writes *int) error {
	for j, a := range w.format.arrays {
		if err := w.dev.upload(c.piece.store.buf, c.piece.arrays[j].off+c.block*a, c.arrays[j]); err != nil {
			return err
		}
	}
	if *writes++; *writes%flushEvery == 0 {
		w.dev.sh.flush()
	}
	return nil
}

// WeightBytes is the size of the arrays that a weight is repacked into.
func (d *Device) WeightBytes(t quant.Type, rows, cols int) int64 {
	f, ok := formatOf(t, cols)
	q, known := t.Format()
	if !ok || !known {
		return 0
	}
	var block int64
	for _, bytes := range f.arrays {
		block += bytes
	}
	return int64(rows) * int64(cols/q.BlockLen) * block
}
