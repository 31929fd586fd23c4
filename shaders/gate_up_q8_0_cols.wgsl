// gate[c][r] = Wgate[r] . x[c], up[c][r] = Wup[r] . x[c], out[c][r] = gate / (1 + exp(-gate)) * up     four columns at a time
//
// x (n, COLS), gate_q, up_q (rows, COLS) bytes, gate_d, up_d (rows, COLS/32) halves; gate, up, out (n, rows).
// As gate_up_q8_0, but a weight is loaded and decoded once for four columns, with the same bits for each. A workgroup computes
// 2 WG/LANES rows of 4 columns. Grid: x and y fold the workgroups (32,768 a line), z is the group of columns; columns past n
// are computed from whatever the buffer holds and not written.
// Constants: COLS (multiple of 32), WG (threads, a power of two), LANES (at least 8, divides WG).
struct Params {
  rows: u32,  // of each matrix, and values in a column of gate, up and out
}
@group(1) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read> gate_q: array<u32>;
@group(1) @binding(2) var<storage, read> gate_d: array<u32>;
@group(1) @binding(3) var<storage, read> up_q: array<u32>;
@group(1) @binding(4) var<storage, read> up_d: array<u32>;
@group(1) @binding(5) var<storage, read_write> gate: array<f32>;
@group(1) @binding(6) var<storage, read_write> up: array<f32>;
@group(1) @binding(7) var<storage, read_write> out: array<f32>;
@group(1) @binding(8) var<uniform> params: Params;

const WORDS: u32 = COLS / 4u;
const BLOCKS: u32 = COLS / 32u;
var<workgroup> red0: array<vec4<f32>, WG>;
var<workgroup> red1: array<vec4<f32>, WG>;
var<workgroup> red2: array<vec4<f32>, WG>;
var<workgroup> red3: array<vec4<f32>, WG>;

// finish writes row r of column c.
fn finish(c: u32, r: u32, g: f32, u: f32) {
  let at = c * params.rows + r;
  gate[at] = g;
  up[at] = u;
  out[at] = g / (1.0 + exp(-g)) * u;
}

// finish_row writes row r of the columns that exist.
fn finish_row(col: u32, r: u32, g: vec4<f32>, u: vec4<f32>) {
  if (r >= params.rows) {
    return;
  }
  finish(col, r, g.x, u.x);
  if (col + 1u < frame.n) {
    finish(col + 1u, r, g.y, u.y);
  }
  if (col + 2u < frame.n) {
    finish(col + 2u, r, g.z, u.z);
  }
  if (col + 3u < frame.n) {
    finish(col + 3u, r, g.w, u.w);
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let lane = t % LANES;
  let first = (wid.y * 32768u + wid.x) * (WG / LANES) * 2u;
  let col = wid.z * 4u;
  if (first >= params.rows || col >= frame.n) {
    return;
  }
  let row = first + t / LANES * 2u;
  let last = params.rows - 1u;
  let r0 = min(row, last);
  let r1 = min(row + 1u, last);
  var a0 = vec4<f32>();
  var a1 = vec4<f32>();
  var a2 = vec4<f32>();
  var a3 = vec4<f32>();
  for (var i = lane; i < WORDS; i += LANES) {
    let x0 = x[col * WORDS + i];
    let x1 = x[(col + 1u) * WORDS + i];
    let x2 = x[(col + 2u) * WORDS + i];
    let x3 = x[(col + 3u) * WORDS + i];
    let b0 = r0 * BLOCKS + (i >> 3u);
    let b1 = r1 * BLOCKS + (i >> 3u);
    let w0 = bytes4(gate_q[r0 * WORDS + i]);
    let s0 = vec4<f32>(scale_of(gate_d[b0 >> 1u], b0));
    a0 = fma(s0, vec4<f32>(dot4(w0, x0), dot4(w0, x1), dot4(w0, x2), dot4(w0, x3)), a0);
    let w1 = bytes4(up_q[r0 * WORDS + i]);
    let s1 = vec4<f32>(scale_of(up_d[b0 >> 1u], b0));
    a1 = fma(s1, vec4<f32>(dot4(w1, x0), dot4(w1, x1), dot4(w1, x2), dot4(w1, x3)), a1);
    let w2 = bytes4(gate_q[r1 * WORDS + i]);
    let s2 = vec4<f32>(scale_of(gate_d[b1 >> 1u], b1));
    a2 = fma(s2, vec4<f32>(dot4(w2, x0), dot4(w2, x1), dot4(w2, x2), dot4(w2, x3)), a2);
    let w3 = bytes4(up_q[r1 * WORDS + i]);
    let s3 = vec4<f32>(scale_of(up_d[b1 >> 1u], b1));
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
  finish_row(col, row, red0[t], red1[t]);
  finish_row(col, row + 1u, red2[t], red3[t]);
}
