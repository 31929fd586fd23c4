// gate[c][r] = w[r] . x[c], up[c][r] = w[F + r] . x[c], out[c][r] = gate / (1 + exp(-gate)) * up         four columns at a time
//
// As gate_up with the same bits: x (n, COLS), w (2 F, COLS), gate, up, out (n, F); F is params.rows.
// A workgroup computes ROWS/2 WG/LANES rows of both, of 4 columns. Grid: x is the group of columns, y and z fold the workgroups
// (32,768 a line).
// Constants: COLS (multiple of 8), WG, LANES (1 or 8 up to WG, powers of two), ROWS (2, 4), NORM, FAST_HALF.
struct Params {
  rows: u32,
  at: u32,    // octets in the arrays before the matrices
  pad: u32,
  eps: f32,
}
@group(1) @binding(2) var<storage, read_write> gate: array<f32>;
@group(1) @binding(3) var<storage, read_write> up: array<f32>;
@group(1) @binding(4) var<storage, read_write> out: array<f32>;
@group(1) @binding(5) var<uniform> params: Params;

const OCTETS: u32 = COLS / 8u;

fn finish(col: u32, row: u32, g: f32, u: f32) {
  if (row < params.rows && col < frame.n) {
    let at = col * params.rows + row;
    gate[at] = g;
    up[at] = u;
    out[at] = g / (1.0 + exp(-g)) * u;
  }
}

fn finish4(col: u32, row: u32, g: vec4<f32>, u: vec4<f32>) {
  finish(col, row, g.x, u.x);
  finish(col + 1u, row, g.y, u.y);
  finish(col + 2u, row, g.z, u.z);
  finish(col + 3u, row, g.w, u.w);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let lane = select(t % LANES, 0u, LANES == 1u);
  let first = (wid.z * 32768u + wid.y) * (WG / LANES) * (ROWS / 2u);
  let col = wid.x * 4u;
  if (first >= params.rows) {
    return;
  }
  let row = first + t / LANES * (ROWS / 2u);
  let r0 = min(row, params.rows - 1u);
  let r1 = min(row + 1u, params.rows - 1u);
  let r = vec4<u32>(r0, r0 + params.rows, r1, r1 + params.rows);
  let v = meet(walk(r * OCTETS + params.at, col, lane), t, lane);
  if (lane != 0u) {
    return;
  }
  finish4(col, row, v.a, v.b);
  if (ROWS > 2u) {
    finish4(col, row + 1u, v.c, v.d);
  }
}
