// out[c][r] += sum_k weight[c][k] sum_i w[e F + r][i] x[c][k][i], e = sel[c][k]                one thread a row
//
// x (n, USED, COLS), sel (n, 2 USED), w (experts F, COLS) floats, of which the array holds rows row0..row0+rows-1, out (n, F); any
// COLS: the kernel for rows that are not whole octets, stored as F32. A workgroup computes WG rows of one column; experts of other
// pieces count as 0. Grid: x is the column, y over the rows. Constants: COLS, F, USED, WG.
struct Params {
  rows: u32,
  row0: u32,
}
@group(1) @binding(0) var<storage, read> x: array<f32>;
@group(1) @binding(1) var<storage, read> w: array<f32>;
@group(1) @binding(2) var<storage, read> sel: array<u32>;
@group(1) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let c = wid.x;
  let r = wid.y * WG + t;
  if (r >= F) {
    return;
  }
  var sum = out[c * F + r];
  for (var k = 0u; k < USED; k += 1u) {
    let row = sel[c * 2u * USED + k] * F + r - params.row0;
    if (row < params.rows) {
      var a = 0.0;
      for (var i = 0u; i < COLS; i += 1u) {
        a = fma(w[row * COLS + i], x[(c * USED + k) * COLS + i], a);
      }
      sum = fma(bitcast<f32>(sel[c * 2u * USED + USED + k]), a, sum);
    }
  }
  out[c * F + r] = sum;
}
