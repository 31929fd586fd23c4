// Decode helper for F32: one array of floats, rows of whole octets.
@group(1) @binding(8) var<storage, read> wq: array<vec4<f32>>;

const HAS_MIN: bool = false;
const SHARED: u32 = 1u;

fn quants(o: u32) -> Quants {
  return Quants(wq[2u * o], wq[2u * o + 1u]);
}

fn scale_of(o: u32) -> Scale {
  return Scale(1.0, 0.0);
}
