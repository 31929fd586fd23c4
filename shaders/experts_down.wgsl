// out[c][r] += sum_k weight[c][k] sum_i w[e F + r][i] x[c][k][i], e = sel[c][k]
//
// x (n, USED, COLS), sel (n, 2 USED), w (experts F, COLS) in any format, of which the arrays hold rows row0..row0+rows-1, out (n, F).
// A workgroup computes ROWS WG/LANES rows of one column: its threads walk one expert's rows after the other's, and the weighted
// sums meet once. Experts of other pieces count as 0: each piece adds its own. Grid: x is the column, y and z fold the workgroups
// (32,768 a line).
// Constants: COLS (multiple of 8), F, USED, WG, LANES (1 or 8 up to WG, powers of two), ROWS (1, 2, 4), NORM (0), FAST_HALF.
struct Params {
  rows: u32,  // of this piece
  row0: u32,
  at: u32,    // octets in the arrays before the piece
  eps: f32,
}
@group(1) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read> norm: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> sel: array<u32>;
@group(1) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(4) var<uniform> params: Params;

const OCTETS: u32 = COLS / 8u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let lane = select(t % LANES, 0u, LANES == 1u);
  let c = wid.x;
  let row = (wid.z * 32768u + wid.y) * (WG / LANES) * ROWS + t / LANES * ROWS;
  let mine = min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(F - 1u));
  var a = Sums(vec4<f32>(), 0.0);
  for (var k = 0u; k < USED; k += 1u) {
    let r = sel[c * 2u * USED + k] * F + mine;
    let weight = bitcast<f32>(sel[c * 2u * USED + USED + k]);
    let here = min(max(r, vec4<u32>(params.row0)) - params.row0, vec4<u32>(params.rows - 1u));
    let v = walk(here * OCTETS + params.at, c * USED + k, lane);
    let there = (r >= vec4<u32>(params.row0)) & (r - params.row0 < vec4<u32>(params.rows));
    a.rows = select(a.rows, fma(vec4<f32>(weight), v.rows, a.rows), there);
  }
  let v = meet(a, t, lane);
  if (lane != 0u) {
    return;
  }
  let at = c * F + row;
  if (row < F) {
    out[at] = out[at] + v.x;
  }
  if (ROWS > 1u && row + 1u < F) {
    out[at + 1u] = out[at + 1u] + v.y;
  }
  if (ROWS > 2u) {
    if (row + 2u < F) {
      out[at + 2u] = out[at + 2u] + v.z;
    }
    if (row + 3u < F) {
      out[at + 3u] = out[at + 3u] + v.w;
    }
  }
}
