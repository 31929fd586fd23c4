package gpu

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
)

// chain is a run whose best candidate another one takes as its token, and so on, all in one submit: between two of them the id is
// copied from where topk_merge left it to the frame of the next (op.Program.Chain). It belongs to the program that begins it.
type chain struct {
	job    *job
	next   *program
	ids    []int32
	frames [op.MaxCols]uint32
	steps  []step
	copies []span
	work   float64
}

// chainBytes is what a run of a chain leaves: a column of topk_merge with one candidate, whose id is at chainID.
const (
	chainBytes = 16
	chainID    = 8
)

// Chain runs the program and then next, each time with the token that the run before found. It allocates nothing once it has run.
func (p *program) Chain(ctx context.Context, f op.Frame, in []float32, next op.Program, ids []int32) error {
	n, ok := next.(*program)
	if !ok || n.dev != p.dev {
		return fmt.Errorf("gpu: chain %s: %T: %w", p.name, next, errForeign)
	}
	if err := p.ports().CheckChain(f, in, n.ports(), len(ids)); err != nil {
		return fmt.Errorf("gpu: chain %s: %w", p.name, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("gpu: chain %s: %w", p.name, err)
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	if n != p {
		n.turn.Lock()
		defer n.turn.Unlock()
	}
	p.run = run{ctx: ctx, frame: f, in: in, heads: 1, k: 1}
	p.chain.next, p.chain.ids = n, ids
	err := p.dev.run(p.chain.job)
	p.run, n.run = run{}, run{}
	p.chain.next, p.chain.ids = nil, nil
	if err != nil {
		return fmt.Errorf("gpu: chain %s: position %d: %w", p.name, f.Pos, err)
	}
	return nil
}

// execChain is a chain on the device goroutine.
func (p *program) execChain() error {
	c, d := &p.chain, p.dev
	if err := p.open(); err != nil {
		return err
	}
	if err := c.next.open(); err != nil {
		return err
	}
	size := chainBytes * len(c.ids)
	staging, err := d.readback(int64(size))
	if err != nil {
		return err
	}
	if err := p.chainFrames(); err != nil {
		return err
	}
	if err := p.feed(); err != nil {
		return err
	}
	for _, s := range c.next.states {
		s.columns = 0
	}
	if _, err := p.launch(c.frames[0], false); err != nil {
		return err
	}
	c.steps, c.copies, c.work = append(c.steps[:0], p.steps...), c.copies[:0], p.work
	first, last := p.run, p
	for i := 1; i < len(c.ids); i++ {
		if err := p.link(i, first, last.top, staging); err != nil {
			return err
		}
		last = c.next
	}
	c.copies = append(c.copies, makeSpan(last.top, 0, staging, uint64(size-chainBytes), chainBytes))
	if err := p.submitChain(); err != nil {
		return err
	}
	began := time.Now()
	data, err := d.sh.mapped(staging, size)
	d.waiting.Add(int64(time.Since(began)))
	if err != nil {
		d.dropReadback()
		return err
	}
	p.paced()
	d.readbacks.Add(1)
	d.bytesDown.Add(int64(size))
	err = c.take(data)
	d.sh.unmap(staging)
	return err
}

// chainFrames writes the frames of all runs: what is written later would undo the copies of ids.
func (p *program) chainFrames() (err error) {
	c, f := &p.chain, p.run.frame
	for i := range c.ids {
		if c.frames[i], err = p.dev.nextFrame(f, 1, 1); err != nil {
			return err
		}
		f = op.Frame{Pos: f.Pos + f.N, N: 1}
	}
	return nil
}

// link adds run i, whose token is in top. What comes before is submitted when it is too much with it.
func (p *program) link(i int, first run, top, staging *wgpu.Buffer) error {
	c, next := &p.chain, p.chain.next
	next.run = run{ctx: first.ctx, frame: op.Frame{Pos: first.frame.Pos + first.frame.N - 1 + i, N: 1}, heads: 1, k: 1}
	if _, err := next.launch(c.frames[i], true); err != nil {
		return err
	}
	c.copies = append(c.copies,
		makeSpan(top, 0, staging, uint64(i-1)*chainBytes, chainBytes),
		makeSpan(top, chainID, p.dev.shared.frames, uint64(c.frames[i])+frameHead, 4))
	if work := c.work + next.work; work > p.most() {
		now := next.work // of this program maybe, where submitChain sets it
		if err := p.submitChain(); err != nil {
			return err
		}
		p.dev.sh.wait()
		p.paced()
		c.steps, c.copies, c.work = append(c.steps[:0], next.steps...), c.copies[:0], now
		return first.ctx.Err()
	}
	at := len(c.steps)
	c.steps, c.work = append(c.steps, next.steps...), c.work+next.work
	c.steps[at].copies = 2
	return nil
}

// submitChain submits what was collected.
func (p *program) submitChain() error {
	c := &p.chain
	p.steps, c.steps = c.steps, p.steps
	p.copies, c.copies = c.copies, p.copies
	p.work = c.work
	err := p.submit()
	p.steps, c.steps = c.steps, p.steps
	p.copies, c.copies = c.copies, p.copies
	return err
}

// take reads the ids.
func (c *chain) take(data []byte) error {
	finite := true
	for i := range c.ids {
		col := data[chainBytes*i:]
		finite = finite && binary.LittleEndian.Uint32(col) == 0
		c.ids[i] = int32(binary.LittleEndian.Uint32(col[chainID:]))
	}
	if !finite {
		return op.ErrNotFinite
	}
	return nil
}
