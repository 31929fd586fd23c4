package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"pooled/catalog"
	"pooled/compute"
	"pooled/compute/gguf"
	"pooled/compute/op"
	"pooled/compute/token"
	"pooled/session"
)

// engine is a session.Engine over one device and the models of one store. It holds at most one model's header and one
// shard at a time; the room calls it from one goroutine.
type engine struct {
	dev   op.Device
	store *catalog.Store

	key   string // of the open model
	model *compute.Model
	info  session.ModelInfo
	files []io.Closer
	shard *compute.Shard
	spec  session.LoadSpec // what shard holds
}

// newEngine takes over dev; Close closes it.
func newEngine(dev op.Device, store *catalog.Store) *engine {
	return &engine{dev: dev, store: store}
}

// Info describes the device.
func (e *engine) Info() op.Info { return e.dev.Info() }

// Model opens the model's header, once per key.
func (e *engine) Model(_ context.Context, key string) (session.ModelInfo, error) {
	if e.model != nil && e.key == key {
		return e.info, nil
	}
	entry, err := catalog.Match(catalog.Builtin(), key)
	if err != nil {
		return session.ModelInfo{}, err
	}
	blobs, err := e.store.Open(entry)
	if err != nil {
		return session.ModelInfo{}, err
	}
	var parts []gguf.Part
	var files []io.Closer
	for _, b := range blobs {
		parts = append(parts, gguf.Part{Name: b.Name, R: b.R, Size: b.Size})
		files = append(files, b)
	}
	model, err := compute.OpenModel(parts...)
	if err != nil {
		return session.ModelInfo{}, errors.Join(fmt.Errorf("%s: %w", entry.Key, err), closeAll(files))
	}
	e.Free()
	if err := e.forget(); err != nil {
		return session.ModelInfo{}, err
	}
	e.key, e.model, e.files, e.info = entry.Key, model, files, modelInfo(entry, model)
	return e.info, nil
}

// modelInfo joins the catalogue's words with the file's numbers. The mean over the layers is what the room plans with
// (spec room.md 2.3); host-held counts a tied embedding twice, as every peer does.
func modelInfo(entry catalog.Entry, m *compute.Model) session.ModelInfo {
	var layers int64
	for i := range m.Layers {
		layers += m.LayerBytes(i)
	}
	head := m.HeadBytes
	if m.Tied {
		head = m.EmbedBytes
	}
	return session.ModelInfo{
		Key:        entry.Key,
		Label:      entry.Label,
		Layers:     m.Layers,
		Width:      m.Width,
		LayerBytes: (layers + int64(m.Layers) - 1) / int64(m.Layers),
		KVBytes:    m.KVPerPos(op.KVF16),
		HostBytes:  m.EmbedBytes + head,
		CtxDefault: min(entry.CtxDefault, m.CtxMax),
		CtxMax:     min(entry.CtxMax, m.CtxMax),
	}
}

// Load replaces what is held, unless it is the same.
func (e *engine) Load(ctx context.Context, spec session.LoadSpec, progress func(int)) error {
	if _, err := e.Model(ctx, spec.ModelKey); err != nil {
		return err
	}
	if e.shard != nil && e.spec == spec {
		progress(100)
		return nil
	}
	e.Free()
	last := -1
	shard, err := compute.LoadShard(ctx, e.dev, e.model, compute.ShardSpec{
		Lo: spec.Lo, Hi: spec.Hi, Head: spec.Head, Ctx: spec.Ctx, KV: spec.KV,
	}, func(done, total int64) {
		if pct := int(done * 100 / max(total, 1)); pct > last {
			last = pct
			progress(pct)
		}
	})
	if err != nil {
		return err
	}
	e.shard, e.spec = shard, spec
	return nil
}

// Text returns the open model's tokenizer and chat profile.
func (e *engine) Text() (*token.Tokenizer, token.Profile, error) {
	if e.model == nil {
		return nil, token.Profile{}, errNotLoaded
	}
	t, err := e.model.Tokenizer()
	if err != nil {
		return nil, token.Profile{}, err
	}
	p, err := e.model.Profile()
	return t, p, err
}

// Embed runs tokens through the embedding and the layers.
func (e *engine) Embed(ctx context.Context, pos int, tokens []int32) ([]float32, error) {
	if e.shard == nil {
		return nil, errNotLoaded
	}
	return e.shard.Embed(ctx, pos, tokens)
}

// EmbedTop is Embed with the head on the last column.
func (e *engine) EmbedTop(ctx context.Context, pos int, tokens []int32, k int) ([]op.Candidate, error) {
	if e.shard == nil {
		return nil, errNotLoaded
	}
	return e.shard.EmbedTop(ctx, pos, tokens, k)
}

// Hidden runs hidden states through the layers.
func (e *engine) Hidden(ctx context.Context, pos, n int, in []float32) ([]float32, error) {
	if e.shard == nil {
		return nil, errNotLoaded
	}
	return e.shard.Hidden(ctx, pos, n, in)
}

// Top runs the head on one hidden state.
func (e *engine) Top(ctx context.Context, hidden []float32, k int) ([]op.Candidate, error) {
	if e.shard == nil {
		return nil, errNotLoaded
	}
	return e.shard.Top(ctx, hidden, k)
}

// Used is the device memory held.
func (e *engine) Used() int64 { return e.dev.Used() }

// Free releases the layers.
func (e *engine) Free() {
	if e.shard != nil {
		e.shard.Close()
		e.shard, e.spec = nil, session.LoadSpec{}
	}
}

// forget closes the model's files.
func (e *engine) forget() error {
	err := closeAll(e.files)
	e.key, e.model, e.files, e.info = "", nil, nil, session.ModelInfo{}
	return err
}

// Close frees everything and closes the device.
func (e *engine) Close() error {
	e.Free()
	return errors.Join(e.forget(), e.dev.Close())
}

var errNotLoaded = errors.New("the model is not loaded")

// closeAll closes in reverse order and joins the errors.
func closeAll(files []io.Closer) error {
	var errs []error
	for _, f := range slices.Backward(files) {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

var _ session.Engine = (*engine)(nil)
