// x[c][i] = x[c][i] / (1 + exp(-g[c][i])), in place
//
// x, g (n, WIDTH). A workgroup computes WG values of one column. Grid: x over the values, y is the column.
// Constants: WIDTH, WG.
@group(1) @binding(0) var<storage, read> g: array<f32>;
@group(1) @binding(1) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let i = wid.x * WG + t;
  if (i >= WIDTH) {
    return;
  }
  let at = wid.y * WIDTH + i;
  x[at] = x[at] / (1.0 + exp(-g[at]));
}
