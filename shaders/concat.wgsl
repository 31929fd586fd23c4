// out[c] = [a[c] | b[c]]
//
// a (n, FIRST), b (n, WIDTH - FIRST), out (n, WIDTH). A workgroup copies WG values of one column.
// Grid: x over the values, y is the column. Constants: FIRST, WIDTH, WG.
@group(1) @binding(0) var<storage, read> a: array<f32>;
@group(1) @binding(1) var<storage, read> b: array<f32>;
@group(1) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let i = wid.x * WG + t;
  if (i >= WIDTH) {
    return;
  }
  if (i < FIRST) {
    out[wid.y * WIDTH + i] = a[wid.y * FIRST + i];
  } else {
    out[wid.y * WIDTH + i] = b[wid.y * (WIDTH - FIRST) + i - FIRST];
  }
}
