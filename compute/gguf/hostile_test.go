package gguf

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"pooled/compute/gguf/gguftest"
	"pooled/compute/quant"
)

// head is the fixed start of a file with the given counts.
func head(tensors, keys uint64) []byte { return raw([]byte("GGUF"), uint32(3), tensors, keys) }

// record is a tensor record.
func record(name string, typ quant.Type, offset uint64, dims ...uint64) []byte {
	return raw(name, uint32(len(dims)), dims, uint32(typ), offset)
}

// with is a file of tensor records only, followed by plenty of bytes.
func with(records ...[]byte) []byte {
	return append(append(head(uint64(len(records)), 0), bytes.Join(records, nil)...), make([]byte, 4096)...)
}

// key is a file with one key and no tensor, followed by plenty of bytes.
func key(values ...any) []byte {
	return append(append(head(0, 1), raw(values...)...), make([]byte, 4096)...)
}

func TestHostileFiles(t *testing.T) {
	const most = math.MaxUint64
	const f32 = quant.F32
	for _, c := range []struct {
		name string
		file []byte
		want error
		says string // the thing and the cause
	}{
		{"empty", nil, ErrTruncated, "first bytes"},
		{"other file", []byte("PK\x03\x04 something else that is long enough"), ErrNotGGUF, "first bytes"},
		{"wrong case", []byte("gguf\x03\x00\x00\x00"), ErrNotGGUF, `"gguf"`},
		{"short other file", []byte("GX"), ErrNotGGUF, `"GX"`},
		{"version 1", raw([]byte("GGUF"), uint32(1), uint64(0), uint64(0)), ErrUnsupported, "version: 1"},
		{"version 4", raw([]byte("GGUF"), uint32(4), uint64(0), uint64(0)), ErrUnsupported, "version: 4"},
		{"big endian", raw([]byte("GGUF"), uint32(3<<24), uint64(0), uint64(0)), ErrUnsupported, "big endian"},
		{"2^63 tensors", head(1<<63, 0), ErrCorrupt, "number of tensors"},
		{"2^64-1 keys", head(0, most), ErrCorrupt, "number of keys"},
		{"too many tensors", head(maxTensors+1, 0), ErrCorrupt, "at most 65536"},
		{"nothing announced", with()[:24:24], nil, ""},
		{"60,000 tensors announced, none there", head(60000, 0), ErrTruncated, "1920000 bytes announced, 0 left"},

		{"key of 2^63 bytes", key(uint64(1<<63), []byte("k")), ErrCorrupt, "key 1 of 1: a name of"},
		{"key longer than allowed", key(strings.Repeat("k", 65536), uint32(4), uint32(1)), ErrCorrupt, "at most 65535"},
		{"same key twice", append(head(0, 2), raw("k", uint32(4), uint32(1), "k", uint32(4), uint32(1))...), ErrCorrupt, "key k: listed twice"},
		{"unknown value type", key("k", uint32(13), uint32(1)), ErrCorrupt, "key k: value of type 13"},
		{"bool of 2", key("k", uint32(7), uint8(2)), ErrCorrupt, "key k: a bool of 2"},
		{"string of 2^63 bytes", key("k", uint32(8), uint64(1<<63)), ErrCorrupt, "key k: 9223372036854775808 bytes"},
		{"string longer than the file", key("k", uint32(8), uint64(1<<20)), ErrTruncated, "key k: 1048576 bytes"},
		{"array of arrays", key("k", uint32(9), uint32(9), uint64(1), uint32(4), uint64(0)), ErrCorrupt, "key k: an array of arrays"},
		{"array of an unknown type", key("k", uint32(9), uint32(77), uint64(1)), ErrCorrupt, "key k: value of type 77"},
		{"array of 2^63 bytes", key("k", uint32(9), uint32(0), uint64(1<<63)), ErrCorrupt, "key k: 9223372036854775808 bytes"},
		{"array whose size overflows", key("k", uint32(9), uint32(10), uint64(1<<61+1)), ErrCorrupt, "key k: 2305843009213693953 times 8"},
		{"array longer than the file", key("k", uint32(9), uint32(4), uint64(5000)), ErrTruncated, "key k: 5000 times 4"},
		{"2^63 strings", key("k", uint32(9), uint32(8), uint64(1<<63)), ErrCorrupt, "key k: 9223372036854775808 strings"},
		{"more strings than bytes", key("k", uint32(9), uint32(8), uint64(100000)), ErrTruncated, "key k: 100000 times 8"},
		{"string of an array past the end", key("k", uint32(9), uint32(8), uint64(2), "a", uint64(most)), ErrCorrupt, "key k: "},
		{"unprintable key", key("a\x1b[2J\n", uint32(99)), ErrCorrupt, `key "a\x1b[2J\n": value`},

		{"alignment 0", key("general.alignment", uint32(4), uint32(0)), ErrCorrupt, "general.alignment: 0 is not a power of two"},
		{"alignment 48", key("general.alignment", uint32(4), uint32(48)), ErrCorrupt, "general.alignment: 48"},
		{"alignment 2^40", key("general.alignment", uint32(10), uint64(1<<40)), ErrCorrupt, "general.alignment"},
		{"alignment -32", key("general.alignment", uint32(5), int32(-32)), ErrCorrupt, "general.alignment: not a number"},
		{"alignment in words", key("general.alignment", uint32(8), "32"), ErrCorrupt, "general.alignment: not a number"},

		{"tensor name of 2^63 bytes", append(head(1, 0), raw(uint64(1<<63), make([]byte, 64))...), ErrCorrupt, "tensor 1 of 1"},
		{"no dimension", with(record("w", f32, 0)), ErrCorrupt, "tensor w: 0 dimensions"},
		{"five dimensions", with(record("w", f32, 0, 1, 1, 1, 1, 1)), ErrCorrupt, "tensor w: 5 dimensions"},
		{"2^32-1 dimensions", with(raw("w", uint32(math.MaxUint32), make([]byte, 64))), ErrCorrupt, "tensor w: 4294967295 dimensions"},
		{"a dimension of 0", with(record("w", f32, 0, 4, 0)), ErrCorrupt, "tensor w: dimension 1 is 0"},
		{"a dimension of 2^63", with(record("w", f32, 0, 1<<63)), ErrCorrupt, "tensor w: dimensions overflow"},
		{"rows overflow", with(record("w", f32, 0, 1, 1<<32, 1<<32)), ErrCorrupt, "tensor w: dimensions overflow"},
		{"weights overflow", with(record("w", f32, 0, 1<<32, 1<<31)), ErrCorrupt, "tensor w: impossible tensor shape"},
		{"broken blocks", with(record("w", quant.Q8_0, 0, 48, 2)), ErrCorrupt, "tensor w: impossible tensor shape"},
		{"unknown format", with(record("w", 10, 0, 256)), ErrUnsupported, "tensor w: stored as type 10"},
		{"data at 2^63", with(record("w", f32, 1<<63, 8)), ErrCorrupt, "tensor w: data at 9223372036854775808"},
		{"data just under 2^63", with(record("w", f32, 1<<63-32, 8)), ErrCorrupt, "tensor w: 32 bytes of data at"},
		{"data not aligned", with(record("w", f32, 16, 4)), ErrCorrupt, "tensor w: data at 16, not a multiple of 32"},
		{"data past the end", with(record("w", f32, 1<<20, 4)), ErrTruncated, "tensor w: data ends at byte"},
		{"data longer than the file", with(record("w", f32, 0, 4096)), ErrTruncated, "tensor w: data ends at byte"},
		{"same tensor twice", with(record("w", f32, 0, 8), record("w", f32, 32, 8)), ErrCorrupt, "tensor w: listed twice"},
		{"same place twice", with(record("a", f32, 0, 8), record("b", f32, 0, 8)), ErrCorrupt, "overlaps tensor"},
		{"overlap out of order", with(record("a", f32, 64, 8), record("b", f32, 0, 17)), ErrCorrupt, "tensor a: overlaps tensor b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := openBytes("evil.gguf", c.file)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err != nil && (!strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "gguf: evil.gguf: ")) {
				t.Errorf("%q does not say %q", err, c.says)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
				t.Errorf("%d bytes allocated for a file of %d", grown, len(c.file))
			}
		})
	}
	// Without padding between tensors a single byte shows.
	tight := func(second uint64) []byte {
		return bytes.Join([][]byte{head(2, 1), raw("general.alignment", uint32(4), uint32(1)),
			record("a", f32, 0, 1), record("b", f32, second, 1), make([]byte, 8)}, nil)
	}
	if _, err := openBytes("x", tight(4)); err != nil {
		t.Errorf("tensors side by side: %v", err)
	}
	if _, err := openBytes("x", tight(3)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("one byte in common: %v, want %v", err, ErrCorrupt)
	}
	if _, err := openBytes("x", with(record("w", 10, 0, 256))); !errors.Is(err, quant.ErrType) {
		t.Errorf("unknown format: %v, want %v", err, quant.ErrType)
	}
	if _, err := Open(); err == nil {
		t.Error("no file: no error")
	}
	if _, err := Open(Part{Name: "x", Size: 10}); !errors.Is(err, ErrTruncated) {
		t.Errorf("no reader: %v", err)
	}
}

