// Package gguftest writes small GGUF files for tests: synthetic models and hostile headers. It is no converter: all
// data is in memory and nothing is checked that a test may want to get wrong, except that sizes match types.
package gguftest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"pooled/compute/quant"
)

// KV is one key. Value is an integer of 8 to 64 bits, a float32 or float64, a bool, a string, or a slice of one of
// these.
type KV struct {
	Key   string
	Value any
}

// Tensor is one tensor with its data in file order. Dims has ne0, the contiguous dimension, first.
type Tensor struct {
	Name string
	Dims []uint64
	Type quant.Type
	Data []byte
}

// Write writes a GGUF file of version 3. Tensors follow each other in the given order, each padded to the value of the
// key "general.alignment" when kv has it as a uint32, else to 32.
func Write(w io.Writer, kv []KV, tensors []Tensor) error {
	var head bytes.Buffer
	head.WriteString("GGUF")
	put(&head, uint32(3), uint64(len(tensors)), uint64(len(kv)))
	align := uint64(32)
	for _, e := range kv {
		if n, ok := e.Value.(uint32); ok && e.Key == "general.alignment" && n > 0 {
			align = uint64(n)
		}
		text(&head, e.Key)
		if err := value(&head, e.Value); err != nil {
			return fmt.Errorf("gguftest: key %s: %w", e.Key, err)
		}
	}
	offset := uint64(0)
	for _, t := range tensors {
		text(&head, t.Name)
		put(&head, uint32(len(t.Dims)), t.Dims, uint32(t.Type), offset)
		want, err := size(t)
		if err != nil {
			return err
		}
		if int64(len(t.Data)) != want {
			return fmt.Errorf("gguftest: tensor %s: %d bytes of data, want %d", t.Name, len(t.Data), want)
		}
		offset += roundUp(uint64(len(t.Data)), align)
	}
	out := bufio.NewWriter(w)
	pad := func(n uint64) { out.Write(make([]byte, roundUp(n, align)-n)) }
	out.Write(head.Bytes())
	pad(uint64(head.Len()))
	for _, t := range tensors {
		out.Write(t.Data)
		pad(uint64(len(t.Data)))
	}
	return out.Flush() // reports the first error of all writes
}

// Bytes returns the file that Write makes.
func Bytes(kv []KV, tensors []Tensor) ([]byte, error) {
	var b bytes.Buffer
	err := Write(&b, kv, tensors)
	return b.Bytes(), err
}

func size(t Tensor) (int64, error) {
	if len(t.Dims) == 0 {
		return 0, fmt.Errorf("gguftest: tensor %s: no dimensions", t.Name)
	}
	rows := 1
	for _, d := range t.Dims[1:] {
		rows *= int(d)
	}
	n, err := quant.Bytes(t.Type, int(t.Dims[0]), rows)
	if err != nil {
		return 0, fmt.Errorf("gguftest: tensor %s: %w", t.Name, err)
	}
	return n, nil
}

func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

// put appends fixed-size values in little endian.
func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			panic(err) //nolint:forbidigo // only for a type that has no fixed size: a mistake in this file
		}
	}
}

func text(b *bytes.Buffer, s string) {
	put(b, uint64(len(s)))
	b.WriteString(s)
}

// number returns the type number of a fixed-size value, or of the elements of a slice of them, and their count.
func number(v any) (typ uint32, slice bool, count int) {
	switch v := v.(type) {
	case uint8:
		return 0, false, 1
	case int8:
		return 1, false, 1
	case uint16:
		return 2, false, 1
	case int16:
		return 3, false, 1
	case uint32:
		return 4, false, 1
	case int32:
		return 5, false, 1
	case float32:
		return 6, false, 1
	case bool:
		return 7, false, 1
	case uint64:
		return 10, false, 1
	case int64:
		return 11, false, 1
	case float64:
		return 12, false, 1
	case []uint8:
		return 0, true, len(v)
	case []int8:
		return 1, true, len(v)
	case []uint16:
		return 2, true, len(v)
	case []int16:
		return 3, true, len(v)
	case []uint32:
		return 4, true, len(v)
	case []int32:
		return 5, true, len(v)
	case []float32:
		return 6, true, len(v)
	case []bool:
		return 7, true, len(v)
	case []uint64:
		return 10, true, len(v)
	case []int64:
		return 11, true, len(v)
	case []float64:
		return 12, true, len(v)
	}
	return 0, false, 0
}

func value(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case string:
		put(b, uint32(8))
		text(b, v)
		return nil
	case []string:
		put(b, uint32(9), uint32(8), uint64(len(v)))
		for _, s := range v {
			text(b, s)
		}
		return nil
	}
	typ, slice, count := number(v)
	switch {
	case slice:
		put(b, uint32(9), typ, uint64(count), v)
	case count == 1:
		put(b, typ, v)
	default:
		return fmt.Errorf("no type for %T", v)
	}
	return nil
}
