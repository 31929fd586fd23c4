package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// window is how much of a header is read at a time.
const window = 256 << 10

// cursor reads a part from its start through a window. Errors name the thing being read, which the caller sets in
// what.
type cursor struct {
	part  Part
	what  string
	limit int64 // no byte from here on is part of a header
	buf   []byte
	base  int64 // position of buf[0] in the file
	off   int64 // position of the next byte
}

func newCursor(p Part) *cursor {
	limit := min(p.Size, maxHeader)
	return &cursor{part: p, limit: limit, buf: make([]byte, 0, min(limit, window))}
}

func (c *cursor) fail(kind error, reason string, args ...any) error {
	return problem(c.part.Name, c.what, kind, reason, args...)
}

// left is the number of bytes before the limit.
func (c *cursor) left() uint64 { return uint64(c.limit - c.off) }

// room reports whether count things of at least size bytes each can follow. size is small. The error tells a file that
// was cut from one that lies.
func (c *cursor) room(count, size uint64) error {
	switch {
	case count <= c.left()/size:
		return nil
	case count > maxHeader/size || c.part.Size > c.limit:
		return c.fail(ErrCorrupt, "%s announced, more than a header may have", amount(count, size))
	default:
		return c.fail(ErrTruncated, "%s announced, %d left", amount(count, size), c.left())
	}
}

func amount(count, size uint64) string {
	if size == 1 {
		return fmt.Sprintf("%d bytes", count)
	}
	return fmt.Sprintf("%d times %d bytes", count, size)
}

// take returns the next n bytes, n at most window. They are valid until the next call.
func (c *cursor) take(n int) ([]byte, error) {
	if err := c.room(uint64(n), 1); err != nil {
		return nil, err
	}
	at := c.off - c.base
	if at > int64(len(c.buf)) || at+int64(n) > int64(len(c.buf)) {
		if err := c.fill(); err != nil {
			return nil, err
		}
		at = 0
	}
	c.off += int64(n)
	return c.buf[at:][:n], nil
}

// fill moves the window to the current position.
func (c *cursor) fill() error {
	size := min(int64(cap(c.buf)), c.limit-c.off)
	n, err := c.part.R.ReadAt(c.buf[:size], c.off)
	if int64(n) < size {
		if err == nil || errors.Is(err, io.EOF) {
			return c.fail(ErrTruncated, "%d bytes expected, the file ends after %d", c.part.Size, c.off+int64(n))
		}
		return c.fail(err, "read at %d", c.off)
	}
	c.base, c.buf = c.off, c.buf[:size]
	return nil
}

// skip passes over n bytes without reading them.
func (c *cursor) skip(n uint64) error {
	if err := c.room(n, 1); err != nil {
		return err
	}
	c.off += int64(n)
	return nil
}

func (c *cursor) u32() (uint32, error) {
	b, err := c.take(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (c *cursor) u64() (uint64, error) {
	b, err := c.take(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// name reads a string that is kept: a key or a tensor's name.
func (c *cursor) name() (string, error) {
	n, err := c.u64()
	if err != nil {
		return "", err
	}
	if n > maxName {
		return "", c.fail(ErrCorrupt, "a name of %d bytes, at most %d allowed", n, maxName)
	}
	b, err := c.take(int(n))
	return string(b), err
}
