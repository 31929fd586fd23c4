package gpu

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
	"pooled/shaders"
)

type wgpuBuffer = wgpu.Buffer

// program implements op.Program: pipelines and bind groups are made by Build; Run fills a list of dispatches and hands
// it to C in one call.
type program struct {
	dev      *Device
	name     string
	cols     int            // that a run may have
	uses     []*atomic.Bool // set when memory that the program uses was released
	table    *weight        // of Embed, or nil
	in       *buffer        // of Input, or nil
	hidden   *buffer        // of Output, or nil
	logits   *buffer        // of Logits, or nil
	hasTail  bool
	states   []*recurrent
	capacity int // positions that all caches and tables have
	gone     atomic.Bool

	planned []planned
	params  *wgpu.Buffer
	scratch *wgpu.Buffer                     // partial results of attention
	slots   [len(expertSlots{})]*wgpu.Buffer // of the chosen experts, see scratch
	cand    *wgpu.Buffer                     // of topk_slice
	bad     *wgpu.Buffer
	top     *wgpu.Buffer // of topk_merge
	masks   *wgpu.Buffer // what candidates are picked from, column after column
	ids     *wgpu.Buffer // tokens of a wide run

	turn    sync.Mutex // one run at a time
	job     *job
	chain   chain
	run     run
	steps   []step // reused by every run
	copies  []span
	ahead   ahead
	pace    float64   // work per second of the submits so far; 0: not known
	work    float64   // of steps
	began   time.Time // of the last submit
	inBytes []byte
	idBytes []byte
	mask    []byte // of one column
}

// run is what the present Run was asked for.
type run struct {
	ctx       context.Context //nolint:containedctx // of one call: a method value would be an allocation for each
	frame     op.Frame
	in        []float32
	out       *op.Out
	heads     int // head columns
	k         int
	hiddenLen int64 // bytes
	logitsLen int64
	topLen    int64
}

// planned is a step ready to be launched.
type planned struct {
	one, cols *wgpu.ComputePipeline // cols: nil when the kernel has one form
	group     *wgpu.BindGroup
	shape     shape
	x, y, z   uint32
	colsX     uint32
	colsY     uint32
	colsZ     uint32
	columns   int            // workgroups of a column of byColumnX
	tile      int            // columns of a workgroup of byTile, pairs of one of byPairs
	colsTile  int            // columns of a workgroup of byTile in its other form
	few       int            // columns up to which byTile doesn't take that form
	pairs     op.ExpertsSize // of byPairs
	attend    attendShape
	bytes     int64 // of weights read for a column
	perPos    int64 // keys and values read for a column, times heads, per position
	tail      bool
}

