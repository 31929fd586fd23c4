package gpu

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
	"pooled/shaders"
)

// The frame ring: each slot holds two records, one for all columns of a run and one for its head columns. A slot is
// reused after frameSlots submits; every run waits for its own, so the ring is deeper than it has to be
// (spec engine.md 5.6).
const (
	frameSlots  = 2 * op.MaxCols // a chain takes op.MaxCols at once
	frameRecord = alignment      // bytes from one record to the next
	frameSize   = frameHead + 4*op.MaxCols
	frameHead   = 32
	frameSlot   = 2 * frameRecord
)

// shared is what all programs of a device use together. It belongs to the device goroutine.
type shared struct {
	frameLayout *wgpu.BindGroupLayout
	frames      *wgpu.Buffer
	frameGroup  *wgpu.BindGroup
	slot        int
	frameBytes  [frameSlot]byte
	zero        *wgpu.Buffer // stands for an input that a kernel doesn't read
	sink        *wgpu.Buffer // stands for an output that a kernel doesn't write
	staging     *wgpu.Buffer // readback, grown on demand
	layouts     map[string]layout
	pipelines   map[string]*wgpu.ComputePipeline
}

// layout is the pair of layouts that belongs to a kernel's binding signature.
type layout struct {
	group    *wgpu.BindGroupLayout
	pipeline *wgpu.PipelineLayout
}

// common makes the shared objects of a fresh device.
func (d *Device) common() error {
	s := &d.shared
	s.layouts, s.pipelines = make(map[string]layout), make(map[string]*wgpu.ComputePipeline)
	var err error
	s.frameLayout, err = d.dev.CreateBindGroupLayout(&wgpu.BindGroupLayoutDescriptor{Entries: []wgpu.BindGroupLayoutEntry{{
		Visibility: wgpu.ShaderStageCompute,
		Buffer:     wgpu.BufferBindingLayout{Type: wgpu.BufferBindingTypeUniform, HasDynamicOffset: true, MinBindingSize: frameSize},
	}}})
	if err != nil {
		return fmt.Errorf("frame layout: %w", err)
	}
	if s.frames, err = d.createBuffer("frames", frameSlots*frameSlot, wgpu.BufferUsageUniform|wgpu.BufferUsageCopyDst); err != nil {
		return err
	}
	s.frameGroup, err = d.dev.CreateBindGroup(&wgpu.BindGroupDescriptor{Layout: s.frameLayout,
		Entries: []wgpu.BindGroupEntry{{Buffer: s.frames, Size: frameSize}}})
	if err != nil {
		return fmt.Errorf("frame group: %w", err)
	}
	if s.zero, err = d.createBuffer("zero", alignment, wgpu.BufferUsageStorage|wgpu.BufferUsageCopyDst); err != nil {
		return err
	}
	if s.sink, err = d.createBuffer("sink", alignment, storage); err != nil {
		return err
	}
	return d.probe()
}

func (s *shared) release(d *Device) {
	for _, p := range s.pipelines {
		p.Release()
	}
	for _, l := range s.layouts {
		l.pipeline.Release()
		l.group.Release()
	}
	if s.frameGroup != nil {
		s.frameGroup.Release()
	}
	for _, b := range []*wgpu.Buffer{s.staging, s.sink, s.zero, s.frames} {
		d.freeBuffer(b)
	}
	if s.frameLayout != nil {
		s.frameLayout.Release()
	}
	*s = shared{}
}

// nextFrame writes the two records of a run into the next slot and returns the slot's offset.
func (d *Device) nextFrame(f op.Frame, heads, k int) (uint32, error) {
	s := &d.shared
	keep := 0
	if f.Spec {
		keep = 1
	}
	masked := 0
	for c, m := range f.Allow {
		if m != nil {
			masked |= 1 << c
		}
	}
	putFrame(s.frameBytes[:frameRecord], [6]int{f.Pos, f.N, f.HeadFrom, k, keep, masked}, f.Tokens)
	var rest []int32
	if len(f.Tokens) > f.HeadFrom {
		rest = f.Tokens[f.HeadFrom:]
	}
	putFrame(s.frameBytes[frameRecord:], [6]int{f.Pos + f.HeadFrom, heads, f.HeadFrom, k, keep, masked}, rest)
	at := s.slot * frameSlot
	s.slot = (s.slot + 1) % frameSlots
	return uint32(at), d.upload(s.frames, int64(at), s.frameBytes[:])
}

