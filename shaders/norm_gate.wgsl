// out[c][h][i] = x[c][h][i] / sqrt(mean_i(x[c][h][i]^2) + eps) * w[i] * z[c][h][i] / (1 + exp(-z[c][h][i]))
//
// x, z, out (n, HEADS, HD), w (HD); out may be x. A workgroup computes one head of one column. Grid: x is the head, y the column.
// Constants: HEADS, HD, WG.
struct Params {
  eps: f32,
}
@group(1) @binding(0) var<storage, read> w: array<f32>;
@group(1) @binding(1) var<storage, read> z: array<f32>;
@group(1) @binding(2) var<storage, read_write> x: array<f32>;
@group(1) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let base = (wid.y * HEADS + wid.x) * HD;
  var a = 0.0;
  for (var i = t; i < HD; i += WG) {
    let v = x[base + i];
    a = fma(v, v, a);
  }
  let inv = 1.0 / sqrt(sum_all(t, a) / f32(HD) + params.eps);
  for (var i = t; i < HD; i += WG) {
    let g = z[base + i];
    out[base + i] = x[base + i] * inv * w[i] * (g / (1.0 + exp(-g)));
  }
}
