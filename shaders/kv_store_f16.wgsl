// keys[pos+c][i] = half(k[c][i]), values[pos+c][i] = half(v[c][i]), nearest, ties to even
//
// k, v (n, WIDTH); keys, values (capacity, WIDTH) halves, two a word, lower half first.
// A workgroup writes WG words of one row of both. Grid: x over the words, y is the column.
// Constants: WIDTH (even), WG. pack2x16float would do, but how it rounds is the driver's choice.
@group(1) @binding(0) var<storage, read> k: array<f32>;
@group(1) @binding(1) var<storage, read> v: array<f32>;
@group(1) @binding(2) var<storage, read_write> keys: array<u32>;
@group(1) @binding(3) var<storage, read_write> values: array<u32>;

const WORDS: u32 = WIDTH / 2u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let i = wid.x * WG + t;
  if (i >= WORDS) {
    return;
  }
  let src = wid.y * WIDTH + 2u * i;
  let to = (frame.pos + wid.y) * WORDS + i;
  keys[to] = f32_to_half(k[src]) | (f32_to_half(k[src + 1u]) << 16u);
  values[to] = f32_to_half(v[src]) | (f32_to_half(v[src + 1u]) << 16u);
}
