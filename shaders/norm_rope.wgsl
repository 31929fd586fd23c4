// x[c][h] = rotate(x[c][h] / sqrt(mean(x[c][h]^2) + eps) * w, pos + c), in place
//   rotate: (a, b) at (i, i + NROT/2) -> (a cos - b sin, b cos + a sin), i < NROT/2; the values from NROT up stay
//
// x (n, HEADS, HD), w (HD), table (positions, NROT/2) of (cos, sin) from the CPU in float64.
// A workgroup computes one head of one column. Grid: x is the head, y the column.
// Constants: HEADS, HD, NROT (even, at most HD), NORM (0 leaves out the norm; w is then not read), WG.
struct Params {
  eps: f32,
}
@group(1) @binding(0) var<storage, read> w: array<f32>;
@group(1) @binding(1) var<storage, read> table: array<vec2<f32>>;
@group(1) @binding(2) var<storage, read_write> x: array<f32>;
@group(1) @binding(3) var<uniform> params: Params;

const PAIRS: u32 = NROT / 2u;
// normed is value i of the head at base. Every value is read before any is written: sum_all has barriers.
fn normed(base: u32, i: u32, inv: f32) -> f32 {
  let v = x[base + i];
  if (NORM == 1u) {
    return v * inv * w[i];
  }
  return v;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let base = (wid.y * HEADS + wid.x) * HD;
  var a = 0.0;
  for (var i = t; i < HD; i += WG) {
    let v = x[base + i];
    a = fma(v, v, a);
  }
  let inv = 1.0 / sqrt(sum_all(t, a) / f32(HD) + params.eps);
  let row = (frame.pos + wid.y) * PAIRS;
  for (var i = t; i < PAIRS; i += WG) {
    let cs = table[row + i];
    let p = normed(base, i, inv);
    let q = normed(base, i + PAIRS, inv);
    x[base + i] = fma(p, cs.x, -(q * cs.y));
    x[base + i + PAIRS] = fma(q, cs.x, p * cs.y);
  }
  for (var i = NROT + t; i < HD; i += WG) {
    x[base + i] = normed(base, i, inv);
  }
}
