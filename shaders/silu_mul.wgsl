// out[c][i] = gate[c][i] / (1 + exp(-gate[c][i])) * up[c][i]
//
// gate, up, out (n, WIDTH). A workgroup computes WG values of one column. Grid: x over the values, y is the column.
// Constants: WIDTH, WG.
@group(1) @binding(0) var<storage, read> gate: array<f32>;
@group(1) @binding(1) var<storage, read> up: array<f32>;
@group(1) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let i = wid.x * WG + t;
  if (i >= WIDTH) {
    return;
  }
  let at = wid.y * WIDTH + i;
  let g = gate[at];
  out[at] = g / (1.0 + exp(-g)) * up[at];
}
