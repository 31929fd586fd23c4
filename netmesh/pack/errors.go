package pack

import "errors"

// Errors of the package, wrapped with what was found where.
var (
	// ErrTruncated: the bytes end before the value does.
	ErrTruncated = errors.New("pack: value cut short")
	// ErrTrailing: bytes are left over after the value.
	ErrTrailing = errors.New("pack: bytes after the value")
	// ErrCorrupt: the bytes are no value: a key that can't be a key, a number that is not finite.
	ErrCorrupt = errors.New("pack: corrupt value")
	// ErrLimit: the value is deeper, longer or has more elements than allowed.
	ErrLimit = errors.New("pack: value over the limit")
	// ErrValue: the value to encode has no form on the wire.
	ErrValue = errors.New("pack: value cannot be sent")
)
