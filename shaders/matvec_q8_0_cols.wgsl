// out[c][row0+r] (+)= sum_i d[r][i/32] q[r][i] x[c][i]            four columns at a time
//
// x (n, COLS), q (rows, COLS) bytes, d (rows, COLS/32) halves, out (n, stride).
// As matvec_q8_0, but a weight is loaded and decoded once for four columns. Each column's sums are formed in the same
// order, bit for bit. A workgroup computes 4 WG/LANES rows of 4 columns. Grid: x and y fold the workgroups (32,768 a line), z is
// the group of columns; columns past n are computed from whatever the buffer holds and not written.
// Constants: COLS (multiple of 32), WG (threads, a power of two), LANES (at least 8, divides WG), ACC (1 adds to out).
struct Params {
  rows: u32,    // rows of this piece
  row0: u32,    // first row of the piece in out
  stride: u32,  // values from one column of out to the next
  pad: u32,
}
@group(1) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read> q: array<u32>;
@group(1) @binding(2) var<storage, read> d: array<u32>;
@group(1) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(4) var<uniform> params: Params;

const WORDS: u32 = COLS / 4u;
const BLOCKS: u32 = COLS / 32u;
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

// put_row writes a row's values of the columns that exist.
fn put_row(col: u32, row: u32, v: vec4<f32>) {
  if (row >= params.rows) {
    return;
  }
  let at = col * params.stride + params.row0 + row;
  put(at, v.x);
  if (col + 1u < frame.n) {
    put(at + params.stride, v.y);
  }
  if (col + 2u < frame.n) {
    put(at + 2u * params.stride, v.z);
  }
  if (col + 3u < frame.n) {
    put(at + 3u * params.stride, v.w);
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let lane = t % LANES;
  let first = (wid.y * 32768u + wid.x) * (WG / LANES) * 4u;
  let col = wid.z * 4u;
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
  for (var i = lane; i < WORDS; i += LANES) {
    let x0 = x[col * WORDS + i];
    let x1 = x[(col + 1u) * WORDS + i];
    let x2 = x[(col + 2u) * WORDS + i];
    let x3 = x[(col + 3u) * WORDS + i];
    let b = i >> 3u;
    let b0 = r0 * BLOCKS + b;
    let w0 = bytes4(q[r0 * WORDS + i]);
    let s0 = vec4<f32>(scale_of(d[b0 >> 1u], b0));
    a0 = fma(s0, vec4<f32>(dot4(w0, x0), dot4(w0, x1), dot4(w0, x2), dot4(w0, x3)), a0);
    let b1 = r1 * BLOCKS + b;
    let w1 = bytes4(q[r1 * WORDS + i]);
    let s1 = vec4<f32>(scale_of(d[b1 >> 1u], b1));
    a1 = fma(s1, vec4<f32>(dot4(w1, x0), dot4(w1, x1), dot4(w1, x2), dot4(w1, x3)), a1);
    let b2 = r2 * BLOCKS + b;
    let w2 = bytes4(q[r2 * WORDS + i]);
    let s2 = vec4<f32>(scale_of(d[b2 >> 1u], b2));
    a2 = fma(s2, vec4<f32>(dot4(w2, x0), dot4(w2, x1), dot4(w2, x2), dot4(w2, x3)), a2);
    let b3 = r3 * BLOCKS + b;
    let w3 = bytes4(q[r3 * WORDS + i]);
    let s3 = vec4<f32>(scale_of(d[b3 >> 1u], b3));
    a3 = fma(s3, vec4<f32>(dot4(w3, x0), dot4(w3, x1), dot4(w3, x2), dot4(w3, x3)), a3);
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
  put_row(col, row, red0[t]);
  put_row(col, row + 1u, red1[t]);
  put_row(col, row + 2u, red2[t]);
  put_row(col, row + 3u, red3[t]);
}
