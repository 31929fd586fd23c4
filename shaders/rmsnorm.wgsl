// out[c][i] = x[c][i] / sqrt(mean_i(x[c][i]^2) + eps) * w[i]
//
// x, out (n, WIDTH), w (WIDTH). A workgroup computes one column: strided partial sums of squares, then sum_all.
// Grid: x is the column. Constants: WIDTH, WG.
struct Params {
  eps: f32,
}
@group(1) @binding(0) var<storage, read> x: array<f32>;
@group(1) @binding(1) var<storage, read> w: array<f32>;
@group(1) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let base = wid.x * WIDTH;
  var a = 0.0;
  for (var i = t; i < WIDTH; i += WG) {
    let v = x[base + i];
    a = fma(v, v, a);
  }
  let inv = 1.0 / sqrt(sum_all(t, a) / f32(WIDTH) + params.eps);
  for (var i = t; i < WIDTH; i += WG) {
    out[base + i] = x[base + i] * inv * w[i];
  }
}