// putFrame lays out a record as frame.wgsl says.
func putFrame(b []byte, head [6]int, tokens []int32) {
	for i, v := range head {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
	}
	for i := range op.MaxCols {
		var id int32
		if i < len(tokens) {
			id = tokens[i]
		}
		binary.LittleEndian.PutUint32(b[frameHead+4*i:], uint32(id))
	}
}

// readback returns the staging buffer, at least size bytes long.
func (d *Device) readback(size int64) (*wgpu.Buffer, error) {
	s := &d.shared
	if s.staging != nil && int64(s.staging.GetSize()) >= size {
		return s.staging, nil
	}
	d.dropReadback()
	b, err := d.createBuffer("readback", max(size, 64<<10), wgpu.BufferUsageMapRead|wgpu.BufferUsageCopyDst)
	s.staging = b
	return b, err
}

func (d *Device) dropReadback() {
	d.freeBuffer(d.shared.staging)
	d.shared.staging = nil
	d.stagings++
}

// layoutOf returns the layouts for a signature such as "rrwu" (shaders.Kernel.Bindings) and a number of arrays of a matrix.
func (d *Device) layoutOf(bindings string, weights int) (layout, error) {
	signature := fmt.Sprint(bindings, weights)
	if l, ok := d.shared.layouts[signature]; ok {
		return l, nil
	}
	entries := make([]wgpu.BindGroupLayoutEntry, len(bindings)+weights)
	for i, c := range bindings + strings.Repeat("r", weights) {
		kind := wgpu.BufferBindingTypeReadOnlyStorage
		switch c {
		case 'w':
			kind = wgpu.BufferBindingTypeStorage
		case 'u':
			kind = wgpu.BufferBindingTypeUniform
		}
		entries[i] = wgpu.BindGroupLayoutEntry{Binding: bindingNumber(i, len(bindings)), Visibility: wgpu.ShaderStageCompute,
			Buffer: wgpu.BufferBindingLayout{Type: kind}}
	}
	group, err := d.dev.CreateBindGroupLayout(&wgpu.BindGroupLayoutDescriptor{Label: signature, Entries: entries})
	if err != nil {
		return layout{}, fmt.Errorf("layout %s: %w", signature, err)
	}
	pipeline, err := d.dev.CreatePipelineLayout(&wgpu.PipelineLayoutDescriptor{Label: signature,
		BindGroupLayouts: []*wgpu.BindGroupLayout{d.shared.frameLayout, group}})
	if err != nil {
		group.Release()
		return layout{}, fmt.Errorf("layout %s: %w", signature, err)
	}
	l := layout{group, pipeline}
	d.shared.layouts[signature] = l
	return l, nil
}

// bindingNumber is the number of view i of a kernel with own bindings before those of a matrix.
func bindingNumber(i, own int) uint32 {
	if i >= own {
		return uint32(shaders.WeightBinding + i - own)
	}
	return uint32(i)
}

// pipeline returns the compiled kernel; programs with equal constants share it.
func (d *Device) pipeline(name string, consts shaders.Consts) (*wgpu.ComputePipeline, error) {
	key := pipelineKey(name, consts)
	if p, ok := d.shared.pipelines[key]; ok {
		return p, nil
	}
	k, ok := shaders.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("%w: %s: no such kernel", op.ErrKernel, name)
	}
	source, err := shaders.Source(name, consts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", op.ErrKernel, err)
	}
	if err := d.fits(source); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", op.ErrKernel, name, err)
	}
	l, err := d.layoutOf(k.Bindings, k.Weights)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", op.ErrKernel, name, err)
	}
	module, err := d.dev.CreateShaderModule(&wgpu.ShaderModuleDescriptor{Label: name,
		WGSLDescriptor: &wgpu.ShaderModuleWGSLDescriptor{Code: source}})
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", op.ErrKernel, name, err)
	}
	defer module.Release()
	p, err := d.dev.CreateComputePipeline(&wgpu.ComputePipelineDescriptor{Label: name, Layout: l.pipeline,
		Compute: wgpu.ProgrammableStageDescriptor{Module: module, EntryPoint: "main"}})
	if err == nil {
		err = d.sh.err(name)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", op.ErrKernel, name, err)
	}
	d.shared.pipelines[key] = p
	return p, nil
}

