// out[c][row0+r] (+)= sum_i w[r][i] x[c][i]                       one column at a time
//
// x (n, COLS), w (rows, COLS), out (n, stride); any COLS.
// A workgroup computes 4 rows of one column, its threads walk the elements of the rows. Grid: x and y fold the row groups
// (32,768 a line), z is the column.
// Constants: COLS, WG (threads, a power of two), ACC (1 adds to out).
struct Params {
  rows: u32,    // rows of this piece
  row0: u32,    // first row of the piece in out
  stride: u32,  // values from one column of out to the next
  pad: u32,
}
@group(1) @binding(0) var<storage, read> x: array<f32>;
@group(1) @binding(1) var<storage, read> w: array<f32>;
@group(1) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(3) var<uniform> params: Params;

var<workgroup> red: array<vec4<f32>, WG>;

fn put(at: u32, v: f32) {
  if (ACC == 1u) {
    out[at] = out[at] + v;
  } else {
    out[at] = v;
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = (wid.y * 32768u + wid.x) * 4u;
  let col = wid.z;
  if (row >= params.rows || col >= frame.n) {
    return;
  }
  let last = params.rows - 1u;
  let r1 = min(row + 1u, last);
  let r2 = min(row + 2u, last);
  let r3 = min(row + 3u, last);
  var a = vec4<f32>();
  for (var i = t; i < COLS; i += WG) {
    let v = vec4<f32>(w[row * COLS + i], w[r1 * COLS + i], w[r2 * COLS + i], w[r3 * COLS + i]);
    a = fma(v, vec4<f32>(x[col * COLS + i]), a);
  }
  red[t] = a;
  workgroupBarrier();
  for (var s = WG / 2u; s > 0u; s = s >> 1u) {
    if (t < s) {
      red[t] = red[t] + red[t + s];
    }
    workgroupBarrier();
  }
  if (t == 0u) {
    let v = red[0];
    let at = col * params.stride + params.row0 + row;
    put(at, v.x);
    if (row + 1u < params.rows) {
      put(at + 1u, v.y);
    }
    if (row + 2u < params.rows) {
      put(at + 2u, v.z);
    }
    if (row + 3u < params.rows) {
      put(at + 3u, v.w);
    }
  }
}
