// Decode helper: as kv_f16.wgsl, and the rows are written too.
@group(1) @binding(8) var<storage, read_write> keys: array<vec4<u32>>;
@group(1) @binding(9) var<storage, read_write> values: array<vec4<u32>>;

fn pair(a: f32, b: f32) -> u32 {
  return f32_to_half(a) | (f32_to_half(b) << 16u);
}

// raw is an octet as the cache holds it.
fn raw(lo: vec4<f32>, hi: vec4<f32>) -> vec4<u32> {
  return vec4<u32>(pair(lo.x, lo.y), pair(lo.z, lo.w), pair(hi.x, hi.y), pair(hi.z, hi.w));
}
