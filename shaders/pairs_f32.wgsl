// Decode helper: rows of a cache of floats in pairs, (capacity, KVHEADS, HD/2), for heads of any even size.
@group(1) @binding(8) var<storage, read> keys: array<vec2<f32>>;
@group(1) @binding(9) var<storage, read> values: array<vec2<f32>>;

fn key_pair(at: u32) -> vec2<f32> {
  return keys[at];
}

fn value_pair(at: u32) -> vec2<f32> {
  return values[at];
}
