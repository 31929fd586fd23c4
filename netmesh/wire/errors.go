package wire

import "errors"

// Errors of the package.
var (
	// ErrFrame: a frame that has no form on the wire. The wrapping error names the field.
	ErrFrame = errors.New("wire: frame cannot be sent")
	// ErrNoChannel: no wire channel is open; the frame can still go as a message.
	ErrNoChannel = errors.New("wire: no channel is open")
	// ErrIDs: the link has used up its frame ids and must be replaced.
	ErrIDs = errors.New("wire: frame ids used up")
	// ErrMessage: a message that is no frame, or one with a field out of range.
	ErrMessage = errors.New("wire: not a frame message")
)
