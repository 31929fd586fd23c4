// a[c][r], b[c][r], d[c][r] = sum_i w[r'][i] x[c][i] for three matrices stored one after the other, many columns
//
// As gemm: x (n, COLS), w (rows, COLS), a (n, end0), b (n, end1 - end0), d (n, rows - end1).
// A workgroup computes a tile of BM rows and BN columns (tile.wgsl); the rows of a tile may be of several matrices.
// Grid: x is the tile of rows, z counts folds of 32,768 of them, y is the tile of columns.
// Constants: COLS, TY, TX, BK, FAST_HALF (see tile.wgsl).
struct Params {
  rows: u32,
  end0: u32,
  end1: u32,
  at: u32,  // octets in the arrays before the matrices
}
@group(1) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read_write> a: array<f32>;
@group(1) @binding(2) var<storage, read_write> b: array<f32>;
@group(1) @binding(3) var<storage, read_write> d: array<f32>;
@group(1) @binding(4) var<uniform> params: Params;

fn row_at(row: u32, r: u32) -> u32 { return min(row + r, params.rows - 1u) * OCTETS + params.at; }

fn column_at(col: u32, c: u32) -> u32 { return min(col + c, frame.n - 1u) * (2u * OCTETS); }

fn put(col: u32, row: u32, v: f32) {
  if (row < params.end0) {
    a[col * params.end0 + row] = v;
  } else if (row < params.end1) {
    b[col * (params.end1 - params.end0) + row - params.end0] = v;
  } else if (row < params.rows) {
    d[col * (params.rows - params.end1) + row - params.end1] = v;
  }
}

// put_column writes a thread's rows of a column, a quad from either half of the tile's.
fn put_column(col: u32, row: u32, v: vec4<f32>, u: vec4<f32>) {
  if (col >= frame.n) {
    return;
  }
  put(col, row, v.x);
  put(col, row + 1u, v.y);
  put(col, row + 2u, v.z);
  put(col, row + 3u, v.w);
  put(col, row + BM / 2u, u.x);
  put(col, row + BM / 2u + 1u, u.y);
  put(col, row + BM / 2u + 2u, u.z);
  put(col, row + BM / 2u + 3u, u.w);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = (wid.z * 32768u + wid.x) * BM;
  let col = wid.y * BN;
  if (row >= params.rows) {
    return;
  }
  var s = Sums();
  products(&s, row, col, t);
  if (t >= TEAM) {
    return;
  }
  let r = row + t % TY * 4u;
  let c = col + t / TY * 4u;
  put_column(c, r, s[0], s[1]);
  put_column(c + 1u, r, s[2], s[3]);
  put_column(c + 2u, r, s[4], s[5]);
  put_column(c + 3u, r, s[6], s[7]);
  put_column(c + BN / 2u, r, s[8], s[9]);
  put_column(c + BN / 2u + 1u, r, s[10], s[11]);
  put_column(c + BN / 2u + 2u, r, s[12], s[13]);
  put_column(c + BN / 2u + 3u, r, s[14], s[15]);
}
