// a[c][h] = x[c][2h], b[c][h] = x[c][2h+1]
//
// x (n, 2 heads, HD), a, b (n, heads, HD), WIDTH = heads HD. A workgroup copies WG values of one column to both.
// Grid: x over the values, y is the column. Constants: WIDTH, HD, WG.
@group(1) @binding(0) var<storage, read> x: array<f32>;
@group(1) @binding(1) var<storage, read_write> a: array<f32>;
@group(1) @binding(2) var<storage, read_write> b: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let i = wid.x * WG + t;
  if (i >= WIDTH) {
    return;
  }
  let at = wid.y * 2u * WIDTH + i / HD * 2u * HD + i % HD;
  a[wid.y * WIDTH + i] = x[at];
  b[wid.y * WIDTH + i] = x[at + HD];
}
