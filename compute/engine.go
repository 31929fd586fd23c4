package compute

import (
	"context"
	"errors"
	"fmt"
	"io"

	"pooled/compute/gguf"
	"pooled/compute/op"
	"pooled/compute/token"
)

// Opener finds a model by its key: its parts in order and what closes them.
type Opener func(key string) ([]gguf.Part, io.Closer, error)

// Engine is a device with at most one open model and one loaded shard of it, the piece that a room drives.
type Engine struct {
	dev   op.Device
	open  Opener
	key   string
	model *Model
	file  io.Closer
	shard *Shard
}

// NewEngine makes an engine that owns dev.
func NewEngine(dev op.Device, open Opener) *Engine { return &Engine{dev: dev, open: open} }

// Info describes the device.
func (e *Engine) Info() op.Info { return e.dev.Info() }

// Model opens a model's header; the one that is open already is kept. A shard of another model is released.
func (e *Engine) Model(ctx context.Context, key string) (*Model, error) {
	if e.model != nil && e.key == key {
		return e.model, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("compute: model %s: %w", key, err)
	}
	parts, file, err := e.open(key)
	if err != nil {
		return nil, fmt.Errorf("compute: model %s: %w", key, err)
	}
	m, err := OpenModel(parts...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("compute: model %s: %w", key, err), file.Close())
	}
	if err := e.forget(); err != nil {
		return nil, errors.Join(fmt.Errorf("compute: close model %s: %w", e.key, err), file.Close())
	}
	e.key, e.model, e.file = key, m, file
	return m, nil
}

// forget releases the shard and closes the model that is open.
func (e *Engine) forget() error {
	e.Free()
	file := e.file
	e.model, e.file = nil, nil
	if file == nil {
		return nil
	}
	return file.Close()
}

// Load replaces what is held, with wide passes where the device gains by them: the old shard is released first, and after a failure nothing is held. progress (nil for
// none) gets rising percents from any goroutine.
func (e *Engine) Load(ctx context.Context, key string, spec ShardSpec, progress func(percent int)) error {
	m, err := e.Model(ctx, key)
	if err != nil {
		return err
	}
	e.Free()
	if spec, err = spec.Widened(e.dev, m); err != nil {
		return err
	}
	last := -1
	report := func(done, total int64) {
		percent := int(float64(done) / float64(max(1, total)) * 100)
		if percent > last && progress != nil {
			last = percent
			progress(percent)
		}
	}
	e.shard, err = LoadShard(ctx, e.dev, m, spec, report)
	return err
}

// Text returns the tokenizer and the chat profile of the model that is open.
func (e *Engine) Text() (*token.Tokenizer, token.Profile, error) {
	if e.model == nil {
		return nil, token.Profile{}, fmt.Errorf("compute: %w: no model is open", ErrCall)
	}
	t, err := e.model.Tokenizer()
	if err != nil {
		return nil, token.Profile{}, fmt.Errorf("compute: model %s: %w", e.key, err)
	}
	p, err := e.model.Profile()
	return t, p, err
}

func (e *Engine) held() (*Shard, error) {
	if e.shard == nil {
		return nil, fmt.Errorf("compute: %w: no layers are loaded", ErrCall)
	}
	return e.shard, nil
}

// Embed is Shard.Embed.
func (e *Engine) Embed(ctx context.Context, pos int, tokens []int32) ([]float32, error) {
	s, err := e.held()
	if err != nil {
		return nil, err
	}
	return s.Embed(ctx, pos, tokens)
}

// EmbedTop is Shard.EmbedTop.
func (e *Engine) EmbedTop(ctx context.Context, pos int, tokens []int32, k int) ([]op.Candidate, error) {
	s, err := e.held()
	if err != nil {
		return nil, err
	}
	return s.EmbedTop(ctx, pos, tokens, k)
}

// Hidden is Shard.Hidden.
func (e *Engine) Hidden(ctx context.Context, pos, n int, in []float32) ([]float32, error) {
	s, err := e.held()
	if err != nil {
		return nil, err
	}
	return s.Hidden(ctx, pos, n, in)
}

// Top is Shard.Top.
func (e *Engine) Top(ctx context.Context, hidden []float32, k int) ([]op.Candidate, error) {
	s, err := e.held()
	if err != nil {
		return nil, err
	}
	return s.Top(ctx, hidden, k)
}

// Used is the device memory held, in bytes.
func (e *Engine) Used() int64 { return e.dev.Used() }

// Free releases the layers. The model stays open.
func (e *Engine) Free() {
	if e.shard != nil {
		e.shard.Close()
		e.shard = nil
	}
}

// Close releases the layers, closes the model and the device.
func (e *Engine) Close() error { return errors.Join(e.forget(), e.dev.Close()) }
