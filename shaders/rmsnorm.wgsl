// out[c][i] = x[c][i] / sqrt(mean_i(x[c][i]^2) + eps) * w[i]
//
// x, out (n, WIDTH), w (WIDTH). A workgroup computes one column: strided partial sums of squares, then a tree.
// Grid: x is the column. Constants: WIDTH, WG (a power of two).
struct Params {
  eps: f32,
}
@group(1) @binding(0) var<storage, read> x: array<f32>;
@group(1) @binding(1) var<storage, read> w: array<f32>;
@group(1) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(3) var<uniform> params: Params;

var<workgroup> red: array<f32, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let base = wid.x * WIDTH;
  var a = 0.0;
  for (var i = t; i < WIDTH; i += WG) {
    let v = x[base + i];
    a = fma(v, v, a);
  }
  red[t] = a;
  workgroupBarrier();
  for (var s = WG / 2u; s > 0u; s = s >> 1u) {
    if (t < s) {
      red[t] = red[t] + red[t + s];
    }
    workgroupBarrier();
  }
  let inv = 1.0 / sqrt(red[0] / f32(WIDTH) + params.eps);
  for (var i = t; i < WIDTH; i += WG) {
    out[base + i] = x[base + i] * inv * w[i];
  }
}
