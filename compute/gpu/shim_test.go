package gpu

import (
	"context"
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
)

// The shim reads handles out of the binding's structs. This fails when a new version of the binding lays them out
// differently (spec engine.md 0.4).
func TestShimLayout(t *testing.T) {
	cases := []struct {
		value  any
		fields []string
	}{
		{wgpu.Instance{}, []string{"ref"}},
		{wgpu.Adapter{}, []string{"ref"}},
		{wgpu.Device{}, []string{"ref"}},
		{wgpu.BindGroup{}, []string{"ref"}},
		{wgpu.ComputePipeline{}, []string{"ref"}},
		{wgpu.Buffer{}, []string{"deviceRef", "ref"}},
		{wgpu.Queue{}, []string{"deviceRef", "ref"}},
	}
	for _, c := range cases {
		typ := reflect.TypeOf(c.value)
		if got, want := typ.Size(), uintptr(len(c.fields))*unsafe.Sizeof(uintptr(0)); got != want {
			t.Errorf("%v: %d bytes, want %d", typ, got, want)
			continue
		}
		for i, name := range c.fields {
			if f := typ.Field(i); f.Name != name || f.Type.Kind() != reflect.Pointer {
				t.Errorf("%v: field %d is %s %v, want pointer %s", typ, i, f.Name, f.Type, name)
			}
		}
	}
}

// A call through the shim and the same call through the binding must agree.
func TestShimAgreesWithTheBinding(t *testing.T) {
	d := openTest(t, Options{})
	err := d.do(func() error {
		for _, size := range []int64{4, 256, 12_345 * 4} {
			b, err := d.createBuffer("layout", size, storage)
			if err != nil {
				return err
			}
			if got, want := bufferSize(b), b.GetSize(); got != want || got != uint64(size) {
				t.Errorf("size through C %d, through Go %d, want %d", got, want, size)
			}
			d.freeBuffer(b)
		}
		got, want := d.limits, d.dev.GetLimits().Limits
		pairs := map[string][2]uint64{
			"first field":    {uint64(got.max_texture_dimension_1d), uint64(want.MaxTextureDimension1D)},
			"binding size":   {uint64(got.max_storage_binding), want.MaxStorageBufferBindingSize},
			"buffer size":    {uint64(got.max_buffer_size), want.MaxBufferSize},
			"storage":        {uint64(got.max_workgroup_storage), uint64(want.MaxComputeWorkgroupStorageSize)},
			"last field":     {uint64(got.max_workgroups), uint64(want.MaxComputeWorkgroupsPerDimension)},
			"uniform layout": {uint64(got.min_uniform_alignment), uint64(want.MinUniformBufferOffsetAlignment)},
		}
		for name, p := range pairs {
			if p[0] != p[1] || p[0] == 0 {
				t.Errorf("%s: through C %d, through Go %d", name, p[0], p[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// With the binding's own MapAsync this ends in "misuse of an invalid Handle" (spec engine.md 0.3 T4).
func TestReadbackSurvivesGarbageCollection(t *testing.T) {
	d := openTest(t, Options{})
	p, in, out := identity(t, d, 33)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		var keep [][]byte
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
				for range 100 {
					keep = append(keep, make([]byte, 16))
				}
				keep = keep[:0]
			}
		}
	}()
	for i := range 200 {
		in[0] = float32(i)
		if err := p.Run(context.Background(), op.Frame{N: 1}, in, out); err != nil {
			t.Fatal(err)
		}
		if got, want := out.Hidden[0], float32(i); got != want {
			t.Fatalf("run %d: got %v, want %v", i, got, want)
		}
	}
	close(stop)
	<-stopped
}

// identity is a small program: out = x, one column of the given width.
func identity(t testing.TB, d *Device, width int) (op.Program, []float32, *op.Out) {
	t.Helper()
	eye := make([]float32, width*width)
	for i := range width {
		eye[i*width+i] = 1
	}
	w := must[op.Weight](t)(d.Load(context.Background(), op.WeightSpec{Name: "eye", Rows: width, Cols: width, Src: f32Bytes(eye...)}))
	x, y := must[op.Buffer](t)(d.Buffer("x", width, op.MaxCols)), must[op.Buffer](t)(d.Buffer("y", width, op.MaxCols))
	b := d.Program("identity", op.MaxCols)
	b.Input(x)
	b.MatVec(y, w, x)
	b.Output(y)
	return must[op.Program](t)(b.Build()), make([]float32, width), &op.Out{Hidden: make([]float32, width)}
}
