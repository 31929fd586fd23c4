package gguf

import (
	"errors"
	"fmt"
	"strconv"
)

var (
	// ErrNotGGUF: the file does not begin like a GGUF file.
	ErrNotGGUF = errors.New("not a GGUF file")
	// ErrTruncated: the file ends before what it announces.
	ErrTruncated = errors.New("the file is incomplete")
	// ErrCorrupt: the file contradicts itself or exceeds a limit of this package.
	ErrCorrupt = errors.New("the file is damaged")
	// ErrUnsupported: a sound file of a kind that this program does not read.
	ErrUnsupported = errors.New("not supported")
	// ErrNoKey: the file has no such key.
	ErrNoKey = errors.New("no such key")
	// ErrKeyType: the key holds another type of value than the one asked for.
	ErrKeyType = errors.New("unexpected type of value")
)

// problem makes the error "gguf: FILE: WHAT: REASON (KIND)". what may be empty.
func problem(file, what string, kind error, reason string, args ...any) error {
	where := file
	if what != "" {
		where += ": " + what
	}
	return fmt.Errorf("gguf: %s: %s (%w)", where, fmt.Sprintf(reason, args...), kind)
}

// shown makes a name from a file fit for a message: quoted unless it is short, plain ASCII.
func shown(name string) string {
	const most = 64
	cut := name
	if len(cut) > most {
		cut = cut[:most]
	}
	for i := range len(cut) {
		if cut[i] <= ' ' || cut[i] > '~' || cut[i] == '"' {
			return strconv.QuoteToASCII(cut)
		}
	}
	if len(cut) < len(name) {
		return cut + "..."
	}
	if cut == "" {
		return `""`
	}
	return cut
}
