package ref

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"pooled/compute/op"
)

// recurrent is the state of one DeltaNet layer, and what is needed to go back into the last run.
type recurrent struct {
	memory
	name   string
	spec   op.RecurrentSpec
	window []float32 // channel c's remembered inputs are [c*(Taps-1), (c+1)*(Taps-1)), oldest first
	state  []float32 // S[h][i][j] is element (h*Dim+i)*Dim+j; i counts keys, j values

	// Of the last run, when it had Frame.Spec (kept is then its columns, else 0): what was there before it, and the
	// inputs of each column, column after column.
	kept        int
	window0     []float32
	state0      []float32
	in, y       []float32 // inputs and outputs of the convolution
	alpha, beta []float32
	delta       *delta // the step that moved the state on
}

func (r *recurrent) Spec() op.RecurrentSpec { return r.spec }

func (r *recurrent) Close() {
	if r.release() {
		r.window, r.state, r.window0, r.state0, r.in, r.y, r.alpha, r.beta = nil, nil, nil, nil, nil, nil, nil, nil
		r.dev.disown(r)
	}
}

// Recurrent makes a zeroed state.
func (d *device) Recurrent(name string, s op.RecurrentSpec) (op.Recurrent, error) {
	if d.closed.Load() {
		return nil, fmt.Errorf("ref: state %s: %w", name, errClosed)
	}
	const most = 1 << 16
	if min(s.Channels, s.Heads, s.Dim) < 1 || s.Taps < 2 || s.Taps > most || s.Heads > most || s.Dim > most || s.Channels > 1<<24 {
		return nil, fmt.Errorf("ref: state %s: %w: %+v", name, errArgument, s)
	}
	if s.Dim*s.Dim > maxAlloc/8/s.Heads || s.Window() > maxAlloc/8 {
		return nil, fmt.Errorf("ref: state %s: %d heads of %d x %d: %w", name, s.Heads, s.Dim, s.Dim, op.ErrMemory)
	}
	floats := func(n int) []float32 { return make([]float32, n) }
	r := &recurrent{
		name: name, spec: s,
		window: floats(s.Window()), window0: floats(s.Window()), state: floats(s.State()), state0: floats(s.State()),
		in: floats(op.MaxCols * s.Channels), y: floats(op.MaxCols * s.Channels),
		alpha: floats(op.MaxCols * s.Heads), beta: floats(op.MaxCols * s.Heads),
	}
	r.take(d, s.Bytes()+s.UndoBytes())
	d.adopt(r)
	return r, nil
}

// back undoes all columns from column n on.
func (r *recurrent) back(n int) {
	if n < r.kept {
		copy(r.state, r.state0)
		for h := range r.spec.Heads {
			for c := range n {
				r.delta.column(h, r.at(c), nil, &scratch{})
			}
		}
		taps := r.spec.Taps - 1
		for ch := range r.spec.Channels {
			for t := range taps {
				r.window[ch*taps+t] = r.input(ch, n+t)
			}
		}
	}
	r.kept = 0
}

// input is channel ch's i-th input: first those that were remembered before the run, then those of its columns.
func (r *recurrent) input(ch, i int) float32 {
	taps := r.spec.Taps - 1
	if i < taps {
		return r.window0[ch*taps+i]
	}
	return r.in[(i-taps)*r.spec.Channels+ch]
}

// at is the kept column c.
func (r *recurrent) at(c int) column {
	n, heads := r.spec.Channels, r.spec.Heads
	return column{r.y[c*n : (c+1)*n], r.alpha[c*heads : (c+1)*heads], r.beta[c*heads : (c+1)*heads]}
}

// slot is a copy of everything that a memory holds.
type slot struct {
	rows    int
	kv      []store // keys and values of each cache, of rows rows
	windows [][]float32
	states  [][]float32
	bytes   int64
}

// remembered implements op.Memory.
type remembered struct {
	memory
	kv    []*kv
	rec   []*recurrent
	slots map[int]*slot
}

// Memory groups caches and states.
func (d *device) Memory(caches []op.KV, states []op.Recurrent) (op.Memory, error) {
	if d.closed.Load() {
		return nil, fmt.Errorf("ref: memory: %w", errClosed)
	}
	m := &remembered{slots: make(map[int]*slot)}
	for _, c := range caches {
		mine, ok := c.(*kv)
		if !ok {
			return nil, fmt.Errorf("ref: memory: %T: %w", c, errForeign)
		}
		m.kv = append(m.kv, mine)
	}
	for _, r := range states {
		mine, ok := r.(*recurrent)
		if !ok {
			return nil, fmt.Errorf("ref: memory: %T: %w", r, errForeign)
		}
		m.rec = append(m.rec, mine)
	}
	m.take(d, 0)
	if err := m.open(); err != nil {
		return nil, fmt.Errorf("ref: memory: %w", err)
	}
	d.adopt(m)
	return m, nil
}

