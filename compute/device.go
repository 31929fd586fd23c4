package compute

import (
	"context"

	"pooled/compute/gpu"
	"pooled/compute/op"
	"pooled/compute/ref"
)

// GPUOptions say how to open the GPU.
type GPUOptions struct {
	// DefaultLimits asks for WebGPU's default limits instead of what the adapter grants (a test mode, spec engine.md 5.8).
	DefaultLimits bool
	// Log receives what the graphics library says, one line at a time, on the thread that talks to the GPU. It must
	// return at once and must not call the device. Nil drops the lines.
	Log func(line string)
}

// OpenGPU opens the best GPU of this machine. Without one the error wraps op.ErrNoAdapter.
func OpenGPU(ctx context.Context, o GPUOptions) (op.Device, error) {
	options := gpu.Options{DefaultLimits: o.DefaultLimits}
	if o.Log != nil {
		options.Log = func(level, text string) { o.Log(level + ": " + text) }
	}
	return gpu.Open(ctx, options)
}

// OpenRef returns a device that computes on the processor: slow, exact, always there.
func OpenRef() op.Device { return ref.Open() }
