package compute

import (
	"context"
	"fmt"
	"io"
	"slices"

	"pooled/compute/op"
)

// ShardSpec says what a shard holds.
type ShardSpec struct {
	Lo, Hi int  // layers Lo to Hi-1; none when equal
	Head   bool // the embedding table and the head as well; Lo must be 0
	Ctx    int  // positions that the caches hold, 1 to the model's CtxMax
	KV     op.KVType
	Wide   int       // columns of a wide pass, for prompts: a multiple of op.ColStep up to op.MaxWide; 0: none
	Draft  DraftMode // load the draft block too; needs Head

	// DraftVocab is how many tokens, the lowest ids, the draft block proposes from as long as the text has few others; 0: 65,536.
	DraftVocab int
}

func (s ShardSpec) check(m *Model) error {
	switch {
	case s.Lo < 0 || s.Hi < s.Lo || s.Hi > m.Layers:
		return fmt.Errorf("%w: layers %d to %d of %d", ErrCall, s.Lo, s.Hi, m.Layers)
	case s.Head && s.Lo != 0:
		return fmt.Errorf("%w: an embedding in front of layer %d", ErrCall, s.Lo)
	case !s.Head && s.Lo == s.Hi:
		return fmt.Errorf("%w: nothing to load", ErrCall)
	case s.Draft > DraftRaw || s.Draft != NoDraft && !s.Head:
		return fmt.Errorf("%w: a draft block without the head", ErrCall)
	case s.Draft != NoDraft && !m.graph.draft:
		return fmt.Errorf("%w: the model has no draft block", ErrCall)
	case s.DraftVocab < 0:
		return fmt.Errorf("%w: drafts from %d tokens", ErrCall, s.DraftVocab)
	case s.Wide != 0 && op.CheckCols(s.Wide) != nil:
		return fmt.Errorf("%w: %d columns of a wide pass, a multiple of %d from %d to %d is needed", ErrCall, s.Wide, op.ColStep, op.MaxCols, op.MaxWide)
	case s.Ctx < 1 || s.Ctx > m.CtxMax:
		return fmt.Errorf("%w: a context of %d positions, the model has 1 to %d", ErrCall, s.Ctx, m.CtxMax)
	}
	return nil
}

// tensors lists what the shard loads, in order.
func (s ShardSpec) tensors(m *Model) []want {
	var list []want
	if s.Head {
		list = append(list, m.embed)
	}
	for i := s.Lo; i < s.Hi; i++ {
		list = append(list, m.graph.tensors(m.file, i)...)
	}
	if s.Head {
		list = append(list, m.norm)
		if !m.Tied() {
			list = append(list, m.head)
		}
	}
	if s.Draft != NoDraft {
		draft, _ := m.draftTensors()
		list = append(list, draft...)
	}
	return list
}

// Bytes is the size in the file of what the shard loads; Need says what it takes on a device.
func (s ShardSpec) Bytes(m *Model) int64 {
	var sum int64
	for _, w := range s.tensors(m) {
		if t, ok := m.file.Tensor(w.name); ok {
			sum += w.bytes(t)
		}
	}
	return sum
}

// loader makes a shard's memory on a device. The first error stays and makes every later call do nothing, so that graph
// files need no error handling; what was made until then is closed by close.
type loader struct {
	run    func() error // the context's error; nil while loading may go on
	load   func(op.WeightSpec) (op.Weight, error)
	dev    op.Device
	model  *Model
	spec   ShardSpec
	report func(done int64)
	done   int64 // bytes read
	owned  []interface{ Close() }
	caches []op.KV        // of owned
	states []op.Recurrent // of owned
	err    error
}

// add keeps what was made, to be closed later, or the error.
func add[T interface{ Close() }](l *loader, thing T, err error) (made T) {
	if err != nil {
		l.err = err
		return made
	}
	l.owned = append(l.owned, thing)
	return thing
}

// ready says whether loading may go on: nothing failed and the context has not ended.
func (l *loader) ready() bool {
	if l.err == nil {
		l.err = l.run()
	}
	return l.err == nil
}

