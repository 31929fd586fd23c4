// out[c][row0+r] (+)= sum_i w[r][i] x[c][i]                       one column at a time
//
// x (n, COLS), w (rows, COLS) in any format, out (n, stride); with NORM = 1 x stands for its RMS norm with weights norm.
// A workgroup computes ROWS WG/LANES rows of one column, as rows.wgsl says. Grid: x is the column, y and z fold the
// workgroups (32,768 a line), so that columns follow each other and find the weights in the cache.
// Constants: COLS (multiple of 8), WG, LANES (1 or 8 up to WG, powers of two), ROWS (1, 2, 4), ACC (1 adds to out), NORM, FAST_HALF.
// A thread with a row of its own was 2.5 times slower on the models of spec engine.md 5.9.
struct Params {
  rows: u32,    // rows of this piece
  row0: u32,    // first row of the piece in out
  stride: u32,  // values from one column of out to the next
  at: u32,      // octets in the arrays before the matrix
  eps: f32,
}
@group(1) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(3) var<uniform> params: Params;

const OCTETS: u32 = COLS / 8u;

fn put(col: u32, row: u32, v: f32) {
  if (row >= params.rows) {
    return;
  }
  let at = col * params.stride + params.row0 + row;
  if (ACC == 1u) {
    out[at] = out[at] + v;
  } else {
    out[at] = v;
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let lane = select(t % LANES, 0u, LANES == 1u);
  let first = (wid.z * 32768u + wid.y) * (WG / LANES) * ROWS;
  let col = wid.x;
  if (first >= params.rows) {
    return;
  }
  let row = first + t / LANES * ROWS;
  let r = min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.rows - 1u));
  let v = meet(walk(r * OCTETS + params.at, col, lane), t, lane);
  if (lane != 0u) {
    return;
  }
  put(col, row, v.x);
  if (ROWS > 1u) {
    put(col, row + 1u, v.y);
  }
  if (ROWS > 2u) {
    put(col, row + 2u, v.z);
    put(col, row + 3u, v.w);
  }
}
