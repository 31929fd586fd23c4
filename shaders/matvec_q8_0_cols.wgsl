// out[c][row0+r] (+)= sum_i d[r][i/32] q[r][i] x[c][i]            four columns at a time
//
// x (n, COLS), q (rows, COLS) bytes, d (rows, COLS/32) halves, out (n, stride).
// A workgroup computes 4 rows of 4 columns: a weight word is loaded and decoded once for the four. Each column's sums are
// formed in the order of matvec_q8_0, bit for bit. Grid: x and y fold the row groups (32,768 a line), z is the
// group of columns; columns past n are computed from whatever the buffer holds and not written.
// Constants: COLS (multiple of 32), WG (threads, a power of two), ACC (1 adds to out).
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
  let row = (wid.y * 32768u + wid.x) * 4u;
  let col = wid.z * 4u;
  if (row >= params.rows || col >= frame.n) {
    return;
  }
  let last = params.rows - 1u;
  let r1 = min(row + 1u, last);
  let r2 = min(row + 2u, last);
  let r3 = min(row + 3u, last);
  var a0 = vec4<f32>();
  var a1 = vec4<f32>();
  var a2 = vec4<f32>();
  var a3 = vec4<f32>();
  for (var i = t; i < WORDS; i += WG) {
    let x0 = x[col * WORDS + i];
    let x1 = x[(col + 1u) * WORDS + i];
    let x2 = x[(col + 2u) * WORDS + i];
    let x3 = x[(col + 3u) * WORDS + i];
    let b = i >> 3u;
    let b0 = row * BLOCKS + b;
    let b1 = r1 * BLOCKS + b;
    let b2 = r2 * BLOCKS + b;
    let b3 = r3 * BLOCKS + b;
    let w0 = bytes4(q[row * WORDS + i]);
    let w1 = bytes4(q[r1 * WORDS + i]);
    let w2 = bytes4(q[r2 * WORDS + i]);
    let w3 = bytes4(q[r3 * WORDS + i]);
    let s0 = vec4<f32>(scale_of(d[b0 >> 1u], b0));
    let s1 = vec4<f32>(scale_of(d[b1 >> 1u], b1));
    let s2 = vec4<f32>(scale_of(d[b2 >> 1u], b2));
    let s3 = vec4<f32>(scale_of(d[b3 >> 1u], b3));
    a0 = fma(s0, vec4<f32>(dot4(w0, x0), dot4(w0, x1), dot4(w0, x2), dot4(w0, x3)), a0);
    a1 = fma(s1, vec4<f32>(dot4(w1, x0), dot4(w1, x1), dot4(w1, x2), dot4(w1, x3)), a1);
    a2 = fma(s2, vec4<f32>(dot4(w2, x0), dot4(w2, x1), dot4(w2, x2), dot4(w2, x3)), a2);
    a3 = fma(s3, vec4<f32>(dot4(w3, x0), dot4(w3, x1), dot4(w3, x2), dot4(w3, x3)), a3);
  }
  red0[t] = a0;
  red1[t] = a1;
  red2[t] = a2;
  red3[t] = a3;
  workgroupBarrier();
  for (var s = WG / 2u; s > 0u; s = s >> 1u) {
    if (t < s) {
      red0[t] = red0[t] + red0[t + s];
      red1[t] = red1[t] + red1[t + s];
      red2[t] = red2[t] + red2[t + s];
      red3[t] = red3[t] + red3[t + s];
    }
    workgroupBarrier();
  }
  if (t == 0u) {
    put_row(col, row, red0[0]);
    put_row(col, row + 1u, red1[0]);
    put_row(col, row + 2u, red2[0]);
    put_row(col, row + 3u, red3[0]);
  }
}