// fits compares a kernel's workgroup memory with what the device grants. The library checks threads and bindings, but not this; a driver
// may then do anything.
func (d *Device) fits(source string) error {
	need, err := shaders.WorkgroupMemory(source)
	if err != nil {
		return err
	}
	if most := int64(d.limits.max_workgroup_storage); need > most {
		return fmt.Errorf("it needs %d bytes of workgroup memory, the device grants %d", need, most)
	}
	return nil
}

func pipelineKey(name string, consts shaders.Consts) string {
	parts := make([]string, 0, len(consts))
	for c, v := range consts {
		parts = append(parts, fmt.Sprintf("%s=%d", c, v))
	}
	slices.Sort(parts)
	return name + " " + strings.Join(parts, " ")
}

// view is a part of a buffer as a kernel sees it.
type view struct {
	buf     *wgpu.Buffer
	off     int64
	size    int64
	near    int64   // of a buffer: the size of its first op.MaxCols columns; else 0
	scratch scratch // stands for the buffer before the program has made it
}

// scratch names memory of a program itself.
type scratch uint8

const (
	noScratch     scratch = iota
	attendScratch         // partial results of attention
	gateScratch           // of the chosen experts
	upScratch
	productScratch
	downScratch  // and of the pairs of a wide program: what comes down
	groupScratch // how they are grouped
	idScratch    // tokens of a wide run
)

func whole(b *wgpu.Buffer) view { return view{buf: b, size: int64(b.GetSize())} }

// bindGroup binds views to a kernel's bindings, after checking offsets, sizes and aliasing: wgpu would complain at
// submit time only, or not at all.
func (d *Device) bindGroup(name, bindings string, views, weights []view) (*wgpu.BindGroup, error) {
	if len(views) != len(bindings) {
		return nil, fmt.Errorf("%s: %d bindings, want %d", name, len(views), len(bindings))
	}
	l, err := d.layoutOf(bindings, len(weights))
	if err != nil {
		return nil, err
	}
	views = append(slices.Clip(views), weights...)
	signature := bindings + strings.Repeat("r", len(weights))
	entries := make([]wgpu.BindGroupEntry, len(views))
	for i, v := range views {
		limit := d.info.MaxBinding
		if signature[i] == 'u' {
			limit = int64(d.limits.max_uniform_binding)
		}
		switch {
		case v.size <= 0 || v.size > limit || v.size%4 != 0:
			return nil, fmt.Errorf("%s: binding %d of %d bytes, 4 to %d allowed", name, i, v.size, limit)
		case v.off < 0 || v.off%alignment != 0 || v.off > int64(v.buf.GetSize())-v.size:
			return nil, fmt.Errorf("%s: binding %d at %d, size %d of %d", name, i, v.off, v.size, v.buf.GetSize())
		}
		for j, u := range views[:i] {
			if u.buf == v.buf && (signature[i] == 'w') != (signature[j] == 'w') {
				return nil, fmt.Errorf("%s: %w: one buffer is both read and written", name, errArgument) // T9
			}
		}
		entries[i] = wgpu.BindGroupEntry{Binding: bindingNumber(i, len(bindings)), Buffer: v.buf, Offset: uint64(v.off), Size: uint64(v.size)}
	}
	g, err := d.dev.CreateBindGroup(&wgpu.BindGroupDescriptor{Label: name, Layout: l.group, Entries: entries})
	if err != nil {
		return nil, fmt.Errorf("%s: bind group: %w", name, err)
	}
	return g, nil
}
