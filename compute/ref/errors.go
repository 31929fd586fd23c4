package ref

import "errors"

var (
	errClosed   = errors.New("closed")
	errArgument = errors.New("wrong argument")
	errForeign  = errors.New("memory of another device")
)
