// a[c][r], b[c][r], d[c][r] = sum_i w[r'][i] x[c][i] for three matrices stored one after the other, one column at a time
//
// As matvec, for rows 0..end0-1, end0..end1-1 and end1..rows-1 of w (rows, COLS): x (n, COLS), a (n, end0), b (n, end1 - end0),
// d (n, rows - end1). One launch instead of three, which is what small matrices cost.
// A workgroup computes ROWS WG/LANES rows of one column. Grid: x is the column, y and z fold the workgroups (32,768 a line).
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
  if (row < params.end0) {
    a[col * params.end0 + row] = v;
  } else if (row < params.end1) {
    b[col * (params.end1 - params.end0) + row - params.end0] = v;
  } else if (row < params.rows) {
    d[col * (params.rows - params.end1) + row - params.end1] = v;
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
