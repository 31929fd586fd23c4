// out[c][k][r] = sum_i w[e F + r][i] x[c][i], e = sel[c][k]
//
// x (n, COLS), sel (n, 2 USED), w (experts F, COLS) in any format, of which the arrays hold rows row0..row0+rows-1, out (n, USED, F).
// A workgroup computes ROWS WG/LANES rows of one expert and one column, as rows.wgsl says; rows of other pieces are left alone.
// Grid: x is the column and chosen expert, y and z fold the workgroups (32,768 a line).
// Constants: COLS (multiple of 8), F, USED, WG, LANES (1 or 8 up to WG, powers of two), ROWS (1, 2, 4), NORM (0), FAST_HALF.
struct Params {
  rows: u32,  // of this piece
  row0: u32,
  at: u32,    // octets in the arrays before the piece
  eps: f32,
}
@group(1) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read> norm: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> sel: array<u32>;
@group(1) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(4) var<uniform> params: Params;

const OCTETS: u32 = COLS / 8u;

fn put(slot: u32, first: u32, r: u32, v: f32) {
  if (r < F && first + r >= params.row0 && first + r - params.row0 < params.rows) {
    out[slot * F + r] = v;
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let lane = select(t % LANES, 0u, LANES == 1u);
  let slot = wid.x;
  let c = slot / USED;
  let first = sel[c * 2u * USED + slot % USED] * F;
  let row = (wid.z * 32768u + wid.y) * (WG / LANES) * ROWS + t / LANES * ROWS;
  let r = first + min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(F - 1u));
  let here = min(max(r, vec4<u32>(params.row0)) - params.row0, vec4<u32>(params.rows - 1u));
  let v = meet(walk(here * OCTETS + params.at, c, lane), t, lane);
  if (lane != 0u) {
    return;
  }
  put(slot, first, row, v.x);
  if (ROWS > 1u) {
    put(slot, first, row + 1u, v.y);
  }
  if (ROWS > 2u) {
    put(slot, first, row + 2u, v.z);
    put(slot, first, row + 3u, v.w);
  }
}
