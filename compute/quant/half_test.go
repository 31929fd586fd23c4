package quant

import (
	"math"
	"math/big"
	"testing"
)

func TestFromF16Values(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name string
		bits uint16
		want float64
	}{
		{"zero", 0x0000, 0},
		{"one", 0x3c00, 1},
		{"minus two", 0xc000, -2},
		{"largest", 0x7bff, 65504},
		{"smallest normal", 0x0400, 0x1p-14},
		{"largest subnormal", 0x03ff, 1023 * 0x1p-24},
		{"middle subnormal", 0x0200, 0x1p-15},
		{"smallest subnormal", 0x0001, 0x1p-24},
		{"smallest negative subnormal", 0x8001, -0x1p-24},
		{"a third", 0x3555, 0.333251953125},
		{"infinity", 0x7c00, inf},
		{"minus infinity", 0xfc00, -inf},
	} {
		if got := float64(FromF16(c.bits)); got != c.want {
			t.Errorf("%s: FromF16(%#04x) = %v, want %v", c.name, c.bits, got, c.want)
		}
	}
	if got := math.Float32bits(FromF16(0x8000)); got != 0x80000000 {
		t.Errorf("negative zero: bits %#x, want 0x80000000", got)
	}
	if got := FromF16(0x7e00); got == got {
		t.Errorf("NaN: got %v", got)
	}
}

func TestToF16Rounding(t *testing.T) {
	for _, c := range []struct {
		name string
		f    float64
		want uint16
	}{
		{"one", 1, 0x3c00},
		{"tie to even below", 1 + 0x1p-11, 0x3c00},
		{"tie to even above", 1 + 3*0x1p-11, 0x3c02},
		{"just over a tie", 1 + 0x1p-11 + 0x1p-23, 0x3c01},
		{"just under a tie", 1 + 0x1p-11 - 0x1p-23, 0x3c00},
		{"carry into the exponent", 2 - 0x1p-12, 0x4000},
		{"largest", 65504, 0x7bff},
		{"last value before infinity", 65519.996, 0x7bff},
		{"tie at the top goes to infinity", 65520, 0x7c00},
		{"huge", 1e38, 0x7c00},
		{"minus huge", -1e38, 0xfc00},
		{"infinity", math.Inf(1), 0x7c00},
		{"rounds up to the smallest normal", 0x1p-14 - 0x1p-26, 0x0400},
		{"largest subnormal", 1023 * 0x1p-24, 0x03ff},
		{"subnormal tie to even", 2.5 * 0x1p-24, 0x0002},
		{"subnormal tie to even, up", 3.5 * 0x1p-24, 0x0004},
		{"smallest subnormal", 0x1p-24, 0x0001},
		{"half the smallest goes to zero", 0x1p-25, 0x0000},
		{"more than half the smallest", 0x1p-25 + 0x1p-40, 0x0001},
		{"minus half the smallest", -0x1p-25, 0x8000},
		{"single subnormal", 1e-42, 0x0000},
		{"minus zero", math.Copysign(0, -1), 0x8000},
	} {
		if got := ToF16(float32(c.f)); got != c.want {
			t.Errorf("%s: ToF16(%v) = %#04x, want %#04x", c.name, c.f, got, c.want)
		}
	}
	for _, b := range []uint32{0x7f800001, 0x7fc00000, 0xff812345, 0x7fffffff} {
		got := ToF16(math.Float32frombits(b))
		if got&0x7c00 != 0x7c00 || got&0x3ff == 0 || uint32(got&0x8000)<<16 != b&0x80000000 {
			t.Errorf("NaN %#x became %#04x", b, got)
		}
	}
}

// Every half survives the way to single precision and back, and the bulk functions agree with the single ones.
func TestAllHalves(t *testing.T) {
	const n = 1 << 16
	src := make([]byte, 2*n)
	for i := range n {
		src[2*i], src[2*i+1] = byte(i), byte(i>>8)
	}
	dst := make([]float32, n)
	F16Slice(dst, src)
	back := make([]byte, 2*n)
	PutF16Slice(back, dst)
	for i := range n {
		h := uint16(i)
		single := FromF16(h)
		if got, want := math.Float32bits(dst[i]), math.Float32bits(single); got != want {
			t.Fatalf("F16Slice of %#04x: %#x, want %#x", h, got, want)
		}
		if got := ToF16(single); got != h {
			t.Fatalf("%#04x came back as %#04x", h, got)
		}
		if got := uint16(back[2*i]) | uint16(back[2*i+1])<<8; got != h {
			t.Fatalf("PutF16Slice: %#04x came back as %#04x", h, got)
		}
		if exp := h >> 10 & 31; exp != 31 {
			// sign * man * 2^e in arbitrary precision: an independent way to the same number.
			man, e := int64(h&0x3ff), -24
			if exp > 0 {
				man, e = man|0x400, int(exp)-25
			}
			if h>>15 == 1 {
				man = -man
			}
			want, _ := new(big.Float).SetMantExp(new(big.Float).SetInt64(man), e).Float64()
			if float64(single) != want {
				t.Fatalf("FromF16(%#04x) = %v, want %v", h, single, want)
			}
		}
	}
}

// Between two neighbouring halves the nearer one is chosen, and the even one in the middle.
func TestToF16NearestEverywhere(t *testing.T) {
	put := make([]byte, 2)
	check := func(f float32, want uint16) {
		t.Helper()
		if got := ToF16(f); got != want {
			t.Fatalf("ToF16(%v) = %#04x, want %#04x", f, got, want)
		}
		PutF16Slice(put, []float32{f})
		if got := uint16(put[0]) | uint16(put[1])<<8; got != want {
			t.Fatalf("PutF16Slice(%v) = %#04x, want %#04x", f, got, want)
		}
	}
	for h := uint16(0); h < 0x7bff; h++ {
		a, b := FromF16(h), FromF16(h+1)
		mid := a + (b-a)/2 // exact: one more bit than a half has
		even := h + h&1
		check(mid, even)
		check(-mid, even|0x8000)
		check(math.Nextafter32(mid, a), h)
		check(math.Nextafter32(mid, b), h+1)
	}
}

func BenchmarkF16Slice(b *testing.B) {
	src, dst := make([]byte, 1<<17), make([]float32, 1<<16)
	for i := range src {
		src[i] = byte(i * 7)
	}
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		F16Slice(dst, src)
	}
}

func BenchmarkPutF16Slice(b *testing.B) {
	src, dst := make([]float32, 1<<16), make([]byte, 1<<17)
	for i := range src {
		src[i] = float32(i-1<<15) / 321
	}
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		PutF16Slice(dst, src)
	}
}