// weight loads a tensor; a context that ends stops it between two reads.
func (l *loader) weight(w want) op.Weight {
	if !l.ready() {
		return nil
	}
	t, err := w.find(l.model.file)
	if err != nil {
		l.err = err
		return nil
	}
	made, err := l.load(op.WeightSpec{Name: w.name, Type: t.Type, Rows: w.rows(), Cols: t.Cols(), Src: &counted{w.reader(l.model.file, t), l}})
	if err != nil {
		err = fmt.Errorf("load %s: %w", w.name, err)
	}
	return add(l, made, err)
}

// buffer holds as many columns as the shard's widest program has.
func (l *loader) buffer(name string, width int) op.Buffer {
	return l.columns(name, width, max(op.MaxCols, l.spec.Wide))
}

// narrow is a buffer that wide programs use behind their tail only.
func (l *loader) narrow(name string, width int) op.Buffer { return l.columns(name, width, op.MaxCols) }

func (l *loader) columns(name string, width, cols int) op.Buffer {
	if !l.ready() {
		return nil
	}
	made, err := l.dev.Buffer(name, width, cols)
	return add(l, made, err)
}

// kv makes a cache for the shard's context.
func (l *loader) kv(name string, width int) op.KV {
	if !l.ready() {
		return nil
	}
	made, err := l.dev.KV(name, l.spec.Ctx, width, l.spec.KV)
	if made = add(l, made, err); made != nil {
		l.caches = append(l.caches, made)
	}
	return made
}

// recurrent makes a layer's state.
func (l *loader) recurrent(name string, spec op.RecurrentSpec) op.Recurrent {
	if !l.ready() {
		return nil
	}
	made, err := l.dev.Recurrent(name, spec)
	if made = add(l, made, err); made != nil {
		l.states = append(l.states, made)
	}
	return made
}

// rope makes a rotation table for the shard's context.
func (l *loader) rope(nRot int, theta float64) op.Rope {
	if !l.ready() {
		return nil
	}
	made, err := l.dev.Rope(nRot, theta, l.spec.Ctx)
	return add(l, made, err)
}

// program records and builds a narrow program.
func (l *loader) program(name string, record func(op.Builder)) op.Program {
	return l.programOf(op.MaxCols, name, record)
}

// wide records and builds a wide program; nil when the shard has none.
func (l *loader) wide(name string, record func(op.Builder)) op.Program {
	if l.spec.Wide <= op.MaxCols {
		return nil
	}
	return l.programOf(l.spec.Wide, "wide "+name, record)
}

func (l *loader) programOf(cols int, name string, record func(op.Builder)) op.Program {
	if !l.ready() {
		return nil
	}
	b := l.dev.Program(name, cols)
	record(b)
	made, err := b.Build()
	return add(l, made, err)
}

// close releases everything in reverse order.
func (l *loader) close() {
	for _, c := range slices.Backward(l.owned) {
		c.Close()
	}
	l.owned = nil
}

// counted reports the bytes that a device reads, and ends when the context has ended.
type counted struct {
	io.Reader
	l *loader
}

func (c *counted) Read(p []byte) (int, error) {
	if err := c.l.run(); err != nil {
		return 0, err
	}
	n, err := c.Reader.Read(p)
	c.l.done += int64(n)
	c.l.report(c.l.done)
	return n, err
}

// LoadShard loads a part of a model to a device and records its programs. progress (nil for none) gets bytes, rising,
// from whatever goroutine the device reads on. On failure, and when ctx ends, everything made is released again. The
// error wraps ErrCall, op.ErrMemory, op.ErrFormat, the context's or the file's.
func LoadShard(ctx context.Context, dev op.Device, m *Model, spec ShardSpec, progress func(done, total int64)) (*Shard, error) {
	if err := spec.check(m); err != nil {
		return nil, fmt.Errorf("compute: %w", err)
	}
	total := spec.Bytes(m)
	l := &loader{
		run:    ctx.Err,
		load:   func(w op.WeightSpec) (op.Weight, error) { return dev.Load(ctx, w) },
		dev:    dev,
		model:  m,
		spec:   spec,
		report: func(int64) {},
	}
	if progress != nil {
		l.report = func(done int64) { progress(done, total) }
	}
	before := dev.Used()
	s := newShard(l)
	if l.err != nil {
		l.close()
		return nil, fmt.Errorf("compute: layers %d-%d: %w", spec.Lo, spec.Hi, l.err)
	}
	s.bytes = dev.Used() - before
	return s, nil
}
