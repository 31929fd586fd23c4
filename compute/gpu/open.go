package gpu

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
)

// Options say how to open the device.
type Options struct {
	// DefaultLimits asks for WebGPU's default limits instead of what the adapter grants (a test mode, spec engine.md 5.8).
	DefaultLimits bool
	// Log receives what the graphics library says: a level ("error", "warn", "info") and a line. It is called on the
	// thread that talks to the GPU, must return at once and must not call the device. Nil drops the lines.
	Log func(level, text string)
	// Verbose passes informational lines too, not only warnings and errors.
	Verbose bool
}

const (
	maxBuffer = 1 << 30 // bytes; bigger single buffers are refused by some drivers (T11)
	noLimit   = 1 << 40 // a buffer size no device has; clamps the "undefined" sentinel (T2)
	alignment = 256     // bytes; every binding offset of ours, whatever the adapter allows
)

// Open opens the best adapter of this platform's graphics API: Vulkan on Linux, Metal on macOS, Direct3D 12 on
// Windows; discrete before integrated before software. It fails with op.ErrNoAdapter, quoting the driver's last lines.
// The returned device is a *Device; it owns one goroutine, which Close ends and waits for.
func Open(ctx context.Context, o Options) (op.Device, error) {
	d, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func open(ctx context.Context, o Options) (*Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("gpu: open: %w", err)
	}
	d := newDevice()
	go d.serve() // Close, or the failure below, ends it and waits
	err := d.do(func() error { return d.acquire(o) })
	if err != nil {
		_ = d.Close() // returns nil
		return nil, fmt.Errorf("gpu: open: %w", err)
	}
	return d, nil
}

// backend is the one graphics API tried on this platform.
func backend() (wgpu.InstanceBackend, string) {
	switch runtime.GOOS {
	case "darwin", "ios":
		return wgpu.InstanceBackendMetal, "Metal"
	case "windows":
		return wgpu.InstanceBackendDX12, "D3D12"
	}
	return wgpu.InstanceBackendVulkan, "Vulkan"
}

// acquire makes adapter, device and queue, and what every program shares. On failure the caller closes d,
// which frees what was made.
func (d *Device) acquire(o Options) error {
	library.install(o.Log, o.Verbose)
	info, err := d.enter(o)
	if err != nil {
		return err
	}
	_, name := backend()
	dev, sh := d.dev, d.sh
	if info.AdapterType == wgpu.AdapterTypeCPU {
		sh.slow = 1
	}
	d.queue = dev.GetQueue()
	sh.useQueue(d.queue)
	d.limits = sh.limits()
	d.info = op.Info{
		Backend: name, Name: adapterName(info), Software: info.AdapterType == wgpu.AdapterTypeCPU, Wide: gainsWide(name, info.AdapterType),
		MaxBuffer:     int64(min(d.limits.max_buffer_size, maxBuffer)),
		MaxBinding:    int64(min(d.limits.max_storage_binding, d.limits.max_buffer_size, maxBuffer)),
		DefaultLimits: o.DefaultLimits,
	}
	d.ahead = !d.info.Software // a software adapter needs the processor itself
	return d.common()
}

// gainsWide says whether wide programs are for this device. They are slower on a processor. On Metal they are not to be
// trusted: threads that store different parts of one vector in workgroup memory lose some there (spec engine.md 5.9), and
// that is what tile.wgsl does.
func gainsWide(backend string, t wgpu.AdapterType) bool {
	return t != wgpu.AdapterTypeCPU && backend != "Metal"
}

// said is the library's last lines, or the given text when it said nothing.
func said(otherwise string) string {
	if t := library.tail(); t != "" {
		return otherwise + ": " + t
	}
	return otherwise
}

// adapterName is what a person calls the adapter. On NVIDIA the name field holds a number and the description the name.
func adapterName(i wgpu.AdapterInfo) string {
	name := strings.TrimSpace(i.Name)
	if name == "" || strings.HasPrefix(name, "0x") {
		name = strings.TrimSpace(i.DriverDescription)
	}
	if name == "" {
		name = "unnamed GPU"
	}
	return name
}
