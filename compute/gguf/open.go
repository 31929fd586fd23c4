package gguf

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"pooled/compute/quant"
)

const (
	defaultAlignment = 32
	leastKV          = 8 + 4 + 1 // an empty key with a one-byte value
	leastTensor      = 8 + 4 + 8 + 4 + 8
)

// header is what one part says.
type header struct {
	cursor  *cursor
	keys    []string
	values  map[string]value
	tensors []Tensor
}

// Open reads the headers of a model's files: one, or all the parts of a split model in order.
func Open(parts ...Part) (*File, error) {
	if len(parts) == 0 {
		return nil, fmt.Errorf("gguf: no file given")
	}
	f := &File{parts: slices.Clone(parts), byName: map[string]int{}}
	var announced uint64 // split.tensors.count
	for i, p := range parts {
		h, err := readHeader(p, i)
		if err != nil {
			return nil, err
		}
		total, err := h.checkSplit(i, len(parts))
		if err != nil {
			return nil, err
		}
		if i == 0 {
			f.keys, f.values, announced = h.keys, h.values, total
		}
		for _, t := range h.tensors {
			if _, dup := f.byName[t.Name]; dup {
				return nil, problem(p.Name, "tensor "+shown(t.Name), ErrCorrupt, "listed twice")
			}
			f.byName[t.Name] = len(f.tensors)
			f.tensors = append(f.tensors, t)
		}
	}
	if len(parts) > 1 && announced != uint64(len(f.tensors)) {
		return nil, problem(parts[0].Name, "split.tensors.count", ErrCorrupt,
			"%d tensors announced, the %d parts have %d", announced, len(parts), len(f.tensors))
	}
	return f, nil
}

func readHeader(p Part, part int) (*header, error) {
	if p.R == nil || p.Size < 0 {
		return nil, problem(p.Name, "", ErrTruncated, "no data")
	}
	h := &header{cursor: newCursor(p), values: map[string]value{}}
	tensors, keys, err := h.readCounts()
	if err != nil {
		return nil, err
	}
	if err := h.readKeys(keys); err != nil {
		return nil, err
	}
	if err := h.readTensors(tensors, part); err != nil {
		return nil, err
	}
	align, err := h.alignment()
	if err != nil {
		return nil, err
	}
	return h, h.place(align)
}

// readCounts reads the fixed first 24 bytes.
func (h *header) readCounts() (tensors, keys uint64, err error) {
	c := h.cursor
	c.what = "first bytes"
	magic, err := c.take(int(min(4, c.left())))
	if err != nil {
		return 0, 0, err
	}
	if !bytes.HasPrefix([]byte("GGUF"), magic) {
		return 0, 0, c.fail(ErrNotGGUF, "begins with %q", magic)
	}
	if len(magic) < 4 {
		return 0, 0, c.fail(ErrTruncated, "%d bytes", len(magic))
	}
	c.what = "version"
	version, err := c.u32()
	switch {
	case err != nil:
		return 0, 0, err
	case bits.ReverseBytes32(version) < 1<<16 && version >= 1<<16:
		return 0, 0, c.fail(ErrUnsupported, "big endian")
	case version != 2 && version != 3:
		return 0, 0, c.fail(ErrUnsupported, "%d, only 2 and 3 can be read", version)
	}
	c.what = "number of tensors"
	if tensors, err = c.u64(); err != nil {
		return 0, 0, err
	}
	if tensors > maxTensors {
		return 0, 0, c.fail(ErrCorrupt, "%d, at most %d allowed", tensors, maxTensors)
	}
	c.what = "number of keys"
	if keys, err = c.u64(); err != nil {
		return 0, 0, err
	}
	if keys > maxKeys {
		return 0, 0, c.fail(ErrCorrupt, "%d, at most %d allowed", keys, maxKeys)
	}
	return tensors, keys, c.room(tensors*leastTensor+keys*leastKV, 1)
}

func (h *header) readKeys(n uint64) error {
	c := h.cursor
	for i := range n {
		c.what = fmt.Sprintf("key %d of %d", i+1, n)
		key, err := c.name()
		if err != nil {
			return err
		}
		c.what = "key " + shown(key)
		if _, dup := h.values[key]; dup {
			return c.fail(ErrCorrupt, "listed twice")
		}
		v, err := c.value()
		if err != nil {
			return err
		}
		h.keys = append(h.keys, key)
		h.values[key] = v
	}
	return nil
}

// readTensors reads the records; Offset stays relative to the start of the data until place.
func (h *header) readTensors(n uint64, part int) error {
	c := h.cursor
	for i := range n {
		c.what = fmt.Sprintf("tensor %d of %d", i+1, n)
		name, err := c.name()
		if err != nil {
			return err
		}
		c.what = "tensor " + shown(name)
		t, err := c.tensor(name, part)
		if err != nil {
			return err
		}
		h.tensors = append(h.tensors, t)
	}
	return nil
}

