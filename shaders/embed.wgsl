// out[c][i] = table[token(c)][i], the tokens being ids (n) with LIST = 1, else those of the frame
//
// table (rows, COLS) in any format: rows row0..row0+rows-1 of the whole table; out (n, COLS).
// A workgroup decodes WG octets of one column; columns whose token lies in another piece are left alone.
// Grid: x over the octets, y is the column. Constants: COLS (multiple of 8), FAST_HALF, LIST, WG.
struct Params {
  rows: u32,
  row0: u32,
  at: u32,    // octets in the arrays before the table
}
@group(1) @binding(0) var<storage, read> ids: array<u32>;
@group(1) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(1) @binding(2) var<uniform> params: Params;

const OCTETS: u32 = COLS / 8u;

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
  if (i >= OCTETS || row >= params.rows) {
    return;
  }
  let o = params.at + row * OCTETS + i;
  let w = quants(o);
  let s = scale_of(o);
  let to = (c * OCTETS + i) * 2u;
  if (HAS_MIN) { // exact products: the sum is rounded once, with or without fma
    out[to] = s.d * w.lo + s.m;
    out[to + 1u] = s.d * w.hi + s.m;
  } else {
    out[to] = s.d * w.lo;
    out[to + 1u] = s.d * w.hi;
  }
}
