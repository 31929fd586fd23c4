package pack

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// minInt is the smallest integer PeerJS reads exactly (spec wire.md 3.2).
const minInt = math.MinInt32

// Marshal returns v as PeerJS would send it. The keys of a Go map are sent with "t" first and the others sorted, so
// equal values give equal bytes. Text that is not UTF-8 is sent with U+FFFD in place of what is not.
func Marshal(v any) ([]byte, error) { return Append(nil, v) }

// Append appends what Marshal returns to dst. After an error dst's content beyond its length is undefined.
func Append(dst []byte, v any) ([]byte, error) {
	e := encoder{buf: dst}
	if err := e.value(v, 0); err != nil {
		return dst, err
	}
	return e.buf, nil
}

type encoder struct{ buf []byte }

func (e *encoder) value(v any, depth int) error {
	if depth > DefaultDepth {
		return fmt.Errorf("%w: nested deeper than %d", ErrValue, DefaultDepth)
	}
	switch v := v.(type) {
	case nil:
		e.buf = append(e.buf, codeNull)
	case bool:
		e.bool(v)
	case int:
		return e.int(int64(v))
	case int64:
		return e.int(v)
	case uint64:
		return e.uint(v)
	case float64:
		return e.float(v)
	case string:
		e.string(v)
	case []byte:
		if v == nil {
			e.buf = append(e.buf, codeNull)
			return nil
		}
		e.binary(v)
	case []any:
		e.length(fixArray, codeArr16, len(v))
		for i := range v {
			if err := e.value(v[i], depth+1); err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
		}
	case Map:
		e.length(fixMap, codeMap16, len(v))
		for i := range v {
			if err := e.entry(v[i].Key, v[i].Value, depth); err != nil {
				return err
			}
		}
	case map[string]any:
		e.length(fixMap, codeMap16, len(v))
		for _, k := range sortedKeys(v) {
			if err := e.entry(k, v[k], depth); err != nil {
				return err
			}
		}
	default:
		return e.reflected(reflect.ValueOf(v), depth)
	}
	return nil
}

// reflected encodes what the fast cases of value don't name, by its kind.
func (e *encoder) reflected(v reflect.Value, depth int) error {
	switch v.Kind() {
	case reflect.Bool:
		e.bool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return e.int(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return e.uint(v.Uint())
	case reflect.Float32, reflect.Float64:
		return e.float(v.Float())
	case reflect.String:
		e.string(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			e.buf = append(e.buf, codeNull)
			return nil
		}
		return e.value(v.Elem().Interface(), depth+1)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return e.value(v.Bytes(), depth)
		}
		e.length(fixArray, codeArr16, v.Len())
		for i := range v.Len() {
			if err := e.value(v.Index(i).Interface(), depth+1); err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
		}
	case reflect.Map:
		return e.reflectedMap(v, depth)
	default:
		return fmt.Errorf("%w: %s", ErrValue, v.Type())
	}
	return nil
}

func (e *encoder) reflectedMap(v reflect.Value, depth int) error {
	if v.Type().Key().Kind() != reflect.String {
		return fmt.Errorf("%w: %s, keys must be strings", ErrValue, v.Type())
	}
	m := make(map[string]any, v.Len())
	for it := v.MapRange(); it.Next(); {
		m[it.Key().String()] = it.Value().Interface()
	}
	return e.value(m, depth)
}

func (e *encoder) entry(key string, v any, depth int) error {
	e.string(key)
	if err := e.value(v, depth+1); err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	return nil
}

// sortedKeys returns the keys of m, "t" first.
func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == "t":
			return -1
		case b == "t":
			return 1
		}
		return strings.Compare(a, b)
	})
	return keys
}

func (e *encoder) bool(v bool) {
	c := byte(codeFalse)
	if v {
		c = codeTrue
	}
	e.buf = append(e.buf, c)
}

// int appends v in the shortest form, in the order PeerJS tries them.
func (e *encoder) int(v int64) error {
	switch {
	case v < minInt:
		return fmt.Errorf("%w: %d is below -2^31", ErrValue, v)
	case v >= 0:
		return e.uint(uint64(v))
	case v >= -32:
		e.buf = append(e.buf, byte(v))
	case v >= math.MinInt8:
		e.buf = append(e.buf, codeI8, byte(v))
	case v >= math.MinInt16:
		e.buf = binary.BigEndian.AppendUint16(append(e.buf, codeI16), uint16(v))
	default:
		e.buf = binary.BigEndian.AppendUint32(append(e.buf, codeI32), uint32(v))
	}
	return nil
}

func (e *encoder) uint(v uint64) error {
	switch {
	case v <= 127:
		e.buf = append(e.buf, byte(v))
	case v <= math.MaxUint8:
		e.buf = append(e.buf, codeU8, byte(v))
	case v <= math.MaxUint16:
		e.buf = binary.BigEndian.AppendUint16(append(e.buf, codeU16), uint16(v))
	case v <= math.MaxUint32:
		e.buf = binary.BigEndian.AppendUint32(append(e.buf, codeU32), uint32(v))
	case v <= math.MaxInt64:
		e.buf = binary.BigEndian.AppendUint64(append(e.buf, codeI64), v)
	default:
		e.buf = binary.BigEndian.AppendUint64(append(e.buf, codeU64), v)
	}
	return nil
}

func (e *encoder) float(v float64) error {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Errorf("%w: %v", ErrValue, v)
	case v != math.Trunc(v):
		e.buf = binary.BigEndian.AppendUint64(append(e.buf, codeF64), math.Float64bits(v))
		return nil
	case v < minInt || v >= 1<<64:
		return fmt.Errorf("%w: %v has no integer form", ErrValue, v)
	case v < 0:
		return e.int(int64(v))
	}
	return e.uint(uint64(v))
}

func (e *encoder) string(s string) {
	s = strings.ToValidUTF8(s, "\uFFFD")
	e.length(fixString, codeStr16, len(s))
	e.buf = append(e.buf, s...)
}

func (e *encoder) binary(b []byte) {
	e.length(fixBinary, codeBin16, len(b))
	e.buf = append(e.buf, b...)
}

// length appends a count: in the code itself up to 15, else with 16 bits (code wide) or 32 (the code after it).
func (e *encoder) length(fix, wide byte, n int) {
	switch {
	case n <= fixMax:
		e.buf = append(e.buf, fix|byte(n))
	case n <= math.MaxUint16:
		e.buf = binary.BigEndian.AppendUint16(append(e.buf, wide), uint16(n))
	default:
		e.buf = binary.BigEndian.AppendUint32(append(e.buf, wide+1), uint32(n))
	}
}
