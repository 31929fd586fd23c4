package pack

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Unmarshal reads the one value in b. The result shares no memory with b. Keys of maps that are not text become text
// (1 becomes "1"), as in the original; of a key that comes twice the last value counts. Text that is not UTF-8 gets
// U+FFFD in place of what is not.
func Unmarshal(b []byte, lim Limits) (any, error) {
	lim = lim.withDefaults()
	d := decoder{rest: b, depth: lim.Depth, elements: lim.Elements}
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if len(d.rest) > 0 {
		return nil, fmt.Errorf("%w: %d of %d", ErrTrailing, len(d.rest), len(b))
	}
	return v, nil
}

type decoder struct {
	rest     []byte
	depth    int // most nesting
	elements int // how many more items and entries are allowed
}

func (d *decoder) value(depth int) (any, error) {
	head, err := d.take(1)
	if err != nil {
		return nil, err
	}
	c := head[0]
	switch {
	case c < fixMap:
		return int64(c), nil
	case c >= negFix:
		return int64(int8(c)), nil
	case c < fixArray:
		return d.mapOf(int(c&fixMax), depth)
	case c < fixBinary:
		return d.arrayOf(int(c&fixMax), depth)
	case c < fixString:
		return d.binaryOf(int(c & fixMax))
	case c < codeNull:
		return d.stringOf(int(c & fixMax))
	case c >= codeStr16:
		return d.sized(c, depth)
	case c >= codeF32 && c < codeResA:
		return d.number(c)
	}
	switch c {
	case codeNull, codeUndef:
		return nil, nil
	case codeFalse:
		return false, nil
	case codeTrue:
		return true, nil
	}
	if c >= codeResA && c <= codeResB {
		return nil, nil
	}
	return nil, fmt.Errorf("%w: code %#02x", ErrCorrupt, c)
}

// sized reads a string, binary, array or map with its length in 16 (even codes) or 32 bits.
func (d *decoder) sized(c byte, depth int) (any, error) {
	var n int
	if c&1 == 0 {
		b, err := d.take(2)
		if err != nil {
			return nil, err
		}
		n = int(binary.BigEndian.Uint16(b))
	} else {
		b, err := d.take(4)
		if err != nil {
			return nil, err
		}
		u := binary.BigEndian.Uint32(b)
		if u > math.MaxInt32 {
			return nil, fmt.Errorf("%w: length %d", ErrTruncated, u)
		}
		n = int(u)
	}
	switch c &^ 1 {
	case codeStr16:
		return d.stringOf(n)
	case codeBin16:
		return d.binaryOf(n)
	case codeArr16:
		return d.arrayOf(n, depth)
	default:
		return d.mapOf(n, depth)
	}
}

// number reads the numbers with a code of their own.
func (d *decoder) number(c byte) (any, error) {
	size := [...]int{codeF32: 4, codeF64: 8, codeU8: 1, codeU16: 2, codeU32: 4, codeU64: 8,
		codeI8: 1, codeI16: 2, codeI32: 4, codeI64: 8}[c]
	b, err := d.take(size)
	if err != nil {
		return nil, err
	}
	var u uint64
	for _, x := range b {
		u = u<<8 | uint64(x)
	}
	switch c {
	case codeF32:
		return finite(float64(math.Float32frombits(uint32(u))))
	case codeF64:
		return finite(math.Float64frombits(u))
	case codeI8:
		return int64(int8(u)), nil
	case codeI16:
		return int64(int16(u)), nil
	case codeI32:
		return int64(int32(u)), nil
	case codeU64:
		if u > math.MaxInt64 {
			return u, nil
		}
	}
	return int64(u), nil
}

// finite passes f on unless it is a NaN or an infinity, which no PeerJS sends.
func finite(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%w: number %v", ErrCorrupt, f)
	}
	return f, nil
}

func (d *decoder) take(n int) ([]byte, error) {
	if n > len(d.rest) {
		return nil, fmt.Errorf("%w: %d bytes wanted, %d left", ErrTruncated, n, len(d.rest))
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b, nil
}

func (d *decoder) stringOf(n int) (any, error) {
	b, err := d.take(n)
	if err != nil {
		return nil, err
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), nil
}

func (d *decoder) binaryOf(n int) (any, error) {
	b, err := d.take(n)
	if err != nil {
		return nil, err
	}
	return append(make([]byte, 0, n), b...), nil
}

// open accounts for a container of n elements of at least size bytes each, before anything is allocated for it.
func (d *decoder) open(n, size, depth int) error {
	switch {
	case n > len(d.rest)/size:
		return fmt.Errorf("%w: %d elements in %d bytes", ErrTruncated, n, len(d.rest))
	case depth >= d.depth:
		return fmt.Errorf("%w: nested deeper than %d", ErrLimit, d.depth)
	case n > d.elements:
		return fmt.Errorf("%w: too many elements", ErrLimit)
	}
	d.elements -= n
	return nil
}

func (d *decoder) arrayOf(n, depth int) (any, error) {
	if err := d.open(n, 1, depth); err != nil {
		return nil, err
	}
	a := make([]any, n)
	for i := range a {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		a[i] = v
	}
	return a, nil
}

func (d *decoder) mapOf(n, depth int) (any, error) {
	if err := d.open(n, 2, depth); err != nil {
		return nil, err
	}
	m := make(map[string]any, n)
	for range n {
		k, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		key, err := keyText(k)
		if err != nil {
			return nil, err
		}
		if m[key], err = d.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// keyText is a map's key as text.
func keyText(k any) (string, error) {
	switch k := k.(type) {
	case string:
		return k, nil
	case int64:
		return strconv.FormatInt(k, 10), nil
	case uint64:
		return strconv.FormatUint(k, 10), nil
	case float64:
		return strconv.FormatFloat(k, 'f', -1, 64), nil
	case bool:
		return strconv.FormatBool(k), nil
	case nil:
		return "null", nil
	}
	return "", fmt.Errorf("%w: key of type %T", ErrCorrupt, k)
}
