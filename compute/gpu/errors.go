package gpu

import (
	"errors"
	"strings"

	"pooled/compute/op"
)

// ErrClosed: the device was closed by its owner.
var ErrClosed = errors.New("the GPU device is closed")

var (
	errArgument = op.ErrArgument
	errForeign  = errors.New("memory of another device")
	errReleased = errors.New("memory that was released")
)

// outOfMemory recognizes wgpu's text for a refused allocation: some of its calls report it as a validation error (T11).
func outOfMemory(text string) bool {
	return strings.Contains(text, "Not enough memory") || strings.Contains(text, "out of memory") ||
		strings.Contains(text, "OutOfMemory")
}

// saysLost recognizes wgpu's text for a call that found the device lost: some of its calls report that as a validation error.
func saysLost(err error) bool { return err != nil && strings.Contains(err.Error(), "device is lost") }
