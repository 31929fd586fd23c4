package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Types of values (spec engine.md 1.1).
const (
	typeU8 uint32 = iota
	typeI8
	typeU16
	typeI16
	typeU32
	typeI32
	typeF32
	typeBool
	typeString
	typeArray
	typeU64
	typeI64
	typeF64
	typeEnd
)

// kinds has the name and the size of each type of value; 0 for those of variable size.
var kinds = [typeEnd]struct {
	name string
	size int
}{
	{"u8", 1}, {"i8", 1}, {"u16", 2}, {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4}, {"bool", 1},
	{"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8},
}

// value is one parsed value: the bits of a scalar, or where a string's or an array's bytes are in the first part.
type value struct {
	typ   uint32
	elem  uint32 // of an array
	bits  uint64 // of a scalar, as stored
	count uint64 // of an array
	start int64  // first byte of a string's text or an array's first element
	end   int64
}

func (v value) kind() string {
	if v.typ == typeArray {
		return "array of " + kinds[v.elem].name
	}
	return kinds[v.typ].name
}

// value reads a type and passes over the value of that type.
func (c *cursor) value() (v value, err error) {
	if v.typ, err = c.kind(); err != nil {
		return v, err
	}
	switch v.typ {
	case typeString:
		n, err := c.u64()
		if err != nil {
			return v, err
		}
		v.start = c.off
		if err := c.skip(n); err != nil {
			return v, err
		}
	case typeArray:
		return c.array(v)
	default:
		b, err := c.take(kinds[v.typ].size)
		if err != nil {
			return v, err
		}
		v.bits = scalar(b)
		if v.typ == typeBool && v.bits > 1 {
			return v, c.fail(ErrCorrupt, "a bool of %d", v.bits)
		}
	}
	v.end = c.off
	return v, nil
}

func (c *cursor) kind() (uint32, error) {
	t, err := c.u32()
	if err == nil && t >= typeEnd {
		err = c.fail(ErrCorrupt, "value of type %d, 0 to %d known", t, typeEnd-1)
	}
	return t, err
}

func (c *cursor) array(v value) (value, error) {
	var err error
	if v.elem, err = c.kind(); err != nil {
		return v, err
	}
	if v.elem == typeArray {
		return v, c.fail(ErrCorrupt, "an array of arrays")
	}
	if v.count, err = c.u64(); err != nil {
		return v, err
	}
	v.start = c.off
	if size := uint64(kinds[v.elem].size); size > 0 {
		if err := c.room(v.count, size); err != nil {
			return v, err
		}
		err = c.skip(v.count * size)
	} else {
		err = c.skipStrings(v.count)
	}
	v.end = c.off
	return v, err
}

func (c *cursor) skipStrings(n uint64) error {
	if n > maxStrings {
		return c.fail(ErrCorrupt, "%d strings, at most %d allowed", n, maxStrings)
	}
	if err := c.room(n, 8); err != nil {
		return err
	}
	for range n {
		size, err := c.u64()
		if err != nil {
			return err
		}
		if err := c.skip(size); err != nil {
			return err
		}
	}
	return nil
}

// scalar returns the bits of a little-endian value of 1, 2, 4 or 8 bytes.
func scalar(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		return binary.LittleEndian.Uint64(b)
	}
}

// integer returns the value of an integer of a type; false for other types and for u64 past 2^63-1.
func integer(typ uint32, raw uint64) (int64, bool) {
	switch typ {
	case typeU8, typeU16, typeU32, typeBool:
		return int64(raw), true
	case typeI8:
		return int64(int8(raw)), true
	case typeI16:
		return int64(int16(raw)), true
	case typeI32:
		return int64(int32(raw)), true
	case typeI64:
		return int64(raw), true
	case typeU64:
		return int64(raw), raw <= math.MaxInt64
	}
	return 0, false
}

// uint returns a scalar integer that is not negative.
func (v value) uint() (uint64, bool) {
	if v.typ == typeU64 {
		return v.bits, true
	}
	n, ok := integer(v.typ, v.bits)
	return uint64(n), ok && n >= 0 && v.typ != typeBool
}

func (f *File) lookup(key string) (value, error) {
	v, ok := f.values[key]
	if !ok {
		return v, problem(f.parts[0].Name, "key "+shown(key), ErrNoKey, "missing")
	}
	return v, nil
}

func (f *File) wrongType(key string, v value, want string) error {
	return problem(f.parts[0].Name, "key "+shown(key), ErrKeyType, "a value of type %s, wanted %s", v.kind(), want)
}

// Has reports whether the file has the key.
func (f *File) Has(key string) bool {
	_, ok := f.values[key]
	return ok
}

// Keys returns all keys in file order.
func (f *File) Keys() []string { return slices.Clone(f.keys) }

