package gpu

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
)

// The raw handles of the binding's structs: Buffer and Queue are {device, handle}, the others {handle}
// (spec engine.md 0.4; TestShimLayout fails when a new version changes this).
func rawFirst[T wgpu.Instance | wgpu.Adapter | wgpu.Device | wgpu.BindGroup | wgpu.ComputePipeline](p *T) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(p))
}

func rawSecond[T wgpu.Buffer | wgpu.Queue](p *T) unsafe.Pointer {
	return (*[2]unsafe.Pointer)(unsafe.Pointer(p))[1]
}

// step and span are the C structures that pl_submit reads; Go slices of them are passed as they are. They hold C
// pointers only.
type (
	step C.pl_step
	span C.pl_copy
)

func makeStep(p *wgpu.ComputePipeline, g *wgpu.BindGroup, x, y, z, frame uint32) step {
	return step{pipeline: rawFirst(p), group: rawFirst(g), x: C.uint32_t(x), y: C.uint32_t(y), z: C.uint32_t(z),
		frame: C.uint32_t(frame)}
}

// makeSpan copies size bytes between buffers; without a source it clears.
func makeSpan(src *wgpu.Buffer, srcOff uint64, dst *wgpu.Buffer, dstOff, size uint64) span {
	s := span{dst: rawSecond(dst), src_off: C.uint64_t(srcOff), dst_off: C.uint64_t(dstOff), size: C.uint64_t(size)}
	if src != nil {
		s.src = rawSecond(src)
	}
	return s
}

// shim is the device seen from C. All its methods belong to the device goroutine.
type shim struct {
	state  *C.pl_state
	device unsafe.Pointer
	queue  unsafe.Pointer
	slow   C.int // 1: work may take seconds; see pl_wait
}

// limits is WGPULimits. The binding's own struct is not used: it is filled through an uninitialized chain (T1) and leaves
// out a field.
type limits C.pl_limits

// createInstance replaces wgpu.CreateInstance, which passes uninitialized memory to the library.
func createInstance(b wgpu.InstanceBackend) *wgpu.Instance {
	raw := C.pl_create_instance(C.uint32_t(b))
	if raw == nil {
		return nil
	}
	i := new(wgpu.Instance)
	*(*unsafe.Pointer)(unsafe.Pointer(i)) = raw
	return i
}

// releaseInstance frees everything that came from the instance. The thread must end soon, see guard.c.
func releaseInstance(i *wgpu.Instance) { C.pl_release_instance(rawFirst(i)) }

func adapterLimits(a *wgpu.Adapter) (l limits) {
	C.pl_adapter_limits(rawFirst(a), (*C.pl_limits)(&l))
	return l
}

func (s *shim) limits() (l limits) {
	C.pl_device_limits(s.device, (*C.pl_limits)(&l))
	return l
}

// wantLimits starts from the default limits and raises the ones that a kernel or a weight can use (style.md 2.6).
func wantLimits(has limits, defaults bool) limits {
	var w limits
	C.pl_default_limits((*C.pl_limits)(&w))
	if defaults {
		return w
	}
	w.max_storage_binding = has.max_storage_binding
	w.max_buffer_size = min(has.max_buffer_size, noLimit) // T2
	w.max_workgroup_storage = has.max_workgroup_storage
	w.max_invocations = has.max_invocations
	w.max_size_x = has.max_size_x
	return w
}

// requestDevice opens the adapter with callbacks for loss and uncaptured errors (T5, T7).
func requestDevice(a *wgpu.Adapter, l limits) (*wgpu.Device, *shim, error) {
	s := &shim{state: C.pl_state_new()}
	label := C.CString("pooled")
	defer C.free(unsafe.Pointer(label))
	raw := C.pl_request_device(s.state, rawFirst(a), (*C.pl_limits)(&l), label)
	if raw == nil {
		text := C.GoString(&s.state.error_text[0])
		C.pl_state_free(s.state)
		return nil, nil, errors.New(text)
	}
	d := new(wgpu.Device)
	*(*unsafe.Pointer)(unsafe.Pointer(d)) = raw
	s.device = raw
	return d, s, nil
}

func (s *shim) useQueue(q *wgpu.Queue) { s.queue = rawSecond(q) }

func (s *shim) free() {
	C.pl_state_free(s.state)
	s.state = nil
}

