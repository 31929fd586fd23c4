package shaders

import "testing"

func TestWorkgroupMemory(t *testing.T) {
	const head = "const A: u32 = 3u;\nconst B: u32 = (A + 1u) * 4u / 2u % 5u; // 3\nstruct S {\n  v: array<array<vec4<f32>, 2>, B>,\n  pad: vec4<f32>,\n}\n"
	for text, want := range map[string]int64{
		"":                                 0,
		"var<workgroup> x: f32;":           16,
		"var<workgroup> x: array<f32, A>;": 16,
		"var<workgroup> x: array<vec2<u32>, 2u * B>; // two\nvar<workgroup> y: array<u32, 256>;": 48 + 1024,
		"var<workgroup> x: array<S, A>;":               3 * (96 + 16),
		"// var<workgroup> x: array<vec4<f32>, 1000>;": 0,
	} {
		if got, err := WorkgroupMemory(head + text); got != want || err != nil {
			t.Errorf("%s: got %d, %v; want %d", text, got, err, want)
		}
	}
	for _, bad := range []string{"array<f32, C>", "array<f32, A / 0u>", "array<f32>", "mat4x4<f32>", "array<f32, A & 1u>"} {
		if got, err := WorkgroupMemory(head + "var<workgroup> x: " + bad + ";"); err == nil {
			t.Errorf("%s: got %d, want an error", bad, got)
		}
	}
}
