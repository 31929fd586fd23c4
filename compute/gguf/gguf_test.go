package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"pooled/compute/gguf/gguftest"
	"pooled/compute/quant"
)

const models = "../testdata/models"

// raw concatenates values in the layout of the format: little endian, strings with a u64 length before them. A []byte
// goes in as it is.
func raw(values ...any) []byte {
	var b []byte
	for _, v := range values {
		switch v := v.(type) {
		case []byte:
			b = append(b, v...)
		case string:
			b = binary.LittleEndian.AppendUint64(b, uint64(len(v)))
			b = append(b, v...)
		default:
			b, _ = binary.Append(b, binary.LittleEndian, v)
		}
	}
	return b
}

func openBytes(name string, b []byte) (*File, error) {
	return Open(Part{Name: name, R: bytes.NewReader(b), Size: int64(len(b))})
}

func openDisk(t *testing.T, name string) (*File, int64) {
	t.Helper()
	file, err := os.Open(filepath.Join(models, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	st, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(Part{Name: name, R: file, Size: st.Size()})
	if err != nil {
		t.Fatal(err)
	}
	return f, st.Size()
}

// sample has every type of value and three tensors.
func sample(t testing.TB) []byte {
	t.Helper()
	b, err := gguftest.Bytes([]gguftest.KV{
		{Key: "general.architecture", Value: "qwen3"},
		{Key: "u8", Value: uint8(200)}, {Key: "i8", Value: int8(-3)},
		{Key: "u16", Value: uint16(60000)}, {Key: "i16", Value: int16(-300)},
		{Key: "u32", Value: uint32(1 << 31)}, {Key: "i32", Value: int32(-70000)},
		{Key: "u64", Value: uint64(1 << 63)}, {Key: "i64", Value: int64(-1 << 40)},
		{Key: "f32", Value: float32(1e-6)}, {Key: "f64", Value: 0.1},
		{Key: "yes", Value: true}, {Key: "no", Value: false},
		{Key: "empty", Value: ""},
		{Key: "words", Value: []string{"a", "", "Ġthe", "z"}},
		{Key: "numbers", Value: []int32{3, -1, 1}},
		{Key: "flags", Value: []bool{true, false, true}},
		{Key: "floats", Value: []float32{0.5}},
		{Key: "big", Value: []uint64{7, 1 << 63}},
		{Key: "none", Value: []uint16{}},
	}, []gguftest.Tensor{
		{Name: "token_embd.weight", Dims: []uint64{32, 3}, Type: quant.Q8_0, Data: bytes.Repeat([]byte{1}, 102)},
		{Name: "blk.0.attn_norm.weight", Dims: []uint64{5}, Type: quant.F32, Data: bytes.Repeat([]byte{2}, 20)},
		{Name: "blk.0.ffn_gate_exps.weight", Dims: []uint64{2, 3, 4}, Type: quant.F16, Data: bytes.Repeat([]byte{3}, 48)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A file written out byte by byte from the layout of spec engine.md 1.1.
func TestOpenLiteralFile(t *testing.T) {
	b := []byte("GGUF" + "\x03\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x00\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00" +
		"\x01\x00\x00\x00\x00\x00\x00\x00" + "k" + "\x05\x00\x00\x00" + "\xfe\xff\xff\xff" + // k: i32 -2
		"\x01\x00\x00\x00\x00\x00\x00\x00" + "a" + "\x09\x00\x00\x00" + "\x08\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x00\x00" +
		"\x02\x00\x00\x00\x00\x00\x00\x00" + "hi" + // a: ["hi"]
		"\x01\x00\x00\x00\x00\x00\x00\x00" + "t" + "\x02\x00\x00\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00" + "\x03\x00\x00\x00\x00\x00\x00\x00" +
		"\x1e\x00\x00\x00" + "\x20\x00\x00\x00\x00\x00\x00\x00") // t: {2, 3} bf16 at 32
	b = append(b, make([]byte, 160-len(b))...) // the header has 123 bytes: data starts at 128, t is at 160
	b = append(b, []byte("abcdefghijkl")...)
	f, err := openBytes("literal", b)
	if err != nil {
		t.Fatal(err)
	}
	tensor, ok := f.Tensor("t")
	want := Tensor{Name: "t", Dims: []uint64{2, 3}, Type: quant.BF16, Offset: 160, Bytes: 12}
	if !ok || !reflect.DeepEqual(tensor, want) {
		t.Errorf("tensor t = %+v, want %+v", tensor, want)
	}
	if data, err := io.ReadAll(f.Reader(tensor)); err != nil || string(data) != "abcdefghijkl" {
		t.Errorf("data %q, %v", data, err)
	}
	if words, err := f.Strings("a"); err != nil || !slices.Equal(words, []string{"hi"}) {
		t.Errorf("a = %q, %v", words, err)
	}
	if _, err := f.Uint("k"); !errors.Is(err, ErrKeyType) {
		t.Errorf("Uint of -2: %v, want %v", err, ErrKeyType)
	}
	if got := f.Keys(); !slices.Equal(got, []string{"k", "a"}) {
		t.Errorf("keys %q", got)
	}
}

func TestValues(t *testing.T) {
	f, err := openBytes("sample", sample(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Arch(); got != "qwen3" {
		t.Errorf("Arch = %q", got)
	}
	for _, c := range []struct {
		key  string
		get  func(string) (any, error)
		want any
		err  error
	}{
		{"u8", any1(f.Uint), uint64(200), nil},
		{"u16", any1(f.Uint), uint64(60000), nil},
		{"u32", any1(f.Uint), uint64(1 << 31), nil},
		{"u64", any1(f.Uint), uint64(1 << 63), nil},
		{"i8", any1(f.Uint), nil, ErrKeyType},
		{"i16", any1(f.Uint), nil, ErrKeyType},
		{"i64", any1(f.Uint), nil, ErrKeyType},
		{"yes", any1(f.Uint), nil, ErrKeyType},
		{"f32", any1(f.Uint), nil, ErrKeyType},
		{"absent", any1(f.Uint), nil, ErrNoKey},
		{"f32", any1(f.Float), float64(float32(1e-6)), nil},
		{"f64", any1(f.Float), 0.1, nil},
		{"u8", any1(f.Float), nil, ErrKeyType},
		{"yes", any1(f.Bool), true, nil},
		{"no", any1(f.Bool), false, nil},
		{"u8", any1(f.Bool), nil, ErrKeyType},
		{"general.architecture", any1(f.Str), "qwen3", nil},
		{"empty", any1(f.Str), "", nil},
		{"words", any1(f.Str), nil, ErrKeyType},
		{"absent", any1(f.Str), nil, ErrNoKey},
		{"words", any1(f.Strings), []string{"a", "", "Ġthe", "z"}, nil},
		{"numbers", any1(f.Strings), nil, ErrKeyType},
		{"numbers", any1(f.Ints), []int64{3, -1, 1}, nil},
		{"flags", any1(f.Ints), []int64{1, 0, 1}, nil},
		{"none", any1(f.Ints), []int64{}, nil},
		{"floats", any1(f.Ints), nil, ErrKeyType},
		{"words", any1(f.Ints), nil, ErrKeyType},
		{"big", any1(f.Ints), nil, ErrKeyType},
		{"u8", any1(f.Ints), nil, ErrKeyType},
	} {
		got, err := c.get(c.key)
		if !errors.Is(err, c.err) || (c.err == nil && !reflect.DeepEqual(got, c.want)) {
			t.Errorf("%s: got %v, %v, want %v, %v", c.key, got, err, c.want, c.err)
		}
	}
	if got := f.UintOr("u8", 1); got != 200 {
		t.Errorf("UintOr = %d", got)
	}
	if got := f.UintOr("absent", 9); got != 9 {
		t.Errorf("UintOr of an absent key = %d", got)
	}
	if a, b := f.FloatOr("f64", 1), f.FloatOr("absent", 2.5); a != 0.1 || b != 2.5 {
		t.Errorf("FloatOr = %v, %v", a, b)
	}
	if a, b := f.BoolOr("yes", false), f.BoolOr("absent", true); !a || !b {
		t.Errorf("BoolOr = %v, %v", a, b)
	}
	if a, b := f.StrOr("empty", "x"), f.StrOr("absent", "x"); a != "" || b != "x" {
		t.Errorf("StrOr = %q, %q", a, b)
	}
	if !f.Has("no") || f.Has("absent") {
		t.Error("Has is wrong")
	}
}

func any1[T any](get func(string) (T, error)) func(string) (any, error) {
	return func(key string) (any, error) { return get(key) }
}

func TestTensors(t *testing.T) {
	f, err := openBytes("sample", sample(t))
	if err != nil {
		t.Fatal(err)
	}
	all := f.Tensors()
	if len(all) != 3 || all[2].Cols() != 2 || all[2].Rows() != 12 || all[1].Rows() != 1 {
		t.Fatalf("tensors %+v", all)
	}
	for i, tensor := range all {
		data, err := io.ReadAll(f.Reader(tensor))
		if want := bytes.Repeat([]byte{byte(i + 1)}, int(tensor.Bytes)); err != nil || !bytes.Equal(data, want) {
			t.Errorf("%s: %d bytes, %v", tensor.Name, len(data), err)
		}
	}
	if _, ok := f.Tensor("absent"); ok {
		t.Error("found an absent tensor")
	}
}

// Files that another program wrote: shapes of spec engine.md 1.3, data up to the end of the file.
func TestRealFiles(t *testing.T) {
	for _, c := range []struct {
		file, arch string
		tensors    map[string][]uint64
		types      map[string]quant.Type
	}{
		{"tiny-qwen3-q8.gguf", "qwen3",
			map[string][]uint64{"token_embd.weight": {256, 1024}, "output_norm.weight": {256}, "blk.3.attn_k.weight": {256, 128}, "blk.3.ffn_down.weight": {512, 256}},
			map[string]quant.Type{"token_embd.weight": quant.Q8_0, "output_norm.weight": quant.F32}},
		{"tiny-qwen3-q4.gguf", "qwen3",
			map[string][]uint64{"blk.0.attn_q_norm.weight": {64}, "blk.0.ffn_gate.weight": {256, 512}},
			map[string]quant.Type{"blk.0.ffn_gate.weight": quant.Q4_0}},
		{"tiny-qwen35-q4.gguf", "qwen35",
			map[string][]uint64{"blk.3.attn_q.weight": {256, 512}, "blk.0.ssm_a": {4}, "blk.8.nextn.eh_proj.weight": {512, 256}},
			map[string]quant.Type{"blk.0.ssm_a": quant.F32}},
		{"tiny-qwen35moe-q4.gguf", "qwen35moe",
			map[string][]uint64{"blk.0.ffn_gate_exps.weight": {256, 256, 8}, "blk.0.ffn_gate_inp.weight": {256, 8}},
			map[string]quant.Type{"blk.0.ffn_gate_exps.weight": quant.Q4_0}},
	} {
		t.Run(c.file, func(t *testing.T) {
			f, size := openDisk(t, c.file)
			if f.Arch() != c.arch {
				t.Errorf("arch %q, want %q", f.Arch(), c.arch)
			}
			if eps, err := f.Float(c.arch + ".attention.layer_norm_rms_epsilon"); err != nil || math.Abs(eps-1e-6) > 1e-12 {
				t.Errorf("eps %v, %v", eps, err)
			}
			for name, dims := range c.tensors {
				if got, ok := f.Tensor(name); !ok || !slices.Equal(got.Dims, dims) {
					t.Errorf("%s: %v, want %v", name, got.Dims, dims)
				}
			}
			for name, typ := range c.types {
				if got, _ := f.Tensor(name); got.Type != typ {
					t.Errorf("%s: %v, want %v", name, got.Type, typ)
				}
			}
			var end int64
			for _, tensor := range f.Tensors() {
				end = max(end, tensor.Offset+tensor.Bytes)
			}
			if end > size || size-end >= 32 {
				t.Errorf("data ends at %d of %d", end, size)
			}
			words, err := f.Strings("tokenizer.ggml.tokens")
			kinds, err2 := f.Ints("tokenizer.ggml.token_type")
			if err != nil || err2 != nil || len(words) != 1024 || len(kinds) != 1024 {
				t.Errorf("%d tokens, %d types, %v, %v", len(words), len(kinds), err, err2)
			}
		})
	}
}

// counter counts the bytes read from a file.
type counter struct {
	r    io.ReaderAt
	read int64
}

func (c *counter) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.r.ReadAt(p, off)
	c.read += int64(n)
	return n, err
}

// Open passes over strings and data: it reads no more than the header and one window, keeps little, and the vocabulary
// comes only when it is asked for.
func TestOpenIsLazy(t *testing.T) {
	for _, name := range []string{"tiny-qwen35moe-q4.gguf", "vocab-qwen3.gguf"} {
		data, err := os.ReadFile(filepath.Join(models, name))
		if err != nil {
			t.Fatal(err)
		}
		c := &counter{r: bytes.NewReader(data)}
		f, err := Open(Part{Name: name, R: c, Size: int64(len(data))})
		if err != nil {
			t.Fatal(err)
		}
		header := int64(len(data))
		for _, tensor := range f.Tensors() {
			header = min(header, tensor.Offset)
		}
		if c.read > header+window {
			t.Errorf("%s: %d bytes read of a header of %d", name, c.read, header)
		}
	}
	f, _ := openDisk(t, "vocab-qwen3.gguf")
	words, err := f.Strings("tokenizer.ggml.tokens")
	if err != nil || len(words) != 151936 || words[0] != "!" || words[151643] != "<|endoftext|>" {
		t.Errorf("%d tokens, %v", len(words), err)
	}
	merges, err := f.Strings("tokenizer.ggml.merges")
	if err != nil || len(merges) != 151387 || merges[0] != "Ġ Ġ" {
		t.Errorf("%d merges, %v", len(merges), err)
	}
}

func BenchmarkOpenVocabulary(b *testing.B) {
	data, err := os.ReadFile(filepath.Join(models, "vocab-qwen3.gguf"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := openBytes("vocab", data); err != nil {
			b.Fatal(err)
		}
	}
}
