// Decode helper: rows of a cache of halves, written in pairs.
@group(1) @binding(6) var<storage, read_write> keys: array<u32>;
@group(1) @binding(7) var<storage, read_write> values: array<u32>;

fn put_key(at: u32, x: f32, y: f32) {
  keys[at] = f32_to_half(x) | (f32_to_half(y) << 16u);
}

fn put_value(at: u32, x: f32, y: f32) {
  values[at] = f32_to_half(x) | (f32_to_half(y) << 16u);
}