// err turns what C recorded since the last call into an error, or nil, and forgets it. Loss stays.
func (s *shim) err(what string) error {
	st := s.state
	if st.lost != 0 {
		return fmt.Errorf("%s: %w: %s", what, op.ErrLost, C.GoString(&st.lost_text[0]))
	}
	if st.failed == 0 {
		return nil
	}
	text, memory := C.GoString(&st.error_text[0]), st.memory != 0
	C.pl_clear(st)
	if memory || outOfMemory(text) {
		return fmt.Errorf("%s: %w: %s", what, op.ErrMemory, text)
	}
	return fmt.Errorf("%s: %s", what, text)
}

// release gives up the device, after waiting for its work.
func (s *shim) release() { C.pl_release(s.state, s.device) }

func (s *shim) lost() bool { return s.state.lost != 0 }

// lose reports the device as lost, as the library's callback does.
func (s *shim) lose(message string) {
	text := C.CString(message)
	defer C.free(unsafe.Pointer(text))
	C.pl_lose(s.state, text)
}

// poll lets the library free what is no longer used, without waiting.
func (s *shim) poll() { C.pl_poll(s.state, s.device) }

// wait returns when all submitted work is done.
func (s *shim) wait() { C.pl_wait(s.state, s.device, s.slow) }

// flush submits nothing and waits: wgpu then frees the staging copies of earlier writes (T12).
func (s *shim) flush() { C.pl_flush(s.state, s.device, s.queue, s.slow) }

// createBuffer makes a buffer as the binding would.
func (s *shim) createBuffer(label string, usage wgpu.BufferUsage, size int64) (*wgpu.Buffer, error) {
	text := C.CString(label)
	defer C.free(unsafe.Pointer(text))
	raw := C.pl_create_buffer(s.state, s.device, text, C.uint32_t(usage), C.uint64_t(size))
	if raw == nil {
		return nil, s.err(fmt.Sprintf("buffer %s of %d bytes", label, size))
	}
	b := new(wgpu.Buffer)
	*(*[2]unsafe.Pointer)(unsafe.Pointer(b)) = [2]unsafe.Pointer{s.device, raw}
	return b, nil
}

// write copies data (a multiple of 4 bytes, not empty) to the buffer before the next submit.
func (s *shim) write(b *wgpu.Buffer, offset uint64, data []byte) error {
	if C.pl_write(s.state, s.device, s.queue, rawSecond(b), C.uint64_t(offset), unsafe.Pointer(&data[0]), C.size_t(len(data))) != 0 {
		return s.err("write")
	}
	return nil
}

// commands is an encoded command buffer: a C pointer, to be submitted or dropped once.
type commands unsafe.Pointer

// submit encodes the steps as one compute pass, then the copies, and submits them.
func (s *shim) submit(frameGroup *wgpu.BindGroup, steps []step, copies []span) error {
	c, err := s.encode(frameGroup, steps, copies)
	if err != nil {
		return err
	}
	return s.submitCommands(c)
}

// encode does the first half of submit. What the commands use must live until they are submitted or dropped.
func (s *shim) encode(frameGroup *wgpu.BindGroup, steps []step, copies []span) (commands, error) {
	var group unsafe.Pointer
	if frameGroup != nil {
		group = rawFirst(frameGroup)
	}
	c := C.pl_encode(s.state, s.device, group,
		(*C.pl_step)(unsafe.SliceData(steps)), C.size_t(len(steps)),
		(*C.pl_copy)(unsafe.SliceData(copies)), C.size_t(len(copies)))
	if c == nil {
		if err := s.err("submit"); err != nil {
			return nil, err
		}
		return nil, errors.New("submit: no command buffer")
	}
	return commands(c), nil
}

func (s *shim) submitCommands(c commands) error {
	if C.pl_submit_commands(s.state, s.queue, unsafe.Pointer(c)) != 0 {
		return s.err("submit")
	}
	return nil
}

func (s *shim) dropCommands(c commands) { C.pl_drop_commands(unsafe.Pointer(c)) }

// mapped waits for the submitted work and returns the first size bytes of a readback buffer. The slice is C memory and
// valid until unmap.
func (s *shim) mapped(b *wgpu.Buffer, size int) ([]byte, error) {
	p := C.pl_map(s.state, s.device, rawSecond(b), C.size_t(size), s.slow)
	if p == nil {
		if err := s.err("map"); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("map: status %d", int(s.state.map_status))
	}
	return unsafe.Slice((*byte)(p), size), nil
}

func (s *shim) unmap(b *wgpu.Buffer) { C.pl_unmap(rawSecond(b)) }

// bufferSize asks wgpu through C; it exists to pin the layout of wgpu.Buffer.
func bufferSize(b *wgpu.Buffer) uint64 { return uint64(C.pl_buffer_size(rawSecond(b))) }
