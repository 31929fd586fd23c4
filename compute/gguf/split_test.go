package gguf

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"pooled/compute/gguf/gguftest"
	"pooled/compute/quant"
)

// splitPart writes one part. Values of -1 leave the key out.
func splitPart(t *testing.T, name string, no, count, total int, extra []gguftest.KV, tensors ...string) Part {
	t.Helper()
	kv := extra
	if no >= 0 {
		kv = append(kv, gguftest.KV{Key: "split.no", Value: uint16(no)})
	}
	if count >= 0 {
		kv = append(kv, gguftest.KV{Key: "split.count", Value: uint16(count)})
	}
	if total >= 0 {
		kv = append(kv, gguftest.KV{Key: "split.tensors.count", Value: int32(total)})
	}
	var list []gguftest.Tensor
	for _, tensor := range tensors {
		data, err := gguftest.Pack(quant.F32, []float32{float32(len(list)), 1, 2, float32(no)})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, gguftest.Tensor{Name: tensor, Dims: []uint64{4}, Type: quant.F32, Data: data})
	}
	b, err := gguftest.Bytes(kv, list)
	if err != nil {
		t.Fatal(err)
	}
	return Part{Name: name, R: bytes.NewReader(b), Size: int64(len(b))}
}

func TestSplitFiles(t *testing.T) {
	arch := []gguftest.KV{{Key: "general.architecture", Value: "qwen35moe"}, {Key: "general.alignment", Value: uint32(256)}}
	f, err := Open(
		splitPart(t, "m-00001-of-00003.gguf", 0, 3, 3, arch, "a"),
		splitPart(t, "m-00002-of-00003.gguf", 1, 3, 3, []gguftest.KV{{Key: "only.in.two", Value: true}}, "b", "c"),
		splitPart(t, "m-00003-of-00003.gguf", 2, 3, 3, nil),
	)
	if err != nil {
		t.Fatal(err)
	}
	if f.Arch() != "qwen35moe" || f.Has("only.in.two") {
		t.Errorf("keys %q, want those of the first part", f.Keys())
	}
	for _, c := range []struct {
		name   string
		part   int
		align  int64
		values []float32
	}{
		{"a", 0, 256, []float32{0, 1, 2, 0}},
		{"b", 1, 32, []float32{0, 1, 2, 1}},
		{"c", 1, 32, []float32{1, 1, 2, 1}},
	} {
		tensor, ok := f.Tensor(c.name)
		if !ok || tensor.Part != c.part || tensor.Offset%c.align != 0 {
			t.Fatalf("%s: %+v", c.name, tensor)
		}
		got, err := io.ReadAll(f.Reader(tensor))
		want, err2 := gguftest.Pack(quant.F32, c.values)
		if err != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: % x, want % x", c.name, got, want)
		}
	}
}

func TestSplitMistakes(t *testing.T) {
	one := func(no, count, total int, tensors ...string) Part {
		return splitPart(t, "one", no, count, total, nil, tensors...)
	}
	two := func(no, count, total int, tensors ...string) Part {
		return splitPart(t, "two", no, count, total, nil, tensors...)
	}
	for _, c := range []struct {
		name  string
		parts []Part
		says  string
	}{
		{"a single part of two", []Part{one(0, 2, 2, "a")}, "one: split.count: the model has 2 parts, 1 given"},
		{"second part alone", []Part{two(1, 2, 2, "b")}, "two: split.count: the model has 2 parts"},
		{"one part too many", []Part{one(0, 2, 2, "a"), two(1, 2, 2, "b"), two(2, 2, 2)}, "one: split.count: the model has 2 parts, 3 given"},
		{"whole file as a part", []Part{one(-1, -1, -1, "a"), two(1, 2, 2, "b")}, "one: split.count: the model has 1 parts, 2 given"},
		{"wrong order", []Part{two(1, 2, 2, "b"), one(0, 2, 2, "a")}, "two: split.no: this is part 2, part 1 expected"},
		{"same part twice", []Part{one(0, 2, 2, "a"), one(0, 2, 2, "a")}, "one: split.no: this is part 1, part 2 expected"},
		{"parts that disagree on the count", []Part{one(0, 2, 2, "a"), two(1, 3, 2, "b")}, "two: split.count: the model has 3 parts, 2 given"},
		{"a tensor in both", []Part{one(0, 2, 2, "a"), two(1, 2, 2, "a")}, "two: tensor a: listed twice"},
		{"a tensor is missing", []Part{one(0, 2, 3, "a"), two(1, 2, 3, "b")}, "3 tensors announced, the 2 parts have 2"},
		{"tensor count not given", []Part{one(0, 2, -1, "a"), two(1, 2, -1, "b")}, "0 tensors announced, the 2 parts have 2"},
		{"number in words", []Part{splitPart(t, "one", -1, 1, 0, []gguftest.KV{{Key: "split.no", Value: "first"}})}, "key split.no: not a number"},
		{"negative count", []Part{splitPart(t, "one", 0, -1, 0, []gguftest.KV{{Key: "split.count", Value: int32(-1)}})}, "key split.count: not a number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(c.parts...)
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	if _, err := Open(one(0, 1, 1, "a")); err != nil {
		t.Errorf("one part of one: %v", err)
	}
}
