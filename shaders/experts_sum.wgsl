// out[c][i] += sum_k weight[c][k] y[place[c][k]][i], in the order of k
//
// y (pairs, WIDTH) what the chosen experts gave, at the places that experts_sort gave them, place (n, USED), sel (n, 2 USED) as route
// makes it, out (n, WIDTH). A workgroup computes WG values of one column. Grid: x over the values, y is the column.
// Constants: WIDTH, USED, WG.
@group(1) @binding(0) var<storage, read> y: array<f32>;
@group(1) @binding(1) var<storage, read> place: array<u32>;
@group(1) @binding(2) var<storage, read> sel: array<u32>;
@group(1) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let c = wid.y;
  let i = wid.x * WG + t;
  if (i >= WIDTH) {
    return;
  }
  var sum = 0.0;
  for (var k = 0u; k < USED; k += 1u) {
    sum = fma(bitcast<f32>(sel[(2u * c + 1u) * USED + k]), y[place[c * USED + k] * WIDTH + i], sum);
  }
  out[c * WIDTH + i] += sum;
}
