// keys[pos+c][i] = k[c][i], values[pos+c][i] = v[c][i]
//
// k, v (n, WIDTH); keys, values (capacity, WIDTH). A workgroup writes WG values of one row of both.
// Grid: x over the values, y is the column. Constants: WIDTH, WG.
@group(1) @binding(0) var<storage, read> k: array<f32>;
@group(1) @binding(1) var<storage, read> v: array<f32>;
@group(1) @binding(2) var<storage, read_write> keys: array<f32>;
@group(1) @binding(3) var<storage, read_write> values: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let i = wid.x * WG + t;
  if (i >= WIDTH) {
    return;
  }
  let to = (frame.pos + wid.y) * WIDTH + i;
  keys[to] = k[wid.y * WIDTH + i];
  values[to] = v[wid.y * WIDTH + i];
}
