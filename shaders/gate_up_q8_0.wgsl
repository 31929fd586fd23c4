// gate[c][r] = Wgate[r] . x[c], up[c][r] = Wup[r] . x[c], out[c][r] = gate / (1 + exp(-gate)) * up        one column at a time
//
// x (n, COLS), gate_q, up_q (rows, COLS) bytes, gate_d, up_d (rows, COLS/32) halves; gate, up, out (n, rows).
// One launch instead of three. LANES threads share 2 rows of both matrices and one column; their partial sums meet as in
// matvec_q8_0. A workgroup computes 2 WG/LANES rows. Grid: x and y fold the workgroups (32,768 a line), z is the column.
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
var<workgroup> red: array<vec4<f32>, WG>;

// finish writes row r of column c.
fn finish(c: u32, r: u32, g: f32, u: f32) {
  let at = c * params.rows + r;
  gate[at] = g;
  up[at] = u;
  out[at] = g / (1.0 + exp(-g)) * u;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let lane = t % LANES;
  let first = (wid.y * 32768u + wid.x) * (WG / LANES) * 2u;
  let col = wid.z;
  if (first >= params.rows || col >= frame.n) {
    return;
  }
  let row = first + t / LANES * 2u;
  let last = params.rows - 1u;
  let r0 = min(row, last);
  let r1 = min(row + 1u, last);
  var a = vec4<f32>();
  for (var i = lane; i < WORDS; i += LANES) {
    let xv = x[col * WORDS + i];
    let b0 = r0 * BLOCKS + (i >> 3u);
    let b1 = r1 * BLOCKS + (i >> 3u);
    let s = vec4<f32>(
      scale_of(gate_d[b0 >> 1u], b0), scale_of(up_d[b0 >> 1u], b0),
      scale_of(gate_d[b1 >> 1u], b1), scale_of(up_d[b1 >> 1u], b1));
    let p = vec4<f32>(
      dot4(bytes4(gate_q[r0 * WORDS + i]), xv),
      dot4(bytes4(up_q[r0 * WORDS + i]), xv),
      dot4(bytes4(gate_q[r1 * WORDS + i]), xv),
      dot4(bytes4(up_q[r1 * WORDS + i]), xv));
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
  finish(col, row, v.x, v.y);
  if (row + 1u < params.rows) {
    finish(col, row + 1u, v.z, v.w);
  }
}
