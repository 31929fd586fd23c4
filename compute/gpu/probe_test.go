package gpu

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"testing"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// A device that flushes one subnormal half, or rounds one, is not taken for exact.
func TestExactHalves(t *testing.T) {
	all := func() []byte {
		var b []byte
		for i := range 1 << 16 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(quant.FromF16(uint16(i))))
		}
		return b
	}
	if !exactHalves(all()) {
		t.Error("exact halves are refused")
	}
	for _, i := range []int{1, 0x3ff, 0x8001, 0x3c00, 0x7bff} {
		b := all()
		binary.LittleEndian.PutUint32(b[4*i:], 0)
		if exactHalves(b) {
			t.Errorf("half %04x read as zero is taken for exact", i)
		}
	}
	b := all()
	binary.LittleEndian.PutUint32(b[4*0x7c01:], 7)
	if !exactHalves(b) {
		t.Error("a NaN's payload counts")
	}
}

// Both ways to take halves apart give the same bits.
func TestHalvesByIntegers(t *testing.T) {
	d := openTest(t, Options{})
	const rows, cols = 65536 / 8, 8
	var src []byte
	for i := range rows * cols {
		h := uint16(i)
		if h&0x7c00 == 0x7c00 {
			h = 0
		}
		src = binary.LittleEndian.AppendUint16(src, h)
	}
	w := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "w", Type: quant.F16, Rows: rows, Cols: cols, Src: bytes.NewReader(src)}))
	out := must[op.Buffer](t)(d.Buffer("out", cols, op.MaxCols))
	for _, fast := range []uint32{d.fastHalf, 0} {
		d.fastHalf = fast
		b := d.Program("p", op.MaxCols)
		b.Embed(out, w)
		b.Output(out)
		p := must[op.Program](t)(b.Build())
		for _, row := range []int32{0, 1, 127, 128, 900, 4096, 4097, 7000, 8191} {
			o := op.Out{Hidden: make([]float32, cols)}
			if err := p.Run(context.Background(), op.Frame{N: 1, HeadFrom: 1, Tokens: []int32{row}}, nil, &o); err != nil {
				t.Fatal(err)
			}
			for i, v := range o.Hidden {
				want := quant.FromF16(binary.LittleEndian.Uint16(src[2*(int(row)*cols+i):]))
				if math.Float32bits(v) != math.Float32bits(want) {
					t.Errorf("fast %d: half %d: got %v, want %v", fast, int(row)*cols+i, v, want)
				}
			}
		}
	}
}
