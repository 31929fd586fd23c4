package invite

import "errors"

// Errors of ParseCode and Parse, wrapped with what was typed, cut to 60 characters and without the invite key.
var (
	// ErrEmpty: nothing was typed.
	ErrEmpty = errors.New("no room given")
	// ErrNotCode: text that is no room code.
	ErrNotCode = errors.New("not a room code")
	// ErrNotLink: a link that can't be read.
	ErrNotLink = errors.New("not a room link")
	// ErrNoCode: a link in which no room code is found.
	ErrNoCode = errors.New("no room code in the link")
)
