// out[c][k][r] = sum_i w[e F + r][i] x[c][i], e = sel[c][k]                one thread a row
//
// x (n, COLS), sel (n, 2 USED), w (experts F, COLS) floats, of which the array holds rows row0..row0+rows-1, out (n, USED, F); any
// COLS: the kernel for rows that are not whole octets, stored as F32. A workgroup computes WG rows of one expert and one column;
// rows of other pieces are left alone. Grid: x is the column and chosen expert, y over the rows. Constants: COLS, F, USED, WG.
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
  let slot = wid.x;
  let c = slot / USED;
  let r = wid.y * WG + t;
  let row = sel[c * 2u * USED + slot % USED] * F + r - params.row0;
  if (r >= F || row >= params.rows) {
    return;
  }
  var a = 0.0;
  for (var i = 0u; i < COLS; i += 1u) {
    a = fma(w[row * COLS + i], x[c * COLS + i], a);
  }
  out[slot * F + r] = a;
}
