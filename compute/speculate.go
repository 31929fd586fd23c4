package compute

import (
	"context"

	"pooled/compute/op"
)

// What follows is the shard's, behind the engine.

// EmbedSpec is Shard.EmbedSpec.
func (e *Engine) EmbedSpec(ctx context.Context, pos int, tokens []int32) ([]float32, error) {
	s, err := e.held()
	if err != nil {
		return nil, err
	}
	return s.EmbedSpec(ctx, pos, tokens)
}

// HiddenSpec is Shard.HiddenSpec.
func (e *Engine) HiddenSpec(ctx context.Context, pos, n int, in []float32) ([]float32, error) {
	s, err := e.held()
	if err != nil {
		return nil, err
	}
	return s.HiddenSpec(ctx, pos, n, in)
}

// Verify is Shard.Verify.
func (e *Engine) Verify(ctx context.Context, pos int, tokens []int32, k int) ([]float32, [][]op.Candidate, error) {
	s, err := e.held()
	if err != nil {
		return nil, nil, err
	}
	return s.Verify(ctx, pos, tokens, k)
}

// Tops is Shard.Tops.
func (e *Engine) Tops(ctx context.Context, hidden []float32, k int) ([][]op.Candidate, error) {
	s, err := e.held()
	if err != nil {
		return nil, err
	}
	return s.Tops(ctx, hidden, k)
}

// Control is Shard.Control.
func (e *Engine) Control(ctx context.Context, c op.Control) error {
	s, err := e.held()
	if err != nil {
		return err
	}
	return s.Control(ctx, c)
}

// Draft is Shard.Draft.
func (e *Engine) Draft(ctx context.Context, pos int, hidden []float32, tokens []int32, k int) ([]int32, error) {
	s, err := e.held()
	if err != nil {
		return nil, err
	}
	return s.Draft(ctx, pos, hidden, tokens, k)
}

// At is Shard.At; 0 when nothing is loaded.
func (e *Engine) At() int {
	if e.shard == nil {
		return 0
	}
	return e.shard.At()
}

// Need is what Load would take on the device; the model is opened for it.
func (e *Engine) Need(ctx context.Context, key string, spec ShardSpec) (Need, error) {
	m, err := e.Model(ctx, key)
	if err != nil {
		return Need{}, err
	}
	return spec.Need(e.dev, m)
}
