package gpu

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
)

// Device implements op.Device on one GPU. Its methods may be called from any goroutine; they hand their work to the
// device goroutine and wait for it.
type Device struct {
	jobs    chan *job
	quit    chan struct{} // closed by Close
	stopped chan struct{} // closed when the goroutine has freed everything
	closing sync.Once

	info op.Info
	used atomic.Int64

	launches, submits, readbacks, uploads, bytesDown, bytesUp, encoding, waiting, aheads, submitting, recording atomic.Int64

	// The rest belongs to the device goroutine.
	instance *instance // that adapter and dev came from
	adapter  *wgpu.Adapter
	dev      *wgpu.Device
	queue    *wgpu.Queue
	sh       *shim
	limits   limits
	shared   shared
	live     map[owned]struct{} // everything that Close must free
	loss     error              // set once the device is lost

	submitTime time.Duration      // see the constant
	mostWork   float64            // when set, the work that a submit may hold (tests)
	shape      matVecShape        // when set, used for all matrices of whole octets (benchmarks)
	attend     func(*attendShape) // when set, changes what attendShape says (benchmarks)
	tiles      attendTile         // when set, used for attention of wide programs (benchmarks, tests)
	ahead      bool               // record the next token's commands while this one runs (ahead.go)
	stagings   int                // readback buffers that were dropped
	pairTile   int                // see the constant; benchmarks and tests change it
	tile       tile               // when set, used for all products of wide programs (benchmarks, tests)
	plain      bool               // leaves every operation to its own kernels (tests)
	tuning     tuning             // shapes that were found to be fast (tune.go)
	fastHalf   uint32             // 1: the device unpacks halves exactly
}

// owned is memory or a program of a device. release runs on the device goroutine.
type owned interface{ release(d *Device) }

// Stats counts what the device did since it was opened.
type Stats = op.Stats

// Stats returns the counts so far.
func (d *Device) Stats() Stats {
	return Stats{
		Launches: d.launches.Load(), Submits: d.submits.Load(), Readbacks: d.readbacks.Load(), Uploads: d.uploads.Load(),
		BytesDown: d.bytesDown.Load(), BytesUp: d.bytesUp.Load(),
		Encoding: time.Duration(d.encoding.Load()), Waiting: time.Duration(d.waiting.Load()),
	}
}

// Info describes the device.
func (d *Device) Info() op.Info { return d.info }

// Used is the device memory held by buffers now, in bytes.
func (d *Device) Used() int64 { return d.used.Load() }

// job is one piece of work for the device goroutine. A job is reused by its owner, one use at a time.
type job struct {
	fn   func() error
	err  error
	done chan struct{} // one signal per use
}

func newJob(fn func() error) *job { return &job{fn: fn, done: make(chan struct{}, 1)} }

func newDevice() *Device {
	return &Device{
		jobs: make(chan *job), quit: make(chan struct{}), stopped: make(chan struct{}),
		live: make(map[owned]struct{}), submitTime: submitTime, pairTile: pairTile,
	}
}

// serve is the device goroutine: the only one that touches the binding (T16). It is locked to its thread because some
// drivers keep state per thread. It ends when Close was called, after freeing everything; after a loss the thread ends with it, and
// another one frees, because the library may have panicked (guard.c).
func (d *Device) serve() {
	runtime.LockOSThread()
	defer close(d.stopped)
	for {
		select {
		case j := <-d.jobs:
			j.err = d.attempt(j.fn)
			j.done <- struct{}{}
		case <-d.quit:
			if d.loss != nil {
				apart(func() { d.freeAll() })
			} else if lost := d.freeAll(); !lost {
				runtime.UnlockOSThread()
			}
			return
		}
	}
}

// attempt runs fn unless the device is lost, and notices a loss during it.
func (d *Device) attempt(fn func() error) error {
	if d.loss != nil {
		return d.loss
	}
	err := fn()
	if d.sh != nil && saysLost(err) && !d.sh.lost() {
		d.sh.lose("the graphics driver reported it")
	}
	if d.sh != nil && d.sh.lost() {
		d.loss = d.sh.err("device")
		return d.loss
	}
	return err
}

// run hands j to the device goroutine and waits for it.
func (d *Device) run(j *job) error {
	select {
	case d.jobs <- j:
		<-j.done
		return j.err
	case <-d.quit:
		return ErrClosed
	}
}

func (d *Device) do(fn func() error) error { return d.run(newJob(fn)) }

// Close frees everything the device ever returned and waits until that is done. Later calls return nil.
func (d *Device) Close() error {
	d.closing.Do(func() { close(d.quit) })
	<-d.stopped
	return nil
}

// apart calls fn on a thread of its own, which ends with it, and waits.
func apart(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		fn()
	}()
	<-done
}

// freeAll releases in the reverse order of acquire. After a loss the library's objects are still released, and with the instance the
// memory that the library couldn't free.
func (d *Device) freeAll() (lost bool) {
	for o := range d.live {
		if p, ok := o.(*program); ok { // programs first: they refer to memory
			p.release(d)
			delete(d.live, o)
		}
	}
	for o := range d.live {
		o.release(d)
		delete(d.live, o)
	}
	d.shared.release(d)
	if d.dev == nil {
		return false
	}
	d.sh.poll()
	if d.queue != nil {
		d.queue.Release()
	}
	d.sh.release()
	d.adapter.Release()
	lost = d.loss != nil || d.sh.lost()
	d.instance.leave(lost)
	d.sh.free() // last: the library may report the end of the device
	return lost
}

// drop releases one thing on the device goroutine; after Close that has happened already.
func (d *Device) drop(o owned) {
	_ = d.do(func() error { // a closed device has freed it
		if _, ok := d.live[o]; ok {
			delete(d.live, o)
			o.release(d)
		}
		return nil
	})
}

// createBuffer makes a buffer of size bytes, rounded up to a multiple of 4. Any complaint of the library is an error,
// whichever way it arrives.
func (d *Device) createBuffer(label string, size int64, usage wgpu.BufferUsage) (*wgpu.Buffer, error) {
	size = (size + 3) &^ 3
	if size <= 0 || size > d.info.MaxBuffer {
		return nil, fmt.Errorf("buffer %s of %d bytes, 4 to %d allowed: %w", label, size, d.info.MaxBuffer, op.ErrMemory)
	}
	b, err := d.sh.createBuffer(label, usage, size)
	if errors.Is(err, op.ErrMemory) {
		return nil, fmt.Errorf("%w; %d bytes are in use here", err, d.used.Load())
	}
	if err != nil {
		return nil, err
	}
	d.used.Add(size)
	return b, nil
}

func (d *Device) freeBuffer(b *wgpu.Buffer) {
	if b == nil {
		return
	}
	d.used.Add(-int64(b.GetSize()))
	b.Destroy()
	b.Release()
}

// upload writes data to the buffer through the library's staging memory.
func (d *Device) upload(b *wgpu.Buffer, offset int64, data []byte) error {
	if err := d.sh.write(b, uint64(offset), data); err != nil {
		return err
	}
	d.uploads.Add(1)
	d.bytesUp.Add(int64(len(data)))
	return nil
}
