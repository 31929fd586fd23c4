// out[c][row0+r] (+)= sum_i w[r][i] x[c][i]                       four columns at a time
//
// x (n, COLS), w (rows, COLS), out (n, stride); any COLS: the kernel for
// rows that are not whole octets, stored as F32.
// As matvec_any, but a weight is loaded and decoded once for four columns. Each column's sums are formed in the same
// order, bit for bit. A workgroup computes 4 WG/LANES rows of 4 columns. Grid: x is the group of columns, y and z
// fold the workgroups (32,768 a line); columns past n are computed from whatever the buffer holds and not written.
// Constants: COLS, WG (threads, a power of two), LANES (at least 8, divides WG), ACC (1 adds to out).
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

var<workgroup> red0: array<vec4<f32>, WG>;
var<workgroup> red1: array<vec4<f32>, WG>;
var<workgroup> red2: array<vec4<f32>, WG>;
var<workgroup> red3: array<vec4<f32>, WG>;

fn put(at: u32, v: f32) {
  if (ACC == 1u) {
    out[at] = out[at] + v;
  } else {
    out[at] = v;
  }
}

// put_col writes a column's values of the rows that exist.
fn put_col(col: u32, row: u32, v: vec4<f32>) {
  if (col >= frame.n) {
    return;
  }
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

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let lane = t % LANES;
  let first = (wid.z * 32768u + wid.y) * (WG / LANES) * 4u;
  let col = wid.x * 4u;
  if (first >= params.rows || col >= frame.n) {
    return;
  }
  let row = first + t / LANES * 4u;
  let last = params.rows - 1u;
  let r0 = min(row, last);
  let r1 = min(row + 1u, last);
  let r2 = min(row + 2u, last);
  let r3 = min(row + 3u, last);
  var a0 = vec4<f32>();
  var a1 = vec4<f32>();
  var a2 = vec4<f32>();
  var a3 = vec4<f32>();
  for (var i = lane; i < COLS; i += LANES) {
    let v = vec4<f32>(w[r0 * COLS + i], w[r1 * COLS + i], w[r2 * COLS + i], w[r3 * COLS + i]);
    a0 = fma(v, vec4<f32>(x[col * COLS + i]), a0);
    a1 = fma(v, vec4<f32>(x[(col + 1u) * COLS + i]), a1);
    a2 = fma(v, vec4<f32>(x[(col + 2u) * COLS + i]), a2);
    a3 = fma(v, vec4<f32>(x[(col + 3u) * COLS + i]), a3);
  }
  red0[t] = a0;
  red1[t] = a1;
  red2[t] = a2;
  red3[t] = a3;
  workgroupBarrier();
  if (LANES > 8u) {
    if (lane < 8u) {
      for (var i = 8u; i < LANES; i += 8u) {
        red0[t] = red0[t] + red0[t + i];
        red1[t] = red1[t] + red1[t + i];
        red2[t] = red2[t] + red2[t + i];
        red3[t] = red3[t] + red3[t + i];
      }
    }
    workgroupBarrier();
  }
  if (lane != 0u || row >= params.rows) {
    return;
  }
  for (var i = 1u; i < 8u; i += 1u) {
    red0[t] = red0[t] + red0[t + i];
    red1[t] = red1[t] + red1[t + i];
    red2[t] = red2[t] + red2[t + i];
    red3[t] = red3[t] + red3[t + i];
  }
  put_col(col, row, red0[t]);
  put_col(col + 1u, row, red1[t]);
  put_col(col + 2u, row, red2[t]);
  put_col(col + 3u, row, red3[t]);
}
