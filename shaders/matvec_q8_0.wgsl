// out[c][row0+r] (+)= sum_i d[r][i/32] q[r][i] x[c][i]            one column at a time
//
// x (n, COLS), q (rows, COLS) bytes, d (rows, COLS/32) halves, out (n, stride).
// LANES threads share 4 rows of one column: they walk the words of the rows and load the activations once for all four;
// their partial sums meet in workgroup memory in two steps (a tree has more barriers and is slower, most of all on
// a processor). A workgroup computes 4 WG/LANES rows. Grid: x and y fold the workgroups (32,768 a line), z is the column.
// Constants: COLS (multiple of 32), WG (threads, a power of two), LANES (at least 8, divides WG), ACC (1 adds to out).
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
  let lane = t % LANES;
  let first = (wid.y * 32768u + wid.x) * (WG / LANES) * 4u;
  let col = wid.z;
  if (first >= params.rows || col >= frame.n) {
    return;
  }
  let row = first + t / LANES * 4u;
  let last = params.rows - 1u;
  let r0 = min(row, last);
  let r1 = min(row + 1u, last);
  let r2 = min(row + 2u, last);
  let r3 = min(row + 3u, last);
  var a = vec4<f32>();
  for (var i = lane; i < WORDS; i += LANES) {
    let xv = x[col * WORDS + i];
    let b = i >> 3u;
    let b0 = r0 * BLOCKS + b;
    let b1 = r1 * BLOCKS + b;
    let b2 = r2 * BLOCKS + b;
    let b3 = r3 * BLOCKS + b;
    let s = vec4<f32>(scale_of(d[b0 >> 1u], b0), scale_of(d[b1 >> 1u], b1), scale_of(d[b2 >> 1u], b2), scale_of(d[b3 >> 1u], b3));
    let p = vec4<f32>(
      dot4(bytes4(q[r0 * WORDS + i]), xv),
      dot4(bytes4(q[r1 * WORDS + i]), xv),
      dot4(bytes4(q[r2 * WORDS + i]), xv),
      dot4(bytes4(q[r3 * WORDS + i]), xv));
    a = fma(s, p, a);
  }
  red[t] = a;
  workgroupBarrier();
  if (LANES > 8u) {
    if (lane < 8u) {
      for (var i = 8u; i < LANES; i += 8u) {
        red[t] = red[t] + red[t + i];
      }
    }
    workgroupBarrier();
  }
  if (lane != 0u || row >= params.rows) {
    return;
  }
  for (var i = 1u; i < 8u; i += 1u) {
    red[t] = red[t] + red[t + i];
  }
  let v = red[t];
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
