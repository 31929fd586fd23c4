package shape

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pooled/compute/gguf"
	"pooled/compute/quant"
)

func open(t testing.TB, name string, layers int) *File {
	t.Helper()
	s, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	if layers > 0 {
		if s, err = s.Scaled(layers); err != nil {
			t.Fatal(err)
		}
	}
	f, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func all(t testing.TB, f *File) []byte {
	t.Helper()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, math.MaxInt64))
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(b)) != f.Size() {
		t.Fatalf("%d bytes, Size says %d", len(b), f.Size())
	}
	return b
}

// Any range read alone has the bytes of the whole, across header, tensors and padding.
func TestRanges(t *testing.T) {
	f := open(t, "tiny-moe", 4)
	whole := all(t, f)
	r := rand.New(rand.NewPCG(1, 2))
	check := func(off, n int) {
		p := bytes.Repeat([]byte{0xaa}, n)
		got, err := f.ReadAt(p, int64(off))
		want := whole[min(off, len(whole)):min(off+n, len(whole))]
		if got != len(want) || !bytes.Equal(p[:got], want) || (got < n) != errors.Is(err, io.EOF) {
			t.Fatalf("%d bytes at %d: %d, %v", n, off, got, err)
		}
	}
	for range 2000 {
		check(r.IntN(len(whole)), r.IntN(20_000))
	}
	for _, d := range f.data { // around the ends of every tensor
		for _, at := range []int64{d.offset, d.offset + d.bytes} {
			check(int(at)-3, 7)
			check(int(at), 1)
		}
	}
	check(len(whole)-5, 10)
	check(len(whole), 1)
	check(len(whole)+7, 0)
	if _, err := f.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("a negative offset: no error")
	}
}

// Every tensor has its own weights, the same every time and in every file that has it.
func TestWeightsFollowNames(t *testing.T) {
	long, short := open(t, "tiny-dense", 0), open(t, "tiny-dense", 8)
	if !bytes.Equal(all(t, long), all(t, short)) {
		t.Error("two files of one shape differ")
	}
	short = open(t, "tiny-dense", 4)
	a, b := header2(t, long), header2(t, short)
	seen := map[string]string{}
	for _, x := range b.Tensors() {
		other, ok := a.Tensor(x.Name)
		if !ok {
			t.Fatalf("%s is not in the longer file", x.Name)
		}
		data := make([]byte, x.Bytes)
		if _, err := b.Reader(x).ReadAt(data, 0); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(x.Name, "norm") {
			continue // vectors of a pool may be alike
		}
		if other.Type == x.Type { // the first eighth of the layers has other formats
			more := make([]byte, other.Bytes)
			if _, err := a.Reader(other).ReadAt(more, 0); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(data, more) {
				t.Errorf("%s: other weights in a longer file", x.Name)
			}
		}
		start := string(data[:64])
		if seen[start] != "" {
			t.Errorf("%s and %s begin alike", x.Name, seen[start])
		}
		seen[start] = x.Name
	}
}

func header2(t testing.TB, f *File) *gguf.File {
	t.Helper()
	h, err := gguf.Open(f.Part())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Rows of a matrix differ, its values have the deviation and no offset, and no scale is a subnormal half.
func TestValues(t *testing.T) {
	const cols, std = 1024, 1.0 / 32
	for _, typ := range []quant.Type{
		quant.F32, quant.F16, quant.BF16, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.Q4_K, quant.Q5_K, quant.Q6_K,
	} {
		f, ok := typ.Format()
		if !ok {
			t.Fatal(typ)
		}
		p := newPool(poolKey{typ, normal(1, cols)}, seed)
		values := make([]float32, len(p.blocks)/f.BlockBytes*f.BlockLen)
		f.Decode(values, p.blocks)
		var sum, squares float64
		for _, v := range values {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		n := float64(len(values))
		if mean, dev := sum/n, math.Sqrt(squares/n); math.Abs(mean) > std/50 || dev < 0.95*std || dev > 1.07*std {
			t.Errorf("%v: mean %.3g, deviation %.4g, want 0 and %.4g", typ, mean, dev, std)
		}
		if at, ok := map[quant.Type]int{quant.Q6_K: 208}[typ]; ok || packers[typ].finish != nil {
			for b := p.blocks; len(b) > 0; b = b[f.BlockBytes:] {
				if d := math.Abs(float64(quant.FromF16(uint16(b[at]) | uint16(b[at+1])<<8))); d < 6.2e-5 || d > 1 {
					t.Fatalf("%v: a scale of %g", typ, d)
				}
			}
		}
	}
	f := open(t, "qwen3-0.6b", 1)
	h := header2(t, f)
	x, _ := h.Tensor("token_embd.weight")
	rows, row := map[string]bool{}, make([]byte, x.Bytes/int64(x.Rows()))
	for i := range 5000 {
		if _, err := h.Reader(x).ReadAt(row, int64(i*len(row))); err != nil {
			t.Fatal(err)
		}
		rows[string(row)] = true
	}
	if len(rows) < 4990 {
		t.Errorf("%d different rows of 5000", len(rows))
	}
}

// The numbers of blocks that stand for something narrow: no quantizer writes -128, six-bit scales stay six-bit.
func TestBlocksAreValid(t *testing.T) {
	p := newPool(poolKey{quant.Q8_0, normal(1, 1024)}, seed)
	for i, v := range p.blocks {
		if i%34 >= 2 && v == 0x80 {
			t.Fatal("Q8_0 has a weight of -128")
		}
	}
	p = newPool(poolKey{quant.Q4_K, normal(1, 1024)}, seed)
	for b := p.blocks; len(b) > 0; b = b[144:] {
		for j := range 8 {
			sc, m := b[4+j]&63, b[8+j]&63
			if j >= 4 {
				sc, m = b[8+j]&15|b[j]>>6<<4, b[8+j]>>4|b[4+j]>>6<<4
			}
			if sc != m || sc < 4 || sc > 11 {
				t.Fatalf("sub-block %d: scale %d, offset %d", j, sc, m)
			}
		}
	}
}

func TestScaled(t *testing.T) {
	s, err := Find("qwen3-1.7b")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{-1, 0, 29} {
		if _, err := s.Scaled(n); !errors.Is(err, ErrShape) || !strings.Contains(err.Error(), "1 to 28") {
			t.Errorf("%d layers: %v", n, err)
		}
	}
}

func TestSave(t *testing.T) {
	f := open(t, "tiny-dense", 2)
	path := filepath.Join(t.TempDir(), "m.gguf")
	var last int64
	if err := f.Save(t.Context(), path, func(done, total int64) { last = done }); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, all(t, f)) || last != f.Size() {
		t.Errorf("%d bytes written, %d reported, %v", len(got), last, err)
	}
	if err := f.Save(t.Context(), path, nil); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that is there: %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, got) {
		t.Errorf("the file that was there: %d bytes, %v", len(now), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gone := filepath.Join(t.TempDir(), "gone.gguf")
	if err := f.Save(ctx, gone, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after a cancelled write: %v", err)
	}
	f.size = 1 << 60
	if err := f.Save(t.Context(), gone, nil); !errors.Is(err, ErrSpace) {
		t.Errorf("a file of an exabyte: %v", err)
	}
}

func BenchmarkReadAt(b *testing.B) {
	f := open(b, "qwen3.8-27b", 4)
	p := make([]byte, 4<<20)
	b.SetBytes(int64(len(p)))
	for i := 0; b.Loop(); i++ {
		if _, err := f.ReadAt(p, int64(i)*int64(len(p))%(f.Size()-int64(len(p)))); err != nil {
			b.Fatal(err)
		}
	}
}
