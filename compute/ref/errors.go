package ref

import (
	"errors"

	"pooled/compute/op"
)

var (
	errClosed   = errors.New("closed")
	errArgument = op.ErrArgument
	errForeign  = errors.New("memory of another device")
)
