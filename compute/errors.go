package compute

import (
	"errors"
	"fmt"
)

var (
	// ErrArch: the file's architecture has no graph here.
	ErrArch = errors.New("model architecture not supported")
	// ErrModel: a file whose numbers or tensors don't make a model.
	ErrModel = errors.New("unusable model file")
	// ErrCall: a call that the shard can't serve: too many columns, positions past the context, a part not loaded.
	ErrCall = errors.New("wrong call")
	// ErrMask: a mask that allows no token where one was to be picked.
	ErrMask = errors.New("no token is allowed")
)

// ContextError is more tokens than the context that was loaded holds. It is an ErrCall.
type ContextError struct {
	Tokens  int // that were to be read, with those before them
	Context int
}

// Error names both numbers.
func (e *ContextError) Error() string {
	return fmt.Sprintf("context: %d tokens, it holds %d", e.Tokens, e.Context)
}

// Unwrap is ErrCall.
func (e *ContextError) Unwrap() error { return ErrCall }
