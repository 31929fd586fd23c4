package gpu

import (
	"fmt"
	"sync/atomic"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
	"pooled/shaders"
)

// recurrent implements op.Recurrent. The window is stored tap after tap, the state key after key, so that threads read
// neighbours.
type recurrent struct {
	dev           *Device
	name          string
	spec          op.RecurrentSpec
	bytes         int64
	window, state *wgpu.Buffer
	// Of a run with Frame.Spec: before holds the window as it was and the convolution's inputs, kept the state as it was, and y, alpha
	// and beta (deltanet_step.wgsl).
	before, kept *wgpu.Buffer
	gone         atomic.Bool

	// The rest belongs to the device goroutine.
	columns int            // kept of the last run; 0: nothing
	delta   *record        // the step that moves the state on
	needs   []*atomic.Bool // set when a weight of that step was released
	undo    *program       // plays it again from what was kept
}

func (r *recurrent) owner() (*Device, *atomic.Bool) { return r.dev, &r.gone }

// Spec returns the sizes.
func (r *recurrent) Spec() op.RecurrentSpec { return r.spec }

// Bytes is the device memory that it takes, with what an undo needs.
func (r *recurrent) Bytes() int64 { return r.bytes }

// Close frees the state. Programs that use it must be closed first.
func (r *recurrent) Close() { r.dev.drop(r) }

func (r *recurrent) release(d *Device) {
	r.gone.Store(true)
	if r.undo != nil {
		r.undo.release(d)
		r.undo = nil
	}
	for _, b := range []**wgpu.Buffer{&r.window, &r.state, &r.before, &r.kept} {
		d.freeBuffer(*b)
		*b = nil
	}
}

// Recurrent makes a zeroed state.
func (d *Device) Recurrent(name string, s op.RecurrentSpec) (op.Recurrent, error) {
	const most = 1 << 16
	if min(s.Channels, s.Heads, s.Dim) < 1 || s.Taps < 2 || s.Taps > most || s.Heads > most || s.Dim > 256 || s.Channels > 1<<24 {
		return nil, fmt.Errorf("gpu: state %s: %w: %+v", name, errArgument, s)
	}
	r := &recurrent{dev: d, name: name, spec: s}
	window := align(int64(s.Window())*4, alignment)
	sizes := []int64{int64(s.Window()) * 4, int64(s.State()) * 4, window + op.MaxCols*int64(s.Channels)*4,
		keptAt(s)[3] * 4}
	for _, n := range sizes {
		if n > d.info.MaxBinding {
			return nil, fmt.Errorf("gpu: state %s: %d bytes, bindings of at most %d: %w", name, n, d.info.MaxBinding, op.ErrMemory)
		}
	}
	err := d.do(func() (err error) {
		for i, b := range []**wgpu.Buffer{&r.window, &r.state, &r.before, &r.kept} {
			if *b, err = d.createBuffer(name, sizes[i], storage); err != nil {
				r.release(d)
				return err
			}
			r.bytes += int64((*b).GetSize())
		}
		d.live[r] = struct{}{}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("gpu: %w", err)
	}
	return r, nil
}

// keptAt is where y, alpha, beta and the end are in what is kept, in values: each starts at a binding's alignment.
func keptAt(s op.RecurrentSpec) (at [4]int64) {
	const to = alignment / 4
	at[0] = align(int64(s.State()), to)
	at[1] = at[0] + align(op.MaxCols*int64(s.Channels), to)
	at[2] = at[1] + align(op.MaxCols*int64(s.Heads), to)
	at[3] = at[2] + align(op.MaxCols*int64(s.Heads), to)
	return at
}

// keepView is the kept window (0) or the kept inputs of the convolution (1).
func (r *recurrent) keepView(i int) view {
	window := int64(r.spec.Window()) * 4
	if i == 0 {
		return view{buf: r.before, size: window}
	}
	return view{buf: r.before, off: align(window, alignment), size: op.MaxCols * int64(r.spec.Channels) * 4}
}

func (r *recurrent) convConsts() shaders.Consts {
	return shaders.Consts{"CHANNELS": uint32(r.spec.Channels), "TAPS": uint32(r.spec.Taps), "WG": elementWG}
}

// back undoes all columns of the last run from column n on: the state goes back to where it was and n columns are played again
// by the same kernel, so that the bits are those of a run that had only n. It runs on the device goroutine.
func (r *recurrent) back(n int) error {
	d := r.dev
	if n >= r.columns {
		r.columns = 0
		return nil
	}
	for _, gone := range r.needs {
		if gone.Load() {
			return errReleased
		}
	}
	if r.undo == nil {
		if err := r.prepareUndo(); err != nil {
			return err
		}
	}
	size := uint64(r.spec.State()) * 4
	if err := d.sh.submit(nil, nil, []span{makeSpan(r.kept, 0, r.state, 0, size)}); err != nil {
		return err
	}
	at, err := d.nextFrame(op.Frame{N: n, HeadFrom: n}, 0, 0)
	if err != nil {
		return err
	}
	r.undo.run = run{frame: op.Frame{N: n, HeadFrom: n}}
	if _, err := r.undo.launch(at, true); err != nil {
		return err
	}
	r.columns = 0
	return r.undo.submit()
}

// prepareUndo makes the program that back launches: the recorded step with the kept inputs, then the window.
func (r *recurrent) prepareUndo() (err error) {
	d, s := r.dev, r.spec
	p := &program{dev: d, name: "undo " + r.name}
	step := *r.delta
	// The result of the columns is not wanted, and what is kept must not be written while it is read.
	if p.scratch, err = d.createBuffer("undo", op.MaxCols*int64(s.Heads*s.Dim)*4, storage); err != nil {
		return err
	}
	at := keptAt(s)
	kept := func(i, n int) view { return view{buf: r.kept, off: at[i] * 4, size: op.MaxCols * int64(n) * 4} }
	step.views = []view{kept(0, s.Channels), kept(1, s.Heads), kept(2, s.Heads), step.views[3], step.views[4],
		whole(p.scratch), whole(r.state), whole(d.shared.sink)}
	conv := record{op: "undo", kernel: "conv_undo", shape: byAll, x: groups(s.Channels, elementWG), consts: r.convConsts(),
		views: []view{r.keepView(0), r.keepView(1), whole(r.window)}}
	for _, rec := range []*record{&step, &conv} {
		if err := p.plan(rec, 0); err != nil {
			p.release(d)
			return err
		}
	}
	r.undo = p
	return nil
}
