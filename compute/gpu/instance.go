package gpu

import (
	"fmt"
	"sync"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
)

// instance is the library's entrance to a graphics API. All devices of a process share one, which stays when they are closed: each
// new one loads the driver anew, and NVIDIA's (580 on an H200) refuses that after thirty rounds. Devices come and go as they like.
type instance struct {
	raw   *wgpu.Instance
	users int  // devices
	stale bool // another one took its place: the last user releases it
}

// mostInstances is how many a process makes at most, well below what that driver stands.
const mostInstances = 8

// process holds the present instance. Adapters are listed and devices requested under its lock: drivers are known to crash when two
// threads do that at once.
var process struct {
	sync.Mutex
	now  *instance
	made int
}

// enter opens the best adapter and the device. What the present instance can't give is asked of a new one: the machine may have
// got a GPU, or its driver may have been restarted, since that was made.
func (d *Device) enter(o Options) (wgpu.AdapterInfo, error) {
	process.Lock()
	defer process.Unlock()
	if i := process.now; i != nil {
		info, err := d.enterBy(i, o)
		if err == nil || process.made >= mostInstances {
			return info, err
		}
		i.retire()
	}
	which, name := backend()
	raw := createInstance(which)
	if raw == nil {
		return wgpu.AdapterInfo{}, fmt.Errorf("%w: %s", op.ErrNoAdapter, said("no "+name+" instance"))
	}
	process.now, process.made = &instance{raw: raw}, process.made+1
	return d.enterBy(process.now, o)
}

// enterBy sets the adapter, the device and the instance that they came from, or nothing.
func (d *Device) enterBy(i *instance, o Options) (wgpu.AdapterInfo, error) {
	which, name := backend()
	adapter, info := i.pick(which)
	if adapter == nil {
		return info, fmt.Errorf("%w: %s", op.ErrNoAdapter, said("no "+name+" driver answered"))
	}
	dev, sh, err := requestDevice(adapter, wantLimits(adapterLimits(adapter), o.DefaultLimits))
	if err != nil {
		adapter.Release()
		return info, fmt.Errorf("%w: %s: %s", op.ErrNoAdapter, adapterName(info), said(err.Error()))
	}
	i.users++
	d.instance, d.adapter, d.dev, d.sh = i, adapter, dev, sh
	return info, nil
}

// leave ends what enter began; the device is released already. After a loss, and when the library has kept something, the instance
// serves no other: its end frees what the library could not.
func (i *instance) leave(lost bool) {
	process.Lock()
	defer process.Unlock()
	if i.users--; i == process.now && (lost || i.users == 0 && len(i.kept()) > 0) {
		process.now = nil
		i.stale = true
	}
	i.end()
}

// retire takes the present instance out of service. The caller holds the lock.
func (i *instance) retire() {
	process.now = nil
	i.stale = true
	i.end()
}

// end releases the instance when nobody uses it or will.
func (i *instance) end() {
	if !i.stale || i.users > 0 {
		return
	}
	apart(func() { releaseInstance(i.raw) })
}

// kept lists the kinds of objects that the library has, of all devices.
func (i *instance) kept() (list []string) {
	r := i.raw.GenerateReport()
	for _, hub := range []*wgpu.HubReport{r.Vulkan, r.Metal, r.Dx12} {
		if hub == nil {
			continue
		}
		for _, k := range []struct {
			name string
			n    uint64
		}{
			{"adapters", hub.Adapters.NumAllocated}, {"devices", hub.Devices.NumAllocated}, {"buffers", hub.Buffers.NumAllocated},
			{"shaders", hub.ShaderModules.NumAllocated}, {"pipelines", hub.ComputePipelines.NumAllocated},
			{"pipeline layouts", hub.PipelineLayouts.NumAllocated}, {"command buffers", hub.CommandBuffers.NumAllocated},
			{"bind groups", hub.BindGroups.NumAllocated}, {"bind group layouts", hub.BindGroupLayouts.NumAllocated},
		} {
			if k.n > 0 {
				list = append(list, fmt.Sprintf("%d %s", k.n, k.name))
			}
		}
	}
	return list
}

// pick returns the best adapter and releases the others; nil when there is none.
func (i *instance) pick(which wgpu.InstanceBackend) (*wgpu.Adapter, wgpu.AdapterInfo) {
	rank := func(t wgpu.AdapterType) int {
		switch t {
		case wgpu.AdapterTypeDiscreteGPU:
			return 3
		case wgpu.AdapterTypeIntegratedGPU:
			return 2
		case wgpu.AdapterTypeCPU:
			return 0
		}
		return 1
	}
	var best *wgpu.Adapter
	var info wgpu.AdapterInfo
	for _, a := range i.raw.EnumerateAdapters(&wgpu.InstanceEnumerateAdapterOptons{Backends: which}) {
		found := a.GetInfo()
		if best != nil && rank(found.AdapterType) <= rank(info.AdapterType) {
			a.Release()
			continue
		}
		if best != nil {
			best.Release()
		}
		best, info = a, found
	}
	return best, info
}
