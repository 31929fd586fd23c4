// out[c][i] = d[token(c)][i/32] q[token(c)][i]
//
// q (rows, COLS) bytes, d (rows, COLS/32) halves: rows row0..row0+rows-1 of the whole table; out (n, COLS).
// A workgroup decodes WG words of 4 values of one column; columns whose token lies in another piece are left alone.
// Grid: x over the words, y is the column. Constants: COLS (multiple of 32), WG.
struct Params {
  rows: u32,
  row0: u32,
}
@group(1) @binding(0) var<storage, read> q: array<u32>;
@group(1) @binding(1) var<storage, read> d: array<u32>;
@group(1) @binding(2) var<storage, read_write> out: array<vec4<f32>>;
@group(1) @binding(3) var<uniform> params: Params;

const WORDS: u32 = COLS / 4u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let i = wid.x * WG + t;
  let c = wid.y;
  let row = frame.tokens[c >> 2u][c & 3u] - params.row0;
  if (i >= WORDS || row >= params.rows) {
    return;
  }
  let b = row * (WORDS / 8u) + (i >> 3u);
  out[c * WORDS + i] = scale_of(d[b >> 1u], b) * bytes4(q[row * WORDS + i]);
}
