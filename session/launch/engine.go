package launch

import (
	"context"
	"errors"
	"io"
	"slices"

	"pooled/catalog"
	"pooled/compute"
	"pooled/compute/gguf"
	"pooled/compute/op"
	"pooled/session"
)

// engine is a compute.Engine in a room's words: models by their catalogue key, and a load of what is held already is
// no work.
type engine struct {
	*compute.Engine
	held session.LoadSpec // what is loaded; zero for nothing
}

// newEngine takes over dev and reads models from store.
func newEngine(dev op.Device, store *catalog.Store) *engine {
	return &engine{Engine: compute.NewEngine(dev, func(key string) ([]gguf.Part, io.Closer, error) {
		return open(store, key)
	})}
}

// open finds a model's files in the store.
func open(store *catalog.Store, key string) ([]gguf.Part, io.Closer, error) {
	entry, err := catalog.Match(catalog.Builtin(), key)
	if err != nil {
		return nil, nil, err
	}
	blobs, err := store.Open(entry)
	if err != nil {
		return nil, nil, err
	}
	parts := make([]gguf.Part, len(blobs))
	for i, b := range blobs {
		parts[i] = gguf.Part{Name: b.Name, R: b.R, Size: b.Size}
	}
	return parts, files(blobs), nil
}

// files are the open files of one model.
type files []catalog.Blob

// Close closes them, the last first.
func (f files) Close() error {
	var errs []error
	for _, b := range slices.Backward(f) {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// Model opens a model's header. The mean over the layers is what the room plans with (spec room.md 2.3); host-held
// counts a tied embedding twice, as every peer does.
func (e *engine) Model(ctx context.Context, key string) (session.ModelInfo, error) {
	entry, err := catalog.Match(catalog.Builtin(), key)
	if err != nil {
		return session.ModelInfo{}, err
	}
	m, err := e.Engine.Model(ctx, entry.Key)
	if err != nil {
		return session.ModelInfo{}, err
	}
	var layers int64
	for i := range m.Layers {
		layers += m.LayerBytes(i)
	}
	return session.ModelInfo{
		Key:        entry.Key,
		Label:      entry.Label,
		Layers:     m.Layers,
		Width:      m.Width,
		LayerBytes: (layers + int64(m.Layers) - 1) / int64(m.Layers),
		KVBytes:    entry.KVPerPos, // what every peer plans with; the dense models need half of it here
		HostBytes:  catalog.HostHeld(entry.Kind, m.EmbedBytes, m.HeadBytes, 0),
		CtxDefault: min(entry.CtxDefault, m.CtxMax),
		CtxMax:     min(entry.CtxMax, m.CtxMax),
	}, nil
}

// Load replaces what is held, unless it is the same.
func (e *engine) Load(ctx context.Context, spec session.LoadSpec, progress func(int)) error {
	if e.held == spec {
		progress(100)
		return nil
	}
	e.held = session.LoadSpec{}
	err := e.Engine.Load(ctx, spec.ModelKey, compute.ShardSpec{
		Lo: spec.Lo, Hi: spec.Hi, Head: spec.Head, Ctx: spec.Ctx, KV: spec.KV,
	}, progress)
	if err == nil {
		e.held = spec
	}
	return err
}

// Free releases the layers.
func (e *engine) Free() {
	e.held = session.LoadSpec{}
	e.Engine.Free()
}

var _ session.Engine = (*engine)(nil)