// open fails when something that the memory groups is another device's or closed.
func (m *remembered) open() error {
	if err := m.check(m.dev); err != nil {
		return err
	}
	for _, c := range m.kv {
		if err := c.check(m.dev); err != nil {
			return err
		}
	}
	for _, r := range m.rec {
		if err := r.check(m.dev); err != nil {
			return err
		}
	}
	return nil
}

func (m *remembered) Slots() []int {
	m.dev.turn <- struct{}{}
	defer func() { <-m.dev.turn }()
	return slices.Sorted(maps.Keys(m.slots))
}

func (m *remembered) Bytes() int64 {
	m.dev.turn <- struct{}{}
	defer func() { <-m.dev.turn }()
	var sum int64
	for _, s := range m.slots {
		sum += s.bytes
	}
	return sum
}

func (m *remembered) Close() {
	if m.release() {
		for n := range m.slots {
			m.drop(n)
		}
		m.dev.disown(m)
	}
}

// Apply takes its turn like a run.
func (m *remembered) Apply(ctx context.Context, c op.Control) error {
	select {
	case m.dev.turn <- struct{}{}:
		defer func() { <-m.dev.turn }()
	case <-ctx.Done():
		return fmt.Errorf("ref: memory: %w", ctx.Err())
	}
	if err := m.open(); err != nil {
		return fmt.Errorf("ref: memory: %w", err)
	}
	if err := m.checkControl(c); err != nil {
		return fmt.Errorf("ref: memory: %w", err)
	}
	if c.Rollback > 0 {
		for _, r := range m.rec {
			r.back(c.Rollback)
		}
	}
	if c.Save > 0 {
		m.save(c.Save, c.Pos)
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
		for _, r := range m.rec {
			clear(r.window)
			clear(r.state)
			r.kept = 0
		}
	}
	if c.Load > 0 {
		m.load(m.slots[c.Load])
	}
	return nil
}

func (m *remembered) checkControl(c op.Control) error {
	if c.Rollback < 0 || c.Rollback > op.MaxCols {
		return fmt.Errorf("%w: rollback %d", errArgument, c.Rollback)
	}
	for _, r := range m.rec {
		if c.Rollback > r.kept {
			return fmt.Errorf("%w: column %d of state %s, %d were kept", op.ErrUndo, c.Rollback-1, r.name, r.kept)
		}
	}
	for _, n := range append([]int{c.Save, c.Load}, c.Drop...) {
		if n < 0 || n > op.MaxSlot {
			return fmt.Errorf("%w: slot %d", errArgument, n)
		}
	}
	for _, cache := range m.kv {
		if c.Save > 0 && (c.Pos < 0 || c.Pos > cache.capacity) {
			return fmt.Errorf("%w: %d positions, cache %s has %d", errArgument, c.Pos, cache.name, cache.capacity)
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

func (m *remembered) save(n, rows int) {
	m.drop(n)
	s := &slot{rows: rows}
	for _, c := range m.kv {
		for _, from := range []*store{&c.keys, &c.values} {
			s.kv = append(s.kv, from.copyRows(rows))
		}
		s.bytes += c.bytes / int64(c.capacity) * int64(rows)
	}
	for _, r := range m.rec {
		s.windows, s.states = append(s.windows, slices.Clone(r.window)), append(s.states, slices.Clone(r.state))
		s.bytes += r.spec.Bytes()
	}
	m.slots[n] = s
	m.dev.used.Add(s.bytes)
}

func (m *remembered) drop(n int) {
	if s, ok := m.slots[n]; ok {
		delete(m.slots, n)
		m.dev.used.Add(-s.bytes)
	}
}

func (m *remembered) load(s *slot) {
	for i, c := range m.kv {
		c.keys.setRows(s.kv[2*i])
		c.values.setRows(s.kv[2*i+1])
	}
	for i, r := range m.rec {
		copy(r.window, s.windows[i])
		copy(r.state, s.states[i])
		r.kept = 0
	}
}

// copyRows is a copy of the first n rows.
func (s *store) copyRows(n int) store {
	if s.full != nil {
		return store{width: s.width, full: slices.Clone(s.full[:n*s.width])}
	}
	return store{width: s.width, half: slices.Clone(s.half[:2*n*s.width])}
}

// setRows puts rows back.
func (s *store) setRows(from store) {
	copy(s.full, from.full)
	copy(s.half, from.half)
}
