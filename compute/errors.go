package compute

import "errors"

var (
	// ErrArch: the file's architecture has no graph here.
	ErrArch = errors.New("model architecture not supported")
	// ErrModel: a file whose numbers or tensors don't make a model.
	ErrModel = errors.New("unusable model file")
	// ErrCall: a call that the shard can't serve: too many columns, positions past the context, a part not loaded.
	ErrCall = errors.New("wrong call")
)
