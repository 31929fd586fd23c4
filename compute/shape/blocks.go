package shape

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"pooled/compute/quant"
)

// poolBytes is the size of a pool: small enough for a processor's cache, large enough that rows of a matrix differ.
const poolBytes = 1 << 20

// pool is random valid blocks of one format and one kind of values.
type pool struct {
	blocks     []byte
	blockBytes int
	run        int // blocks that are copied at once
	starts     uint64
}

// poolKey is what a pool depends on.
type poolKey struct {
	typ    quant.Type
	values values
}

// newPool makes the pool of a key; the same for the same key and seed, on every machine.
func newPool(k poolKey, seed uint64) *pool {
	f, _ := k.typ.Format() // Open has checked the tensors' formats
	p := &pool{blockBytes: f.BlockBytes, run: max(1, runBytes/f.BlockBytes) | 1}
	n := poolBytes / f.BlockBytes
	p.blocks = make([]byte, n*f.BlockBytes)
	p.starts = uint64(n - p.run + 1)
	r := rand.New(rand.NewPCG(seed, uint64(k.typ)<<40^uint64(k.values.kind)<<32^uint64(math.Float32bits(k.values.scale))))
	write := blockOf(k)
	for b := p.blocks; len(b) > 0; b = b[f.BlockBytes:] {
		write(b[:f.BlockBytes], r)
	}
	return p
}

// blockOf returns what fills one block.
func blockOf(k poolKey) func(b []byte, r *rand.Rand) {
	if packed, ok := packers[k.typ]; ok {
		return func(b []byte, r *rand.Rand) {
			random(b, r)
			packed.finish(b, r, float32(k.values.scale/packed.level))
		}
	}
	return func(b []byte, r *rand.Rand) {
		v := k.values.draw(r)
		switch k.typ {
		case quant.F16:
			binary.LittleEndian.PutUint16(b, quant.ToF16(v))
		case quant.BF16:
			binary.LittleEndian.PutUint16(b, uint16(math.Float32bits(v)>>16))
		default:
			binary.LittleEndian.PutUint32(b, math.Float32bits(v))
		}
	}
}

// draw is one value. Sums are of integers, so that no machine rounds them in another way.
func (v values) draw(r *rand.Rand) float32 {
	switch v.kind {
	case nearValues:
		return float32(v.scale * (float32(900+r.IntN(201)) / 1000))
	case decays:
		return -float32(math.Exp(float64(r.IntN(3001)-2000) / 1000))
	}
	const deviation = 37837.2 // of the sum of four: 65536 / sqrt(3)
	sum := int(r.Uint32N(1<<16)) + int(r.Uint32N(1<<16)) + int(r.Uint32N(1<<16)) + int(r.Uint32N(1<<16)) - 2<<16
	return float32(float32(sum) * float32(v.scale/deviation))
}

// random fills b.
func random(b []byte, r *rand.Rand) {
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, r.Uint64())
	}
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

// packer turns a block of random bytes into a valid one whose values have the deviation unit*level. Scales vary by a
// quarter, and either their sign or an offset centres the values.
type packer struct {
	level  float32
	finish func(b []byte, r *rand.Rand, unit float32)
}

// The levels are root mean squares: of q-8 for q from 0 to 15 it is 4.64, of q-7.5 4.61, and so on. Six- and eight-bit
// scales are 4 to 11, root mean square 7.84: real files have larger ones with smaller halves, which some devices flush.
var packers = map[quant.Type]packer{
	quant.Q4_0: {4.64, func(b []byte, r *rand.Rand, unit float32) { putSigned(b, r, unit) }},
	quant.Q4_1: {4.61, func(b []byte, r *rand.Rand, unit float32) { putPair(b, r, unit, -7.5) }},
	quant.Q5_0: {9.25, func(b []byte, r *rand.Rand, unit float32) { putSigned(b, r, unit) }},
	quant.Q5_1: {9.23, func(b []byte, r *rand.Rand, unit float32) { putPair(b, r, unit, -15.5) }},
	quant.Q8_0: {73.6, finishQ8_0},
	quant.Q4_K: {7.84 * 4.61, func(b []byte, r *rand.Rand, unit float32) {
		putPair(b, r, unit, 7.5)
		putSubScales(b[4:16], r)
	}},
	quant.Q5_K: {7.84 * 9.23, func(b []byte, r *rand.Rand, unit float32) {
		putPair(b, r, unit, 15.5)
		putSubScales(b[4:16], r)
	}},
	quant.Q6_K: {7.84 * 18.5, finishQ6_K},
}

// vary is unit, a quarter more or less.
func vary(r *rand.Rand, unit float32) float32 {
	return float32(unit * (float32(750+r.IntN(501)) / 1000))
}

// putSigned writes a scale of either sign.
func putSigned(b []byte, r *rand.Rand, unit float32) {
	d := vary(r, unit)
	if r.Uint32()&1 == 1 {
		d = -d
	}
	binary.LittleEndian.PutUint16(b, quant.ToF16(d))
}

// putPair writes a scale and the offset that is times it.
func putPair(b []byte, r *rand.Rand, unit, times float32) {
	d := vary(r, unit)
	binary.LittleEndian.PutUint16(b, quant.ToF16(d))
	binary.LittleEndian.PutUint16(b[2:], quant.ToF16(float32(d*times)))
}

// finishQ8_0 leaves out -128, which no quantizer writes.
func finishQ8_0(b []byte, r *rand.Rand, unit float32) {
	binary.LittleEndian.PutUint16(b, quant.ToF16(vary(r, unit)))
	for i, v := range b[2:34] {
		if v == 0x80 {
			b[2+i] = 0x81
		}
	}
}

// putSubScales writes eight six-bit scales and the same eight as offsets, each 4 to 11 (spec engine.md 1.4).
func putSubScales(s []byte, r *rand.Rand) {
	bits := r.Uint64()
	for j := range 4 {
		low, high := byte(4+bits>>(6*j)&7), byte(4+bits>>(6*j+3)&7)
		s[j], s[j+4], s[j+8] = low, low, high|high<<4
	}
}

func finishQ6_K(b []byte, r *rand.Rand, unit float32) {
	for i, v := range b[192:208] {
		sc := int8(4 + v&7)
		if v&8 != 0 {
			sc = -sc
		}
		b[192+i] = byte(sc)
	}
	binary.LittleEndian.PutUint16(b[208:], quant.ToF16(vary(r, unit)))
}
