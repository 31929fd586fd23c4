// a[c][r], b[c][r], d[c][r] = sum_i w[r'][i] x[c][i] for three matrices stored one after the other, four columns at a time
//
// As matvec3 with the same bits: x (n, COLS), w (rows, COLS), a (n, end0), b (n, end1 - end0), d (n, rows - end1).
// A workgroup computes ROWS WG/LANES rows of 4 columns. Grid: x is the group of columns, y and z fold the workgroups
// (32,768 a line).
// Constants: COLS (multiple of 8), WG, LANES (1 or 8 up to WG, powers of two), ROWS (1, 2, 4), NORM, FAST_HALF.
struct Params {
  rows: u32,
  end0: u32,
  end1: u32,
  at: u32,      // octets in the arrays before the matrices
  eps: f32,
}
@group(1) @binding(2) var<storage, read_write> a: array<f32>;
@group(1) @binding(3) var<storage, read_write> b: array<f32>;
@group(1) @binding(4) var<storage, read_write> d: array<f32>;
@group(1) @binding(5) var<uniform> params: Params;

const OCTETS: u32 = COLS / 8u;

fn put(col: u32, row: u32, v: f32) {
  if (col >= frame.n) {
    return;
  }
  if (row < params.end0) {
    a[col * params.end0 + row] = v;
  } else if (row < params.end1) {
    b[col * (params.end1 - params.end0) + row - params.end0] = v;
  } else if (row < params.rows) {
    d[col * (params.rows - params.end1) + row - params.end1] = v;
  }
}

fn put_row(col: u32, row: u32, v: vec4<f32>) {
  put(col, row, v.x);
  put(col + 1u, row, v.y);
  put(col + 2u, row, v.z);
  put(col + 3u, row, v.w);
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
