package gpu

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
)

// remembered implements op.Memory: slots are copies on the device. Its fields belong to the device goroutine.
type remembered struct {
	dev   *Device
	kv    []*kv
	rec   []*recurrent
	slots map[int]slot
	gone  atomic.Bool
}

// slot is a copy of everything that a memory holds, part after part.
type slot struct {
	parts []*wgpu.Buffer
	bytes int64
}

// part is memory that a slot copies: the first size bytes of a buffer.
type part struct {
	buf  *wgpu.Buffer
	size int64
}

// Memory groups caches and states.
func (d *Device) Memory(caches []op.KV, states []op.Recurrent) (op.Memory, error) {
	m := &remembered{dev: d, slots: make(map[int]slot)}
	for _, c := range caches {
		mine, ok := c.(*kv)
		if !ok || mine.dev != d {
			return nil, fmt.Errorf("gpu: memory: %T: %w", c, errForeign)
		}
		m.kv = append(m.kv, mine)
	}
	for _, r := range states {
		mine, ok := r.(*recurrent)
		if !ok || mine.dev != d {
			return nil, fmt.Errorf("gpu: memory: %T: %w", r, errForeign)
		}
		m.rec = append(m.rec, mine)
	}
	if err := d.do(func() error { d.live[m] = struct{}{}; return m.open() }); err != nil {
		m.Close()
		return nil, fmt.Errorf("gpu: memory: %w", err)
	}
	return m, nil
}

// open fails when something that the memory groups was released.
func (m *remembered) open() error {
	gone := m.gone.Load()
	for _, c := range m.kv {
		gone = gone || c.gone.Load()
	}
	for _, r := range m.rec {
		gone = gone || r.gone.Load()
	}
	if gone {
		return errReleased
	}
	return nil
}

// Close frees the slots; caches and states stay.
func (m *remembered) Close() { m.dev.drop(m) }

func (m *remembered) release(d *Device) {
	m.gone.Store(true)
	for n := range m.slots {
		m.drop(n)
	}
}

// Slots lists what is kept, ascending; nothing when the device is closed or lost.
func (m *remembered) Slots() (list []int) {
	_ = m.dev.do(func() error { list = slices.Sorted(maps.Keys(m.slots)); return nil })
	return list
}

// Bytes is the device memory of the slots; 0 when the device is closed or lost.
func (m *remembered) Bytes() (sum int64) {
	_ = m.dev.do(func() error {
		for _, s := range m.slots {
			sum += s.bytes
		}
		return nil
	})
	return sum
}

// Apply takes its turn among the runs.
func (m *remembered) Apply(ctx context.Context, c op.Control) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("gpu: memory: %w", err)
	}
	if err := m.dev.do(func() error { return m.apply(c) }); err != nil {
		return fmt.Errorf("gpu: memory: %w", err)
	}
	return nil
}

func (m *remembered) apply(c op.Control) error {
	if err := m.open(); err != nil {
		return err
	}
	if err := m.check(c); err != nil {
		return err
	}
	if c.Rollback > 0 {
		for _, r := range m.rec {
			if err := r.back(c.Rollback); err != nil {
				return err
			}
		}
	}
	if c.Save > 0 {
		if err := m.save(c.Save, c.Pos); err != nil {
			return err
		}
	}
	for _, n := range c.Drop {
		m.drop(n)
	}
	if c.DropAll {
		for n := range m.slots {
			m.drop(n)
		}
	}
	if c.Reset {
		if err := m.reset(); err != nil {
			return err
		}
	}
	if c.Load > 0 {
		return m.load(c.Load)
	}
	return nil
}

func (m *remembered) check(c op.Control) error {
	if c.Rollback < 0 || c.Rollback > op.MaxCols {
		return fmt.Errorf("%w: rollback %d", errArgument, c.Rollback)
	}
	for _, r := range m.rec {
		if c.Rollback > r.columns {
			return fmt.Errorf("%w: column %d of state %s, %d were kept", op.ErrUndo, c.Rollback-1, r.name, r.columns)
		}
	}
	for _, n := range append([]int{c.Save, c.Load}, c.Drop...) {
		if n < 0 || n > op.MaxSlot {
			return fmt.Errorf("%w: slot %d", errArgument, n)
		}
	}
	for _, cache := range m.kv {
		if c.Save > 0 && (c.Pos < 0 || c.Pos > cache.capacity) {
			return fmt.Errorf("%w: %d positions, a cache has %d", errArgument, c.Pos, cache.capacity)
		}
	}
	if c.Load > 0 {
		_, there := m.slots[c.Load]
		if !there && c.Load != c.Save || c.DropAll || slices.Contains(c.Drop, c.Load) {
			return fmt.Errorf("%w: slot %d", op.ErrSlot, c.Load)
		}
	}
	return nil
}

// parts lists what a slot of that many positions copies.
func (m *remembered) parts(rows int) (list []part) {
	for _, c := range m.kv {
		if n := c.bytes / 2 / int64(c.capacity) * int64(rows); n > 0 {
			list = append(list, part{c.keys, n}, part{c.values, n})
		}
	}
	for _, r := range m.rec {
		list = append(list, part{r.window, int64(r.spec.Window()) * 4}, part{r.state, int64(r.spec.State()) * 4})
	}
	return list
}

func (m *remembered) save(n, rows int) error {
	m.drop(n)
	var s slot
	var spans []span
	for _, p := range m.parts(rows) {
		b, err := m.dev.createBuffer("slot", p.size, wgpu.BufferUsageCopySrc|wgpu.BufferUsageCopyDst)
		if err != nil {
			s.free(m.dev)
			return err
		}
		s.parts, s.bytes = append(s.parts, b), s.bytes+int64(b.GetSize())
		spans = append(spans, makeSpan(p.buf, 0, b, 0, uint64(p.size)))
	}
	if err := m.dev.sh.submit(nil, nil, spans); err != nil {
		s.free(m.dev)
		return err
	}
	m.slots[n] = s
	return nil
}

func (s slot) free(d *Device) {
	for _, b := range s.parts {
		d.freeBuffer(b)
	}
}

func (m *remembered) drop(n int) {
	m.slots[n].free(m.dev)
	delete(m.slots, n)
}

func (m *remembered) reset() error {
	var spans []span
	for _, r := range m.rec {
		for _, b := range []*wgpu.Buffer{r.window, r.state} {
			spans = append(spans, makeSpan(nil, 0, b, 0, b.GetSize()))
		}
		r.columns = 0
	}
	return m.dev.sh.submit(nil, nil, spans)
}

// load copies a slot back. Its positions are as many as were saved: parts come in the order they were saved in.
func (m *remembered) load(n int) error {
	s := m.slots[n]
	var targets []*wgpu.Buffer
	if len(s.parts) > 2*len(m.rec) { // a slot of no positions has no rows
		for _, c := range m.kv {
			targets = append(targets, c.keys, c.values)
		}
	}
	for _, r := range m.rec {
		targets = append(targets, r.window, r.state)
		r.columns = 0
	}
	var spans []span
	for i, b := range s.parts {
		spans = append(spans, makeSpan(b, 0, targets[i], 0, b.GetSize()))
	}
	return m.dev.sh.submit(nil, nil, spans)
}