// tensor reads one record after its name and checks all that does not depend on where the data starts.
func (c *cursor) tensor(name string, part int) (Tensor, error) {
	t := Tensor{Name: name, Part: part}
	n, err := c.u32()
	if err != nil {
		return t, err
	}
	if n < 1 || n > maxDims {
		return t, c.fail(ErrCorrupt, "%d dimensions, 1 to %d allowed", n, maxDims)
	}
	rest, err := c.take(8*int(n) + 4 + 8)
	if err != nil {
		return t, err
	}
	t.Dims = make([]uint64, n)
	rows := uint64(1)
	for i := range t.Dims {
		d := binary.LittleEndian.Uint64(rest[8*i:])
		if d == 0 {
			return t, c.fail(ErrCorrupt, "dimension %d is 0", i)
		}
		if i > 0 {
			hi, lo := bits.Mul64(rows, d)
			if hi != 0 || lo > math.MaxInt {
				return t, c.fail(ErrCorrupt, "dimensions overflow")
			}
			rows = lo
		}
		t.Dims[i] = d
	}
	if t.Dims[0] > math.MaxInt {
		return t, c.fail(ErrCorrupt, "dimensions overflow")
	}
	rest = rest[8*n:]
	t.Type = quant.Type(binary.LittleEndian.Uint32(rest))
	offset := binary.LittleEndian.Uint64(rest[4:])
	if offset > math.MaxInt64 {
		return t, c.fail(ErrCorrupt, "data at %d", offset)
	}
	t.Offset = int64(offset)
	if _, ok := t.Type.Format(); !ok {
		return t, c.fail(fmt.Errorf("%w: %w", ErrUnsupported, quant.ErrType), "stored as %v", t.Type)
	}
	if t.Bytes, err = quant.Bytes(t.Type, int(t.Dims[0]), int(rows)); err != nil {
		return t, c.fail(ErrCorrupt, "%v", err)
	}
	return t, nil
}

// alignment returns general.alignment (spec engine.md 1.1).
func (h *header) alignment() (int64, error) {
	v, ok := h.values["general.alignment"]
	if !ok {
		return defaultAlignment, nil
	}
	h.cursor.what = "key general.alignment"
	n, ok := v.uint()
	if !ok {
		return 0, h.cursor.fail(ErrCorrupt, "not a number")
	}
	if n > math.MaxUint32 || bits.OnesCount64(n) != 1 {
		return 0, h.cursor.fail(ErrCorrupt, "%d is not a power of two below 2^32", n)
	}
	return int64(n), nil
}

// place turns relative offsets into absolute ones and checks that every tensor is inside the file, alone.
func (h *header) place(align int64) error {
	c := h.cursor
	start := (c.off + align - 1) / align * align
	for i := range h.tensors {
		t := &h.tensors[i]
		c.what = "tensor " + shown(t.Name)
		if t.Offset%align != 0 {
			return c.fail(ErrCorrupt, "data at %d, not a multiple of %d", t.Offset, align)
		}
		if t.Bytes > math.MaxInt64-start || t.Offset > math.MaxInt64-start-t.Bytes {
			return c.fail(ErrCorrupt, "%d bytes of data at %d", t.Bytes, t.Offset)
		}
		t.Offset += start
		if t.Offset+t.Bytes > c.part.Size {
			return c.fail(ErrTruncated, "data ends at byte %d, the file at %d", t.Offset+t.Bytes, c.part.Size)
		}
	}
	order := make([]int, len(h.tensors))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(h.tensors[a].Offset, h.tensors[b].Offset) })
	for i := 1; i < len(order); i++ {
		a, b := &h.tensors[order[i-1]], &h.tensors[order[i]]
		if a.Offset+a.Bytes > b.Offset {
			c.what = "tensor " + shown(b.Name)
			return c.fail(ErrCorrupt, "overlaps tensor %s", shown(a.Name))
		}
	}
	return nil
}

// checkSplit checks the split keys of part no of count (spec engine.md 1.5) and returns the announced number of
// tensors.
func (h *header) checkSplit(no, count int) (total uint64, err error) {
	get := func(key string, missing uint64) (uint64, error) {
		v, ok := h.values[key]
		if !ok {
			return missing, nil
		}
		n, ok := v.uint()
		if !ok {
			return 0, problem(h.cursor.part.Name, "key "+key, ErrCorrupt, "not a number")
		}
		return n, nil
	}
	said, err := get("split.count", 1)
	if err != nil {
		return 0, err
	}
	if said == 0 && count == 1 {
		said = 1 // written by tools that did not split
	}
	if said != uint64(count) {
		return 0, problem(h.cursor.part.Name, "split.count", ErrCorrupt, "the model has %d parts, %d given", said, count)
	}
	if said, err = get("split.no", 0); err != nil {
		return 0, err
	}
	if said != uint64(no) {
		return 0, problem(h.cursor.part.Name, "split.no", ErrCorrupt, "this is part %d, part %d expected", said+1, no+1)
	}
	return get("split.tensors.count", 0)
}
