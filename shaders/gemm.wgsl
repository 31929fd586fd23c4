// out[c][row0+r] (+)= sum_i w[r][i] x[c][i]                       for many columns
//
// x (n, COLS), w (rows, COLS) in any format, out (n, stride). A workgroup computes a tile of BM rows and BN columns (tile.wgsl).
// Sums are formed BK values of i at a time, by teams that add theirs at the end; so their bits are not those of matvec.
// Grid: x is the tile of rows, z counts folds of 32,768 of them, y is the tile of columns.
// Constants: COLS, TY, TX, BK, FAST_HALF (see tile.wgsl), ACC (1 adds to out).
struct Params {
  rows: u32,    // rows of this piece
  row0: u32,    // first row of the piece in out
  stride: u32,  // values from one column of out to the next
  at: u32,      // octets in the arrays before the matrix
}
@group(1) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read_write> out: array<f32>;
@group(1) @binding(2) var<uniform> params: Params;

fn row_at(row: u32, r: u32) -> u32 { return min(row + r, params.rows - 1u) * OCTETS + params.at; }

fn column_at(col: u32, c: u32) -> u32 { return min(col + c, frame.n - 1u) * (2u * OCTETS); }

fn put(col: u32, row: u32, v: f32) {
  if (row < params.rows) {
    let at = col * params.stride + params.row0 + row;
    if (ACC == 1u) {
      out[at] += v;
    } else {
      out[at] = v;
    }
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
  var a = Sums();
  products(&a, row, col, t);
  if (t >= TEAM) {
    return;
  }
  let r = row + t % TY * 4u;
  let c = col + t / TY * 4u;
  put_column(c, r, a[0], a[1]);
  put_column(c + 1u, r, a[2], a[3]);
  put_column(c + 2u, r, a[4], a[5]);
  put_column(c + 3u, r, a[6], a[7]);
  put_column(c + BN / 2u, r, a[8], a[9]);
  put_column(c + BN / 2u + 1u, r, a[10], a[11]);
  put_column(c + BN / 2u + 2u, r, a[12], a[13]);
  put_column(c + BN / 2u + 3u, r, a[14], a[15]);
}
