// Decode helper: as kv_f32.wgsl, and the rows are written too.
@group(1) @binding(8) var<storage, read_write> keys: array<Raw>;
@group(1) @binding(9) var<storage, read_write> values: array<Raw>;

// raw is an octet as the cache holds it.
fn raw(lo: vec4<f32>, hi: vec4<f32>) -> Raw {
  return Raw(lo, hi);
}
