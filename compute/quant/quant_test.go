package quant

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

var allTypes = []Type{F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K}

// put is a piece of a hand-made block: bytes at an offset. bytesAt builds the block from pieces.
type put struct {
	at    int
	bytes []byte
}

func bytesAt(size int, puts []put) []byte {
	b := make([]byte, size)
	for _, p := range puts {
		copy(b[p.at:], p.bytes)
	}
	return b
}

// Blocks made by hand from the layout table of spec engine.md 1.4, with values worked out on paper. Halves used:
// 3c00 = 1, 3800 = 0.5, 4000 = 2, b800 = -0.5, c000 = -2.
func TestHandMadeBlocks(t *testing.T) {
	for _, c := range []struct {
		name string
		typ  Type
		puts []put
		rest float32         // the value of every weight not named in want
		want map[int]float32 // weight -> value
	}{
		{"F32 in file order", F32, []put{{0, []byte{0, 0, 0xc0, 0x3f}}}, 0, map[int]float32{0: 1.5}},
		{"F16 in file order", F16, []put{{0, []byte{0x00, 0xb8}}}, 0, map[int]float32{0: -0.5}},
		{"BF16 is the upper half", BF16, []put{{0, []byte{0xc0, 0x3f}}}, 0, map[int]float32{0: 1.5}},

		{"Q4_0 nibbles", Q4_0, []put{{0, []byte{0x00, 0x38}}, {2, []byte{0x80}}, {5, []byte{0x9f}}, {17, []byte{0x1a}}},
			-4, map[int]float32{0: -4, 16: 0, 3: 3.5, 19: 0.5, 15: 1, 31: -3.5}},
		{"Q4_1 offset", Q4_1, []put{{0, []byte{0x00, 0x40, 0x00, 0xb8}}, {4, []byte{0x21}}, {19, []byte{0xf0}}},
			-0.5, map[int]float32{0: 1.5, 16: 3.5, 31: 29.5}},
		{"Q5_0 fifth bits", Q5_0, []put{{0, []byte{0x00, 0x3c}}, {2, []byte{0x01, 0x80, 0x02, 0x80}}, {6, []byte{0x01, 0x30}}},
			-16, map[int]float32{0: 1, 15: 0, 16: -16, 17: 3, 31: 0}},
		{"Q5_1 fifth bits and offset", Q5_1, []put{{0, []byte{0x00, 0x3c, 0x00, 0x40}}, {4, []byte{0x00, 0x01, 0x01, 0x00}}, {8, []byte{0xf0}}, {16, []byte{0x05}}},
			2, map[int]float32{0: 2, 16: 33, 8: 23, 24: 2}},
		{"Q8_0 signed", Q8_0, []put{{0, []byte{0x00, 0x38}}, {2, []byte{0x7f, 0x80, 0xff}}, {33, []byte{0x03}}},
			0, map[int]float32{0: 63.5, 1: -64, 2: -0.5, 31: 1.5}},

		// d 1, dmin 0.5. Scale bytes: s0 = c1 -> sc0 1, sc4 upper bits 3; s4 = 82 -> m0 2, m4 upper bits 2; s8 = 5a ->
		// sc4 = 10 + 48 = 58, m4 = 5 + 32 = 37. s3 = 3f -> sc3 63; s7 = 7f -> m3 63, m7 upper bits 1; s11 = 21 -> sc7 1,
		// m7 = 2 + 16 = 18. Sub-block 0 starts at -1, 3 at -31.5, 4 at -18.5, 7 at -9.
		{"Q4_K scales and nibbles", Q4_K, []put{
			{0, []byte{0x00, 0x3c, 0x00, 0x38}},
			{4, []byte{0xc1, 0, 0, 0x3f, 0x82, 0, 0, 0x7f, 0x5a, 0, 0, 0x21}},
			{16, []byte{0x0f}}, {47, []byte{0x05}}, // sub-block 0, weights 0 and 31
			{48 + 2, []byte{0x20}},  // sub-block 3, weight 2
			{80 + 31, []byte{0x01}}, // sub-block 4, weight 31
			{143, []byte{0xf0}},     // sub-block 7, weight 31
		}, 0, merge(
			fill(0, 32, -1), fill(96, 128, -31.5), fill(128, 160, -18.5), fill(224, 256, -9),
			map[int]float32{0: 14, 31: 4, 98: 94.5, 159: 39.5, 255: 6})},
		// The same scales; h byte l bit j adds 16 to weight l of sub-block j: +16 in 0, +1008 in 3, +928 in 4.
		{"Q5_K fifth bits", Q5_K, []put{
			{0, []byte{0x00, 0x3c, 0x00, 0x38}},
			{4, []byte{0xc1, 0, 0, 0x3f, 0x82, 0, 0, 0x7f, 0x5a, 0, 0, 0x21}},
			{16, []byte{0x01, 0x08, 0x10}}, {47, []byte{0x80}},
			{48, []byte{0x0f}}, {48 + 32 + 1, []byte{0x10}}, {48 + 64 + 2, []byte{0x02}}, {175, []byte{0x30}},
		}, 0, merge(
			fill(0, 32, -1), fill(96, 128, -31.5), fill(128, 160, -18.5), fill(224, 256, -9),
			map[int]float32{0: 30, 97: 17*63 - 31.5, 130: 18*58 - 18.5, 255: 19 - 9})},

		// d 0.5 at the end; scales 2, -1, 0 ... Half 0: k 0 l 0 uses sc 0, l 16 sc 1; k 2 l 5 sc 4; half 1 k 3 l 31 sc 15.
		{"Q6_K halves, pairs and scales", Q6_K, []put{
			{0, []byte{0x0f}}, {5, []byte{0xa0}}, {16, []byte{0x01}}, // half 0: low nibbles k 0, upper nibbles k 2
			{64 + 63, []byte{0x70}}, // half 1, ql[63]: k 3, l 31
			{128, []byte{0x03}}, {128 + 5, []byte{0x10}}, {160 + 31, []byte{0x80}},
			{192, []byte{2, 0xff, 0, 0, 4}}, {192 + 15, []byte{0xfe}},
			{208, []byte{0x00, 0x38}},
		}, 0, merge(
			fill(0, 16, -32), fill(16, 32, 16), fill(64, 80, -64), fill(240, 256, 32),
			map[int]float32{
				0:   31,   // q 15 + 3*16 = 63; 0.5 * 2 * 31
				16:  15.5, // q 1; 0.5 * -1 * -31
				69:  -12,  // q 10 + 16 = 26; 0.5 * 4 * -6
				255: -7,   // q 7 + 2*16 = 39; 0.5 * -2 * 7
			})},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, ok := c.typ.Format()
			if !ok {
				t.Fatalf("no format %v", c.typ)
			}
			got := make([]float32, f.BlockLen)
			f.Decode(got, bytesAt(f.BlockBytes, c.puts))
			for i, v := range got {
				want, named := c.want[i]
				if !named {
					want = c.rest
				}
				if v != want {
					t.Errorf("weight %d = %v, want %v", i, v, want)
				}
			}
		})
	}
}

