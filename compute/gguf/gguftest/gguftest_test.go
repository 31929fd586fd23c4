package gguftest

import (
	"bytes"
	"math"
	"testing"

	"pooled/compute/gguf"
	"pooled/compute/quant"
)

// Packed weights come back within half a step of their block.
func TestPack(t *testing.T) {
	values := make([]float32, 64)
	for i := range values {
		values[i] = float32(math.Sin(float64(i))) * float32(1+i/32)
	}
	for _, c := range []struct {
		typ   quant.Type
		error float64
	}{
		{quant.F32, 0}, {quant.F16, 1e-3}, {quant.BF16, 0.016}, {quant.Q8_0, 2.0 / 127}, {quant.Q4_0, 2.0 / 7},
	} {
		b, err := Pack(c.typ, values)
		if err != nil {
			t.Fatal(err)
		}
		f, _ := c.typ.Format()
		got := make([]float32, len(values))
		f.Decode(got, b)
		for i, v := range got {
			if math.Abs(float64(v-values[i])) > c.error {
				t.Errorf("%v: weight %d = %v, want %v", c.typ, i, v, values[i])
			}
		}
	}
	zero, err := Pack(quant.Q8_0, make([]float32, 32))
	if err != nil || !bytes.Equal(zero, make([]byte, 34)) {
		t.Errorf("a block of zeros: % x, %v", zero, err)
	}
	if _, err := Pack(quant.Q6_K, make([]float32, 256)); err == nil {
		t.Error("Q6_K: no error")
	}
	if _, err := Pack(quant.Q8_0, make([]float32, 31)); err == nil {
		t.Error("part of a block: no error")
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		kv      []KV
		tensors []Tensor
	}{
		{"value without a type", []KV{{"k", struct{}{}}}, nil},
		{"short data", nil, []Tensor{{Name: "w", Dims: []uint64{4, 2}, Type: quant.F32, Data: make([]byte, 31)}}},
		{"no dimensions", nil, []Tensor{{Name: "w", Type: quant.F32}}},
		{"unknown format", nil, []Tensor{{Name: "w", Dims: []uint64{4}, Type: 99}}},
	} {
		if _, err := Bytes(c.kv, c.tensors); err == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
	b, err := Bytes(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gguf.Open(gguf.Part{Name: "empty", R: bytes.NewReader(b), Size: int64(len(b))}); err != nil {
		t.Error(err)
	}
}
