// out[c][i] = table[token(c)][i], the tokens being ids (n) with LIST = 1, else those of the frame
//
// table (rows, COLS): rows row0..row0+rows-1 of the whole table; out (n, COLS); any COLS.
// A workgroup copies WG values of one column; columns whose token lies in another piece are left alone.
// Grid: x over the values, y is the column. Constants: COLS, LIST, WG.
struct Params {
  rows: u32,
  row0: u32,
}
@group(1) @binding(0) var<storage, read> ids: array<u32>;
@group(1) @binding(1) var<storage, read> table: array<f32>;
@group(1) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(3) var<uniform> params: Params;

fn token(c: u32) -> u32 {
  if (LIST == 1u) {
    return ids[c];
  }
  return frame.tokens[c >> 2u][c & 3u];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let i = wid.x * WG + t;
  let c = wid.y;
  let row = token(c) - params.row0;
  if (i >= COLS || row >= params.rows) {
    return;
  }
  out[c * COLS + i] = table[row * COLS + i];
}