func fill(from, to int, v float32) map[int]float32 {
	m := map[int]float32{}
	for i := from; i < to; i++ {
		m[i] = v
	}
	return m
}

func merge(ms ...map[int]float32) map[int]float32 {
	all := map[int]float32{}
	for _, m := range ms {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// weightOf computes one weight of a block straight from the table of spec engine.md 1.4, one at a time.
func weightOf(typ Type, b []byte, e int) float32 {
	h := func(at int) float32 { return FromF16(binary.LittleEndian.Uint16(b[at:])) }
	nibble := func(at int) int { return int(b[at+e%16]>>(4*(e/16))) & 15 }
	fifth := func(at int) int { return int(binary.LittleEndian.Uint32(b[at:])>>e) & 1 << 4 }
	switch typ {
	case F32:
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	case F16:
		return h(0)
	case BF16:
		return math.Float32frombits(uint32(b[0])<<16 | uint32(b[1])<<24)
	case Q4_0:
		return h(0) * float32(nibble(2)-8)
	case Q4_1:
		return float32(h(0)*float32(nibble(4))) + h(2)
	case Q5_0:
		return h(0) * float32(nibble(6)+fifth(2)-16)
	case Q5_1:
		return float32(h(0)*float32(nibble(8)+fifth(4))) + h(2)
	case Q8_0:
		return h(0) * float32(int8(b[2+e]))
	case Q4_K, Q5_K:
		j, l, s := e/32, e%32, b[4:16]
		var sc, m byte
		if j < 4 {
			sc, m = s[j]&63, s[j+4]&63
		} else {
			sc, m = (s[j+4]&15)|(s[j-4]>>6)<<4, (s[j+4]>>4)|(s[j]>>6)<<4
		}
		nibbles := 16
		var high int
		if typ == Q5_K {
			nibbles, high = 48, int(b[16+l]>>j)&1*16
		}
		q := int(b[nibbles+32*(j/2)+l]>>(4*(j%2)))&15 + high
		return float32(float32(h(0)*float32(sc))*float32(q)) - float32(h(2)*float32(m))
	case Q6_K:
		half, k, l := e/128, e%128/32, e%32
		low := b[64*half+l+32*(k&1)] >> (4 * (k / 2)) & 15
		q := int(low) | int(b[128+32*half+l]>>(2*k))&3<<4
		return float32(h(208)*float32(int8(b[192+8*half+2*k+l/16]))) * float32(q-32)
	}
	return float32(math.NaN())
}

// Random blocks, several at a time: every weight equals the table's formula bit for bit, and nothing past the end of
// either slice is touched.
func TestDecodeAgainstTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, typ := range allTypes {
		t.Run(typ.String(), func(t *testing.T) {
			f, _ := typ.Format()
			const blocks = 37
			src := make([]byte, blocks*f.BlockBytes)
			for i := range src {
				src[i] = byte(rng.Uint32())
			}
			dst := make([]float32, blocks*f.BlockLen+1)
			dst[len(dst)-1] = 42
			f.Decode(dst[:blocks*f.BlockLen], src)
			for i := range blocks * f.BlockLen {
				want := weightOf(typ, src[i/f.BlockLen*f.BlockBytes:], i%f.BlockLen)
				if math.Float32bits(dst[i]) != math.Float32bits(want) && (dst[i] == dst[i] || want == want) {
					t.Fatalf("weight %d = %v, want %v", i, dst[i], want)
				}
			}
			if dst[len(dst)-1] != 42 {
				t.Error("wrote past the last weight")
			}
			if n := testing.AllocsPerRun(10, func() { f.Decode(dst[:f.BlockLen], src) }); n != 0 {
				t.Errorf("%v allocations per call", n)
			}
		})
	}
}

func TestFormatTable(t *testing.T) {
	for _, c := range []struct {
		typ    Type
		number uint32
		name   string
		length int
		bytes  int
	}{
		{F32, 0, "F32", 1, 4}, {F16, 1, "F16", 1, 2}, {BF16, 30, "BF16", 1, 2},
		{Q4_0, 2, "Q4_0", 32, 18}, {Q4_1, 3, "Q4_1", 32, 20}, {Q5_0, 6, "Q5_0", 32, 22}, {Q5_1, 7, "Q5_1", 32, 24},
		{Q8_0, 8, "Q8_0", 32, 34}, {Q4_K, 12, "Q4_K", 256, 144}, {Q5_K, 13, "Q5_K", 256, 176}, {Q6_K, 14, "Q6_K", 256, 210},
	} {
		f, ok := c.typ.Format()
		if !ok || uint32(c.typ) != c.number || f.Name != c.name || f.BlockLen != c.length || f.BlockBytes != c.bytes {
			t.Errorf("%s: got %v %q %d/%d", c.name, c.typ, f.Name, f.BlockBytes, f.BlockLen)
		}
		if c.typ.String() != c.name {
			t.Errorf("String of %d = %q, want %q", c.number, c.typ, c.name)
		}
	}
	if len(formats) != len(allTypes) {
		t.Errorf("%d formats, want %d", len(formats), len(allTypes))
	}
	if got := Type(99).String(); got != "type 99" {
		t.Errorf("String of an unknown type = %q", got)
	}
}

func TestBytes(t *testing.T) {
	const huge = math.MaxInt
	for _, c := range []struct {
		typ        Type
		cols, rows int
		want       int64
		err        error
	}{
		{F32, 192, 1, 768, nil},
		{Q8_0, 192, 576, 117504, nil}, // 6 blocks of 34 bytes, 576 rows
		{Q6_K, 256, 3, 630, nil},
		{Q4_0, 64, 0, 0, nil},
		{BF16, 0, 5, 0, nil},
		{Q4_0, 48, 2, 0, ErrShape},
		{Q4_K, 128, 2, 0, ErrShape},
		{Type(4), 32, 1, 0, ErrType},
		{F32, -1, 1, 0, ErrShape},
		{F32, 1, -1, 0, ErrShape},
		{F32, huge, 1, 0, ErrShape},
		{Q8_0, huge - huge%32, 1, 0, ErrShape},
		{F16, huge/4 - 1, 3, 0, ErrShape},
		{F32, 1, huge, 0, ErrShape},
	} {
		t.Run(fmt.Sprint(c.typ, c.cols, "x", c.rows), func(t *testing.T) {
			got, err := Bytes(c.typ, c.cols, c.rows)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %d, %v, want %d, %v", got, err, c.want, c.err)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, typ := range allTypes {
		b.Run(typ.String(), func(b *testing.B) {
			f, _ := typ.Format()
			blocks := 1 << 16 / f.BlockLen
			src, dst := make([]byte, blocks*f.BlockBytes), make([]float32, blocks*f.BlockLen)
			for i := range src {
				src[i] = byte(i*31) & 0x3b // finite scales
			}
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				f.Decode(dst, src)
			}
			b.ReportMetric(float64(len(dst))*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gweights/s")
		})
	}
}