// Build makes pipelines, bind groups and scratch memory, or returns the first error of the recording.
func (b *builder) Build() (op.Program, error) {
	b.require(len(b.recs) > 0 || b.p.in != nil, "Build", "nothing was recorded")
	if b.err != nil {
		return nil, fmt.Errorf("gpu: program %s: %w", b.p.name, b.err)
	}
	p := b.p
	p.job, p.chain.job = newJob(p.exec), newJob(p.execChain)
	err := p.dev.do(func() error {
		if err := p.open(); err != nil {
			return err
		}
		if err := p.prepare(b); err != nil {
			p.release(p.dev)
			return err
		}
		p.dev.live[p] = struct{}{}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("gpu: program %s: %w", p.name, err)
	}
	return p, nil
}

// prepare runs on the device goroutine.
func (p *program) prepare(b *builder) (err error) {
	d := p.dev
	if b.scratch > 0 {
		if p.scratch, err = d.createBuffer("attention", b.scratch, storage); err != nil {
			return err
		}
	}
	for i, size := range b.slots {
		if size == 0 {
			continue
		}
		if p.slots[i], err = d.createBuffer("experts", size, storage); err != nil {
			return err
		}
	}
	if p.cols > op.MaxCols && p.table != nil {
		p.idBytes = make([]byte, 4*p.cols)
		if p.ids, err = d.createBuffer("tokens", int64(len(p.idBytes)), storage); err != nil {
			return err
		}
	}
	if p.logits != nil {
		if err := p.prepareTop(b); err != nil {
			return err
		}
	}
	if b.recs, err = d.fuse(b.recs, p.hidden); err != nil {
		return err
	}
	p.params, err = d.createBuffer("params", max(int64(len(b.recs)), 1)*alignment, wgpu.BufferUsageUniform|wgpu.BufferUsageCopyDst)
	if err != nil {
		return err
	}
	all := make([]byte, len(b.recs)*alignment)
	for i, r := range b.recs {
		if r.matrix != nil {
			r.params[r.at] = r.matrix.pieces[r.piece].at(r.matrix.spec.Cols)
		}
		copy(all[i*alignment:], paramBytes(r.params))
	}
	if len(all) > 0 {
		if err := d.upload(p.params, 0, all); err != nil {
			return err
		}
	}
	p.tune(b.recs)
	for i := range b.recs {
		if err := p.plan(&b.recs[i], int64(i)*alignment); err != nil {
			return err
		}
	}
	p.steps, p.copies = make([]step, 0, len(p.planned)), make([]span, 0, 3)
	p.ahead.steps, p.ahead.copies = make([]step, 0, len(p.planned)), make([]span, 0, 3)
	if p.in != nil {
		p.inBytes = make([]byte, p.in.width*4*p.cols)
	}
	return nil
}

// prepareTop makes the candidate buffers and records the two reducing steps.
func (p *program) prepareTop(b *builder) (err error) {
	d, slices := p.dev, int64(groups(p.logits.width, topSlice))
	if p.cand, err = d.createBuffer("candidates", op.MaxCols*slices*op.MaxTopK*8, storage); err != nil {
		return err
	}
	if p.bad, err = d.createBuffer("not finite", op.MaxCols*slices*4, storage); err != nil {
		return err
	}
	if p.top, err = d.createBuffer("top", op.MaxCols*(2+2*op.MaxTopK)*4, storage); err != nil {
		return err
	}
	p.mask = make([]byte, 4*op.MaskWords(p.logits.width))
	if p.masks, err = d.createBuffer("masks", op.MaxCols*int64(len(p.mask)), storage); err != nil {
		return err
	}
	b.recs = append(b.recs,
		record{op: "Logits", kernel: "topk_slice", shape: byTopSlice, x: uint32(slices), tail: p.hasTail,
			consts: shaders.Consts{"WIDTH": uint32(p.logits.width), "SLICES": uint32(slices)},
			views:  []view{p.logits.view(), whole(p.masks), whole(p.cand), whole(p.bad)}},
		record{op: "Logits", kernel: "topk_merge", shape: byTopMerge, tail: p.hasTail,
			consts: shaders.Consts{"SLICES": uint32(slices)},
			views:  []view{whole(p.cand), whole(p.bad), whole(p.top)}})
	return nil
}

// arrays are those of the matrix or the cache that the kernel reads.
func (r *record) arrays() []view {
	if r.matrix == nil {
		return r.cached
	}
	return r.matrix.pieces[r.piece].arrays
}

// plan turns a record into a launchable step.
func (p *program) plan(r *record, paramOff int64) error {
	d := p.dev
	if r.x > maxWorkgroups || r.y > maxWorkgroups || r.z > maxWorkgroups {
		return fmt.Errorf("%s: %d x %d x %d workgroups", r.op, r.x, r.y, r.z)
	}
	k, ok := shaders.Lookup(r.kernel)
	if !ok {
		return fmt.Errorf("%w: %s", op.ErrKernel, r.kernel)
	}
	views := r.views
	for i := range views {
		if views[i].near > 0 && !r.wide {
			views[i].size = views[i].near
		}
		switch s := views[i].scratch; s {
		case attendScratch:
			views[i].buf = p.scratch
		case gateScratch, upScratch, productScratch, downScratch, groupScratch:
			views[i].buf = p.slots[s-gateScratch]
		case idScratch:
			views[i].buf = p.ids
		}
	}
	if k.Bindings[len(k.Bindings)-1] == 'u' {
		views = append(views, view{buf: p.params, off: paramOff, size: int64(len(paramBytes(r.params)))})
	}
	s := planned{shape: r.shape, x: max(r.x, 1), y: max(r.y, 1), z: max(r.z, 1), colsX: r.colsX, colsY: r.colsY, colsZ: r.colsZ,
		columns: max(r.columns, 1), tile: r.tile, colsTile: r.colsTile, few: r.few, pairs: r.pairs, attend: r.attend, bytes: r.bytes,
		perPos: r.perPos, tail: r.tail}
	var err error
	if s.one, err = d.pipeline(r.kernel, r.consts); err != nil {
		return err
	}
	if r.cols != "" && (r.shape != byTile || p.cols > r.few) {
		if s.cols, err = d.pipeline(r.cols, r.colsConsts); err != nil {
			return err
		}
	}
	if s.group, err = d.bindGroup(r.kernel, k.Bindings, views, r.arrays()); err != nil {
		return err
	}
	p.planned = append(p.planned, s)
	return nil
}

// Close frees the program's own memory; weights, buffers and caches stay.
func (p *program) Close() { p.dev.drop(p) }

func (p *program) release(d *Device) {
	p.gone.Store(true)
	if p.ahead.cmd != nil {
		d.sh.dropCommands(p.ahead.cmd)
		p.ahead.cmd = nil
	}
	for _, s := range p.planned {
		s.group.Release()
	}
	p.planned = nil
	for _, b := range []**wgpu.Buffer{&p.ids, &p.masks, &p.top, &p.bad, &p.cand, &p.scratch, &p.params} {
		d.freeBuffer(*b)
		*b = nil
	}
	for i, b := range p.slots {
		d.freeBuffer(b)
		p.slots[i] = nil
	}
}

// Run executes the program: one submit, one wait (several when it is long, see launch.go). It allocates nothing.
func (p *program) Run(ctx context.Context, f op.Frame, in []float32, out *op.Out) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	if err := p.prepareRun(ctx, f, in, out); err != nil {
		return fmt.Errorf("gpu: run %s: %w", p.name, err)
	}
	err := p.dev.run(p.job)
	p.run = run{}
	if err != nil {
		return fmt.Errorf("gpu: run %s: position %d: %w", p.name, f.Pos, err)
	}
	return nil
}

