package ref

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"pooled/compute/op"
)

// maxAlloc is the largest single allocation in bytes.
const maxAlloc = 16 << 30

// device implements op.Device.
type device struct {
	workers int
	turn    chan struct{} // holds one token while a program runs
	used    atomic.Int64
	closed  atomic.Bool

	mu    sync.Mutex
	owned []closer // what Close still has to release, oldest first
}

type closer interface{ Close() }

// Open returns a device that computes on the processor.
func Open() op.Device { return open(runtime.GOMAXPROCS(0)) }

func open(workers int) *device {
	return &device{workers: max(1, workers), turn: make(chan struct{}, 1)}
}

// Info describes the processor; Software is false because nothing pretends to be a GPU.
func (d *device) Info() op.Info {
	return op.Info{Backend: "ref", Name: fmt.Sprintf("processor, %d threads", d.workers), MaxBuffer: maxAlloc, MaxBinding: maxAlloc}
}

// Used returns the bytes of weights, buffers, caches and tables that were made and not closed.
func (d *device) Used() int64 { return d.used.Load() }

// Close waits for the program that is running, then releases everything the device made, newest first. A second Close
// does nothing.
func (d *device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	d.mu.Lock()
	owned := d.owned
	d.owned = nil
	d.mu.Unlock()
	for _, c := range slices.Backward(owned) {
		c.Close()
	}
	return nil
}

// adopt notes that c belongs to the device.
func (d *device) adopt(c closer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owned = append(d.owned, c)
}

// disown forgets c, which was closed on its own.
func (d *device) disown(c closer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.owned, c); i >= 0 {
		d.owned = slices.Delete(d.owned, i, i+1)
	}
}