// zeros is a huge file of zeros behind a short start.
type zeros struct{ start []byte }

func (z zeros) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(z.start)) {
		copy(p, z.start[off:])
	}
	return len(p), nil
}

// A header may not be longer than 256 MiB, however long the file is.
func TestHeaderLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		start []byte
	}{
		{"long string", append(head(0, 2), raw("k", uint32(8), uint64(300<<20))...)},
		{"long array", append(head(0, 2), raw("k", uint32(9), uint32(4), uint64(70<<20))...)},
		{"too many strings", append(head(0, 2), raw("k", uint32(9), uint32(8), uint64(maxStrings+1))...)},
		{"key after a string up to the limit", append(head(0, 2), raw("k", uint32(8), uint64(maxHeader-45))...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(Part{Name: "long", R: zeros{c.start}, Size: 1 << 40})
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "more than a header may have") && !strings.Contains(err.Error(), "at most 4194304 allowed") {
				t.Errorf("got %v, want %v", err, ErrCorrupt)
			}
		})
	}
	f, err := Open(Part{Name: "long", R: zeros{append(head(0, 1), raw("k", uint32(8), uint64(17<<20))...)}, Size: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Str("k"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("string of 17 MiB: %v, want %v", err, ErrCorrupt)
	}
	f, err = Open(Part{Name: "long", R: zeros{append(head(0, 1), raw("k", uint32(9), uint32(0), uint64(1<<23))...)}, Size: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Ints("k"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("2^23 numbers: %v, want %v", err, ErrCorrupt)
	}
}

// Wherever a file is cut, Open says that it is incomplete and what was being read.
func TestTruncatedEverywhere(t *testing.T) {
	full := sample(t)
	f, err := openBytes("cut.gguf", full)
	if err != nil {
		t.Fatal(err)
	}
	tensors := f.Tensors()
	last := tensors[len(tensors)-1]
	start, end := tensors[0].Offset, last.Offset+last.Bytes
	for n := range int64(len(full)) {
		_, err := Open(Part{Name: "cut.gguf", R: bytes.NewReader(full[:n]), Size: n})
		if n >= end {
			if err != nil {
				t.Errorf("cut at %d, in the last padding: %v", n, err)
			}
			continue
		}
		if !errors.Is(err, ErrTruncated) || !names(err) {
			t.Fatalf("cut at %d: %v, want %v", n, err, ErrTruncated)
		}
		// The file got shorter after somebody asked for its size.
		_, err = Open(Part{Name: "cut.gguf", R: bytes.NewReader(full[:n]), Size: int64(len(full))})
		if (n < start-32 || err != nil) && (!errors.Is(err, ErrTruncated) || !names(err)) {
			t.Fatalf("shrunk to %d: %v, want %v", n, err, ErrTruncated)
		}
	}
}

func names(err error) bool {
	for _, what := range []string{"first bytes", "version", "number of tensors", "number of keys", "key ", "tensor "} {
		if strings.HasPrefix(err.Error(), "gguf: cut.gguf: "+what) {
			return true
		}
	}
	return false
}

// failing gives an error of its own from some position on.
type failing struct {
	data []byte
	from int64
	err  error
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.from {
		return 0, f.err
	}
	return copy(p, f.data[off:]), nil
}

func TestReadErrors(t *testing.T) {
	full, disk := sample(t), errors.New("disk on fire")
	if _, err := Open(Part{Name: "x", R: failing{full, 0, disk}, Size: int64(len(full))}); !errors.Is(err, disk) {
		t.Errorf("Open: %v, want %v", err, disk)
	}
	part := &swap{r: bytes.NewReader(full)}
	f, err := Open(Part{Name: "x", R: part, Size: int64(len(full))})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		r    io.ReaderAt
		want error
	}{
		{"failing", failing{full, 0, disk}, disk},
		{"gone", bytes.NewReader(nil), ErrTruncated},
		{"other bytes", bytes.NewReader(bytes.Repeat([]byte{0xff}, len(full))), ErrCorrupt},
	} {
		part.r = c.r
		if _, err := f.Strings("words"); !errors.Is(err, c.want) {
			t.Errorf("%s: Strings: %v, want %v", c.name, err, c.want)
		}
	}
}

// swap is a file whose content changes.
type swap struct{ r io.ReaderAt }

func (s *swap) ReadAt(p []byte, off int64) (int, error) { return s.r.ReadAt(p, off) }

func FuzzOpen(f *testing.F) {
	full := sample(f)
	f.Add(full)
	f.Add(full[:len(full)/2])
	f.Add(full[:90])
	f.Add(with(record("a", quant.F32, 64, 8), record("b", quant.Q4_0, 0, 32)))
	f.Add(key("general.alignment", uint32(4), uint32(64)))
	split, err := gguftest.Bytes([]gguftest.KV{{Key: "split.count", Value: uint16(1)}, {Key: "split.no", Value: uint16(0)}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(split)
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := openBytes("fuzz", b)
		if err != nil {
			for _, kind := range []error{ErrNotGGUF, ErrTruncated, ErrCorrupt, ErrUnsupported} {
				if errors.Is(err, kind) {
					return
				}
			}
			t.Fatalf("error of no kind: %v", err)
		}
		tensors := file.Tensors()
		for i, a := range tensors {
			want, err := quant.Bytes(a.Type, a.Cols(), a.Rows())
			if err != nil || want != a.Bytes || a.Offset < 0 || a.Offset+a.Bytes > int64(len(b)) {
				t.Fatalf("tensor %+v: %d bytes, %v", a, want, err)
			}
			for _, other := range tensors[:i] {
				if a.Offset < other.Offset+other.Bytes && other.Offset < a.Offset+a.Bytes {
					t.Fatalf("%+v overlaps %+v", a, other)
				}
			}
		}
		for _, k := range file.Keys() {
			if !file.Has(k) {
				t.Fatalf("key %q lost", k)
			}
			words, err := file.Strings(k)
			if err == nil && len(words) > len(b)/8 {
				t.Fatalf("%d strings from %d bytes", len(words), len(b))
			}
			ok := err == nil
			for _, get := range []func() error{
				func() error { _, err := file.Uint(k); return err }, func() error { _, err := file.Float(k); return err },
				func() error { _, err := file.Bool(k); return err }, func() error { _, err := file.Str(k); return err },
				func() error { _, err := file.Ints(k); return err },
			} {
				if get() == nil {
					if ok {
						t.Fatalf("key %q has two types", k)
					}
					ok = true
				}
			}
		}
	})
}