func (p *program) prepareRun(ctx context.Context, f op.Frame, in []float32, out *op.Out) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.check(f, in, out); err != nil {
		return err
	}
	r := run{ctx: ctx, frame: f, in: in, out: out, heads: f.N - f.HeadFrom}
	if out != nil {
		r.hiddenLen = int64(len(out.Hidden)) * 4
		r.logitsLen = int64(len(out.Logits)) * 4
		if r.k = out.K; r.heads > 0 {
			r.topLen = int64(r.heads) * int64(topWords(r.k)) * 4
		}
	}
	p.run = r
	return nil
}

// topWords is the number of words of a column's candidates; 0 for none.
func topWords(k int) int {
	if k == 0 {
		return 0
	}
	return 2 + 2*k
}

// open fails when the program or memory that it uses was released: a command buffer that uses a destroyed buffer would end the
// process. It is asked on the device goroutine, where things are released, so nothing changes before the submit.
func (p *program) open() error {
	if p.gone.Load() {
		return errReleased
	}
	for _, gone := range p.uses {
		if gone.Load() {
			return errReleased
		}
	}
	return nil
}

// exec is a run on the device goroutine.
func (p *program) exec() error {
	d, r := p.dev, &p.run
	if err := p.open(); err != nil {
		return err
	}
	at, err := d.nextFrame(r.frame, r.heads, r.k)
	if err != nil {
		return err
	}
	if err := p.feed(); err != nil {
		return err
	}
	cut, err := p.launch(at, false)
	if err != nil {
		return err
	}
	total := r.hiddenLen + r.logitsLen + r.topLen
	var staging *wgpu.Buffer
	if total > 0 {
		if staging, err = d.readback(total); err != nil {
			return err
		}
	}
	p.copyResults(staging)
	if err := p.submit(); err != nil {
		return err
	}
	if r.frame.Spec {
		for _, s := range p.states {
			s.columns = r.frame.N
		}
	}
	if total == 0 {
		d.sh.wait()
		p.paced()
		return d.sh.err("wait")
	}
	if !cut {
		p.recordAhead(staging)
	}
	began := time.Now()
	data, err := d.sh.mapped(staging, int(total))
	d.waiting.Add(int64(time.Since(began)))
	if err != nil {
		d.dropReadback() // its mapping may still be pending
		return err
	}
	p.paced()
	d.readbacks.Add(1)
	d.bytesDown.Add(total)
	err = r.take(data)
	d.sh.unmap(staging)
	return err
}

// feed uploads what the run works on.
func (p *program) feed() error {
	d, r := p.dev, &p.run
	if p.in != nil {
		n := putFloats(p.inBytes, r.in)
		if err := d.upload(p.in.buf, 0, p.inBytes[:n]); err != nil {
			return err
		}
	}
	if p.ids != nil {
		for i, id := range r.frame.Tokens {
			binary.LittleEndian.PutUint32(p.idBytes[4*i:], uint32(id))
		}
		if err := d.upload(p.ids, 0, p.idBytes[:4*len(r.frame.Tokens)]); err != nil {
			return err
		}
	}
	for _, s := range p.states {
		s.columns = 0
	}
	return p.uploadMasks()
}

// uploadMasks writes the masks of the head columns that have one.
func (p *program) uploadMasks() error {
	for c, m := range p.run.frame.Allow {
		if m == nil {
			continue
		}
		for i, w := range m {
			binary.LittleEndian.PutUint32(p.mask[4*i:], w)
		}
		if err := p.dev.upload(p.masks, int64(c*len(p.mask)), p.mask); err != nil {
			return err
		}
	}
	return nil
}

// copyResults fills p.copies with what was asked for, in the order that take reads.
func (p *program) copyResults(staging *wgpu.Buffer) {
	r := &p.run
	if r.hiddenLen > 0 {
		p.copies = append(p.copies, makeSpan(p.hidden.buf, 0, staging, 0, uint64(r.hiddenLen)))
	}
	if r.logitsLen > 0 {
		p.copies = append(p.copies, makeSpan(p.logits.buf, 0, staging, uint64(r.hiddenLen), uint64(r.logitsLen)))
	}
	if r.topLen > 0 {
		p.copies = append(p.copies, makeSpan(p.top, 0, staging, uint64(r.hiddenLen+r.logitsLen), uint64(r.topLen)))
	}
}
