// out[c][row0+r] (+)= sum_i w[r][i] x[c][i]                       four columns at a time
//
// As matvec with the same bits; x (n, COLS), w (rows, COLS), out (n, stride).
// A workgroup computes ROWS WG/LANES rows of 4 columns. Grid: x is the group of columns, y and z fold the workgroups
// (32,768 a line), so that the groups of columns follow each other and find the weights in the cache.
// Constants: COLS (multiple of 8), WG, LANES (1 or 8 up to WG, powers of two), ROWS (1, 2, 4), ACC (1 adds to out), NORM, FAST_HALF.
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

fn put(at: u32, v: f32) {
  if (ACC == 1u) {
    out[at] = out[at] + v;
  } else {
    out[at] = v;
  }
}

// put_row writes a row's values of the columns that exist.
fn put_row(col: u32, row: u32, v: vec4<f32>) {
  if (row >= params.rows) {
    return;
  }
  let at = col * params.stride + params.row0 + row;
  put(at, v.x);
  if (col + 1u < frame.n) {
    put(at + params.stride, v.y);
  }
  if (col + 2u < frame.n) {
    put(at + 2u * params.stride, v.z);
  }
  if (col + 3u < frame.n) {
    put(at + 3u * params.stride, v.w);
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let lane = select(t % LANES, 0u, LANES == 1u);
  let first = (wid.z * 32768u + wid.y) * (WG / LANES) * ROWS;
  let col = wid.x * 4u;
  if (first >= params.rows) {
    return;
  }
  let row = first + t / LANES * ROWS;
  let r = min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.rows - 1u));
  let v = meet(walk(r * OCTETS + params.at, col, lane), t, lane);
  if (lane != 0u) {
    return;
  }
  put_row(col, row, v.a);
  if (ROWS > 1u) {
    put_row(col, row + 1u, v.b);
  }
  if (ROWS > 2u) {
    put_row(col, row + 2u, v.c);
    put_row(col, row + 3u, v.d);
  }
}