// Uint returns an integer of any size that is not negative. The errors of this and the following methods wrap ErrNoKey
// or ErrKeyType.
func (f *File) Uint(key string) (uint64, error) {
	v, err := f.lookup(key)
	if err != nil {
		return 0, err
	}
	n, ok := v.uint()
	if !ok {
		return 0, f.wrongType(key, v, "an integer from 0 up")
	}
	return n, nil
}

// UintOr returns an integer as Uint does, or def when the key is missing or of another type.
func (f *File) UintOr(key string, def uint64) uint64 { return or(f.Uint, key, def) }

// Float returns an f32 or f64.
func (f *File) Float(key string) (float64, error) {
	v, err := f.lookup(key)
	if err != nil {
		return 0, err
	}
	switch v.typ {
	case typeF32:
		return float64(math.Float32frombits(uint32(v.bits))), nil
	case typeF64:
		return math.Float64frombits(v.bits), nil
	}
	return 0, f.wrongType(key, v, "a float")
}

// FloatOr returns a float as Float does, or def when the key is missing or of another type.
func (f *File) FloatOr(key string, def float64) float64 { return or(f.Float, key, def) }

// Bool returns a bool.
func (f *File) Bool(key string) (bool, error) {
	v, err := f.lookup(key)
	if err != nil {
		return false, err
	}
	if v.typ != typeBool {
		return false, f.wrongType(key, v, "a bool")
	}
	return v.bits == 1, nil
}

// BoolOr returns a bool as Bool does, or def when the key is missing or of another type.
func (f *File) BoolOr(key string, def bool) bool { return or(f.Bool, key, def) }

// Str reads a string of at most 16 MiB from the file.
func (f *File) Str(key string) (string, error) {
	v, err := f.lookup(key)
	if err != nil {
		return "", err
	}
	if v.typ != typeString {
		return "", f.wrongType(key, v, "a string")
	}
	if v.end-v.start > maxString {
		return "", problem(f.parts[0].Name, "key "+shown(key), ErrCorrupt, "a string of %d bytes, at most %d read", v.end-v.start, maxString)
	}
	b, err := f.bytes(key, v)
	return string(b), err
}

// StrOr returns a string as Str does, or def when the key is missing or of another type.
func (f *File) StrOr(key, def string) string { return or(f.Str, key, def) }

func or[T any](get func(string) (T, error), key string, def T) T {
	if v, err := get(key); err == nil {
		return v
	}
	return def
}

// Strings reads an array of strings from the file. They share one block of memory.
func (f *File) Strings(key string) ([]string, error) {
	v, err := f.lookup(key)
	if err != nil {
		return nil, err
	}
	if v.typ != typeArray || v.elem != typeString {
		return nil, f.wrongType(key, v, "an array of string")
	}
	b, err := f.bytes(key, v)
	if err != nil {
		return nil, err
	}
	all := string(b)
	list := make([]string, v.count)
	at := 0
	for i := range list {
		// The lengths were checked by Open, but the file may have changed since.
		if len(b)-at < 8 || binary.LittleEndian.Uint64(b[at:]) > uint64(len(b)-at-8) {
			return nil, problem(f.parts[0].Name, "key "+shown(key), ErrCorrupt, "string %d runs past the array", i)
		}
		n := int(binary.LittleEndian.Uint64(b[at:]))
		list[i] = all[at+8 : at+8+n]
		at += 8 + n
	}
	return list, nil
}

// Ints reads an array of integers of any size, or of bools (as 0 and 1), of at most 2^22 elements from the file.
func (f *File) Ints(key string) ([]int64, error) {
	v, err := f.lookup(key)
	if err != nil {
		return nil, err
	}
	if _, ok := integer(v.elem, 0); v.typ != typeArray || !ok {
		return nil, f.wrongType(key, v, "an array of integers")
	}
	if v.count > maxInts {
		return nil, problem(f.parts[0].Name, "key "+shown(key), ErrCorrupt, "%d numbers, at most %d read", v.count, maxInts)
	}
	b, err := f.bytes(key, v)
	if err != nil {
		return nil, err
	}
	list, size := make([]int64, v.count), kinds[v.elem].size
	for i := range list {
		n, ok := integer(v.elem, scalar(b[i*size:][:size]))
		if !ok {
			return nil, problem(f.parts[0].Name, "key "+shown(key), ErrKeyType, "number %d is 2^63 or more", i)
		}
		list[i] = n
	}
	return list, nil
}

// bytes reads what a value's position says.
func (f *File) bytes(key string, v value) ([]byte, error) {
	b := make([]byte, v.end-v.start)
	n, err := f.parts[0].R.ReadAt(b, v.start)
	if n == len(b) {
		return b, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return nil, problem(f.parts[0].Name, "key "+shown(key), ErrTruncated, "the file ends at byte %d", v.start+int64(n))
	}
	return nil, fmt.Errorf("gguf: %s: key %s: read: %w", f.parts[0].Name, shown(key), err)
}
