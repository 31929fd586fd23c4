// out[c][row0+r] (+)= sum_i w[r][i] x[c][i]                       one column at a time
//
// x (n, COLS), w (rows, COLS), out (n, stride); any COLS: the kernel for
// rows that are not whole octets, stored as F32.
// LANES threads share 4 rows of one column: they walk the elements of the rows and load the activations once for all four;
// their partial sums meet in workgroup memory in two steps (a tree has more barriers and is slower, most of all on
// a processor). A workgroup computes 4 WG/LANES rows. Grid: x is the column, y and z fold the workgroups (32,768 a line).
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
  let first = (wid.z * 32768u + wid.y) * (WG / LANES) * 4u;
  let col = wid.x;
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
  for (var i = lane; i < COLS; i += LANES) {
    let v = vec4<f32>(w[r0 * COLS + i], w[r1 * COLS + i], w[r2 * COLS + i], w[r3 * COLS + i]);
    a = fma(v, vec4<f32>(x[col * COLS + i]), a);
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
