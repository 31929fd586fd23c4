// x[c][i] += y[c][i] / (1 + exp(-s[c]))
//
// x, y (n, WIDTH), s (n). A workgroup computes WG values of one column. Grid: x over the values, y is the column.
// Constants: WIDTH, WG.
@group(1) @binding(0) var<storage, read> y: array<f32>;
@group(1) @binding(1) var<storage, read> s: array<f32>;
@group(1) @binding(2) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let i = wid.x * WG + t;
  if (i >= WIDTH) {
    return;
  }
  let at = wid.y * WIDTH + i;
  x[at] = x[at] + y[at] / (1.0 + exp(-s[wid.y]));
}
