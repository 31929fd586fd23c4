// out[c][k][r] = silu(w[e F + r] . x[c]) * (w[half + e F + r] . x[c]), e = sel[c][k]
//
// x (n, COLS), sel (n, 2 USED), w (2 half, COLS) in any format: the gate rows of all experts, then their up rows; out (n, USED, F).
// One launch instead of three. A workgroup computes ROWS/2 WG/LANES rows of one expert and one column, as rows.wgsl says.
// Grid: x is the column and chosen expert, y and z fold the workgroups (32,768 a line).
// Constants: COLS (multiple of 8), F, USED, WG, LANES (1 or 8 up to WG, powers of two), ROWS (2, 4), NORM (0), FAST_HALF.
struct Params {
  half: u32,  // rows of all experts
  at: u32,    // octets in the arrays before the matrices
  pad: u32,
  eps: f32,
}
@group(1) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read> norm: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> sel: array<u32>;
@group(1) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(4) var<uniform> params: Params;

const OCTETS: u32 = COLS / 8u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let lane = select(t % LANES, 0u, LANES == 1u);
  let slot = wid.x;
  let c = slot / USED;
  let first = min(sel[c * 2u * USED + slot % USED] * F, params.half - F);
  let row = (wid.z * 32768u + wid.y) * (WG / LANES) * (ROWS / 2u) + t / LANES * (ROWS / 2u);
  let r0 = first + min(row, F - 1u);
  let r1 = first + min(row + 1u, F - 1u);
  let r = vec4<u32>(r0, r0 + params.half, r1, r1 + params.half);
  let v = meet(walk(r * OCTETS + params.at, c, lane), t, lane);
  if (lane != 0u || row >= F) {
    return;
  }
  out[slot * F + row] = v.x / (1.0 + exp(-v.x)) * v.y;
  if (ROWS > 2u && row + 1u < F) {
    out[slot * F + row + 1u] = v.z / (1.0 + exp(-v.z)) * v.w;
  }
}
