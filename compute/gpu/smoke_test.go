package gpu

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
	"pooled/compute/quant"
)

// f32Bytes is a tensor of F32 values in file order.
func f32Bytes(v ...float32) *bytes.Reader {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return bytes.NewReader(b)
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestMatVecByHand(t *testing.T) {
	d := openTest(t, Options{})
	ctx := context.Background()
	t.Logf("%+v", d.Info())
	w := must[op.Weight](t)(d.Load(ctx, op.WeightSpec{Name: "w", Type: quant.F32, Rows: 2, Cols: 3, Src: f32Bytes(1, 2, 3, 4, 5, 6)}))
	x := must[op.Buffer](t)(d.Buffer("x", 3, op.MaxCols))
	y := must[op.Buffer](t)(d.Buffer("y", 2, op.MaxCols))
	b := d.Program("by hand", op.MaxCols)
	b.Input(x)
	b.MatVec(y, w, x)
	b.Output(y)
	p := must[op.Program](t)(b.Build())
	out := op.Out{Hidden: make([]float32, 4)}
	if err := p.Run(ctx, op.Frame{N: 2}, []float32{1, 1, 1, 1, 0, -1}, &out); err != nil {
		t.Fatal(err)
	}
	want := [4]float32{6, 15, -2, -2}
	if [4]float32(out.Hidden) != want {
		t.Errorf("got %v, want %v", out.Hidden, want)
	}
}

func TestGainsWide(t *testing.T) {
	for _, c := range []struct {
		backend string
		kind    wgpu.AdapterType
		want    bool
	}{
		{"Vulkan", wgpu.AdapterTypeDiscreteGPU, true}, {"D3D12", wgpu.AdapterTypeIntegratedGPU, true},
		{"Vulkan", wgpu.AdapterTypeCPU, false}, {"Metal", wgpu.AdapterTypeIntegratedGPU, false},
	} {
		if got := gainsWide(c.backend, c.kind); got != c.want {
			t.Errorf("%s, %v: %v", c.backend, c.kind, got)
		}
	}
}
