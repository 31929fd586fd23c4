package catalog

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrUnknown: no model of the catalogue has that name.
	ErrUnknown = errors.New("unknown model")
	// ErrAmbiguous: a part of a name that several models share.
	ErrAmbiguous = errors.New("more than one model has that name")
	// ErrAbsent: the model's files are not all on this computer.
	ErrAbsent = errors.New("not on this computer")
)

// MatchError says which name did not pick one model. It wraps ErrUnknown or ErrAmbiguous.
type MatchError struct {
	Typed string
	Hits  []string // the keys that Typed is a part of; none, or at least two
	Keys  []string // all keys
}

// Error names the models to choose from.
func (e *MatchError) Error() string {
	typed := []rune(e.Typed)
	if len(typed) > 40 {
		typed = append(typed[:40], '…')
	}
	if len(e.Hits) > 0 {
		return fmt.Sprintf("%q fits more than one model: %s", string(typed), strings.Join(e.Hits, ", "))
	}
	return fmt.Sprintf("unknown model %q: the models are %s", string(typed), strings.Join(e.Keys, ", "))
}

// Unwrap returns the sentinel.
func (e *MatchError) Unwrap() error {
	if len(e.Hits) > 0 {
		return ErrAmbiguous
	}
	return ErrUnknown
}
