package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// appendJSON appends a JSON value in the way chat templates write it: ", " and ": " between things, no
// other white space, keys in their order, characters beyond ASCII as they are, numbers in their
// shortest form (spec room.md 6.7). Integers keep all their digits.
func appendJSON(dst, raw []byte) ([]byte, error) {
	if !json.Valid(raw) { // also bounds the nesting
		return dst, fmt.Errorf("%w: broken JSON", ErrAsk)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var open []level
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return dst, fmt.Errorf("%w: %w", ErrAsk, err)
		}
		if d, ok := tok.(json.Delim); ok && (d == '}' || d == ']') {
			open = open[:len(open)-1]
			dst = append(dst, byte(d))
			continue
		}
		if len(open) > 0 {
			dst = append(dst, open[len(open)-1].separator()...)
		}
		if d, ok := tok.(json.Delim); ok {
			open = append(open, level{object: d == '{'})
			dst = append(dst, byte(d))
			continue
		}
		if dst, err = appendScalar(dst, tok); err != nil {
			return dst, err
		}
	}
}

// level is an object or an array that is being written.
type level struct {
	object bool
	n      int // keys and values so far
}

// separator is what stands before the next key or value.
func (l *level) separator() string {
	l.n++
	switch {
	case l.n == 1:
		return ""
	case l.object && l.n%2 == 0:
		return ": "
	}
	return ", "
}

func appendScalar(dst []byte, tok json.Token) ([]byte, error) {
	switch v := tok.(type) {
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return appendQuoted(dst, v), nil
	case json.Number:
		return appendNumber(dst, v.String())
	}
	return append(dst, "null"...), nil
}

// appendNumber writes a number as JavaScript does: no point and no exponent from 1e-6 to below 1e21.
func appendNumber(dst []byte, s string) ([]byte, error) {
	if !strings.ContainsAny(s, ".eE") {
		if s == "-0" {
			s = "0"
		}
		return append(dst, s...), nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return dst, fmt.Errorf("%w: number %.40s is too large", ErrAsk, s)
	}
	size := max(f, -f)
	switch {
	case size == 0:
		return append(dst, '0'), nil
	case size >= 1e-6 && size < 1e21:
		return strconv.AppendFloat(dst, f, 'f', -1, 64), nil
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	dst = append(append(dst, mantissa...), 'e', exponent[0])
	return append(dst, strings.TrimLeft(exponent[1:], "0")...), nil
}

// appendQuoted writes a string with the escapes that JSON asks for and no others.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		b := s[i]
		switch {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b >= ' ':
			dst = append(dst, b)
		case b == '\n':
			dst = append(dst, '\\', 'n')
		case b == '\t':
			dst = append(dst, '\\', 't')
		case b == '\r':
			dst = append(dst, '\\', 'r')
		case b == '\b':
			dst = append(dst, '\\', 'b')
		case b == '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		}
	}
	return append(dst, '"')
}
