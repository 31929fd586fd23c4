// out[c][row0+r] (+)= sum_i d[r][i/32] q[r][i] x[c][i]            one column at a time
//
// x (n, COLS), q (rows, COLS) bytes, d (rows, COLS/32) halves, out (n, stride).
// A workgroup computes 4 rows of one column: its threads walk the words of the rows and load the activations once for
// all four; partial sums meet in a tree. Grid: x and y fold the row groups (32,768 a line), z is the column.
// Constants: COLS (multiple of 32), WG (threads, a power of two), ACC (1 adds to out).
// One thread a row instead was 2.5 times slower on the models of spec engine.md 5.9.
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
  var a0 = 0.0;
  var a1 = 0.0;
  var a2 = 0.0;
  var a3 = 0.0;
  for (var i = t; i < WORDS; i += WG) {
    let xv = x[col * WORDS + i];
    let b = i >> 3u;
    let b0 = row * BLOCKS + b;
    let b1 = r1 * BLOCKS + b;
    let b2 = r2 * BLOCKS + b;
    let b3 = r3 * BLOCKS + b;
    a0 = fma(scale_of(d[b0 >> 1u], b0), dot4(bytes4(q[row * WORDS + i]), xv), a0);
    a1 = fma(scale_of(d[b1 >> 1u], b1), dot4(bytes4(q[r1 * WORDS + i]), xv), a1);
    a2 = fma(scale_of(d[b2 >> 1u], b2), dot4(bytes4(q[r2 * WORDS + i]), xv), a2);
    a3 = fma(scale_of(d[b3 >> 1u], b3), dot4(bytes4(q[r3 * WORDS + i]), xv), a3);
  }
  red[t] = vec4<f32>(a0, a1, a2, a3);
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
