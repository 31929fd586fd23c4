package netmesh

import (
	"sync"

	"github.com/pion/datachannel"
)

// outlet is the sending side of one data channel. It writes straight into the library while that holds little, and keeps
// the rest in order until the library's buffer has drained to the low mark. It never waits.
type outlet struct {
	mu     sync.Mutex
	raw    *datachannel.DataChannel // nil until open
	queue  [][]byte
	bytes  int
	closed bool
}

// open makes the outlet usable; wake is called when the library's buffer has drained.
func (o *outlet) open(raw *datachannel.DataChannel, wake func()) {
	raw.SetBufferedAmountLowThreshold(lowMark)
	raw.OnBufferedAmountLow(wake)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.raw = raw
}

// close refuses everything from now on and forgets what is queued.
func (o *outlet) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.queue, o.bytes = true, nil, 0
}

// send passes one message on. keep tells that the caller will not touch b again; otherwise b is copied where it must
// wait. A queue over its budget is errOverflow.
func (o *outlet) send(b []byte, keep bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.raw == nil {
		return ErrClosed
	}
	if len(o.queue) == 0 && o.raw.BufferedAmount() < highMark {
		_, err := o.raw.WriteDataChannel(b, false)
		return err
	}
	if o.bytes+len(b) > queueBudget {
		return errOverflow
	}
	if !keep {
		b = append([]byte(nil), b...)
	}
	o.queue = append(o.queue, b)
	o.bytes += len(b)
	return nil
}

// flush passes on what the library takes now. It reports whether everything is gone, out of the library's buffer too.
func (o *outlet) flush() (empty bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.raw == nil {
		return true, nil
	}
	for len(o.queue) > 0 && o.raw.BufferedAmount() < highMark {
		b := o.queue[0]
		o.queue[0] = nil
		o.queue = o.queue[1:]
		o.bytes -= len(b)
		if _, err := o.raw.WriteDataChannel(b, false); err != nil {
			return false, err
		}
	}
	if len(o.queue) == 0 {
		o.queue = nil
	}
	return len(o.queue) == 0 && o.raw.BufferedAmount() == 0, nil
}

// drain makes the library tell when its buffer is empty rather than low.
func (o *outlet) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.raw != nil {
		o.raw.SetBufferedAmountLowThreshold(0)
	}
}

// buffered is what waits, in bytes, and negative when the channel can't be used.
func (o *outlet) buffered() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.raw == nil {
		return -1
	}
	return o.bytes + int(o.raw.BufferedAmount())
}
