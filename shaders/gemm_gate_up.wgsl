// gate[c][r] = w[r] . x[c], up[c][r] = w[F + r] . x[c], out[c][r] = gate / (1 + exp(-gate)) * up         for many columns
//
// As gemm: x (n, COLS), w (2 F, COLS), gate, up, out (n, F); F is params.rows.
// A workgroup computes a tile of BM/2 rows of both and BN columns (tile.wgsl): the first half of its rows are those of gate, so
// that a thread holds both sums of a result.
// Grid: x is the tile of rows, z counts folds of 32,768 of them, y is the tile of columns.
// Constants: COLS, TY, TX, BK, FAST_HALF (see tile.wgsl).
struct Params {
  rows: u32,
  at: u32,  // octets in the arrays before the matrices
}
@group(1) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read_write> gate: array<f32>;
@group(1) @binding(2) var<storage, read_write> up: array<f32>;
@group(1) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(4) var<uniform> params: Params;

fn row_at(row: u32, r: u32) -> u32 {
  let half = r / (BM / 2u);
  return (min(row + r % (BM / 2u), params.rows - 1u) + half * params.rows) * OCTETS + params.at;
}

fn column_at(col: u32, c: u32) -> u32 { return min(col + c, frame.n - 1u) * (2u * OCTETS); }

fn put(col: u32, row: u32, g: f32, u: f32) {
  if (row < params.rows) {
    let at = col * params.rows + row;
    gate[at] = g;
    up[at] = u;
    out[at] = g / (1.0 + exp(-g)) * u;
  }
}

// put_column writes a thread's rows of a column.
fn put_column(col: u32, row: u32, g: vec4<f32>, u: vec4<f32>) {
  if (col >= frame.n) {
    return;
  }
  put(col, row, g.x, u.x);
  put(col, row + 1u, g.y, u.y);
  put(col, row + 2u, g.z, u.z);
  put(col, row + 3u, g.w, u.w);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = (wid.z * 32768u + wid.x) * (BM / 2u);
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
