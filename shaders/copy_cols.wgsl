// out[c][i] = x[c + first][i]
//
// x, out (16, WIDTH). A workgroup copies WG values of one column. Grid: x over the values, y is the column.
// Constants: WIDTH, WG.
@group(1) @binding(0) var<storage, read> x: array<f32>;
@group(1) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let i = wid.x * WG + t;
  if (i >= WIDTH) {
    return;
  }
  out[wid.y * WIDTH + i] = x[(wid.y + frame.first) * WIDTH + i];
}
