// Decode helper: rows of a cache of floats, written in pairs.
@group(1) @binding(6) var<storage, read_write> keys: array<vec2<f32>>;
@group(1) @binding(7) var<storage, read_write> values: array<vec2<f32>>;

fn put_key(at: u32, x: f32, y: f32) {
  keys[at] = vec2<f32>(x, y);
}

fn put_value(at: u32, x: f32, y: f32) {
  values[at] = vec2<f32>(x, y);
}
