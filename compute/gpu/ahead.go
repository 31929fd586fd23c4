package gpu

import (
	"slices"
	"time"

	"github.com/cogentcore/webgpu/wgpu"
)

// Encoding ahead. Recording a token's commands takes the processor about a quarter of the time that a GPU needs for them, and they
// follow from little: the position (splits of attention), the slot of the frame ring, what is read back. So while a run of
// one column is under way, the commands of the same run at the next position are recorded. The next run makes its list of steps
// as always; when that equals the recorded one, it is submitted as it is, else it is thrown away (spec engine.md 5.6).

// ahead is what was recorded for a run that may come.
type ahead struct {
	steps  []step
	copies []span
	cmd    commands // nil: nothing
	age    int      // Device.stagings when it was recorded: a handle may be used again for another buffer
}

// recordAhead runs on the device goroutine, after the submit and before the wait. Its errors are no errors of the run.
func (p *program) recordAhead(staging *wgpu.Buffer) {
	d, r := p.dev, &p.run
	if !d.ahead || r.frame.N != 1 || staging == nil || p.work > p.most() {
		return
	}
	work, began := p.work, time.Now()
	p.swapAhead()
	r.frame.Pos++
	if _, err := p.launch(uint32(d.shared.slot*frameSlot), true); err == nil {
		p.copyResults(staging)
		if c, err := d.sh.encode(d.shared.frameGroup, p.steps, p.copies); err == nil {
			p.ahead.cmd, p.ahead.age = c, d.stagings
		}
	}
	r.frame.Pos--
	p.swapAhead()
	p.work = work
	d.recording.Add(int64(time.Since(began)))
}

func (p *program) swapAhead() {
	p.steps, p.ahead.steps = p.ahead.steps, p.steps
	p.copies, p.ahead.copies = p.ahead.copies, p.copies
}

// takeAhead returns the recorded commands when they are those of the present run; they are gone either way.
func (p *program) takeAhead() commands {
	c := p.ahead.cmd
	p.ahead.cmd = nil
	if c == nil {
		return nil
	}
	if p.ahead.age == p.dev.stagings && slices.Equal(p.ahead.steps, p.steps) && slices.Equal(p.ahead.copies, p.copies) {
		p.dev.aheads.Add(1)
		return c
	}
	p.dev.sh.dropCommands(c)
	return nil
}
