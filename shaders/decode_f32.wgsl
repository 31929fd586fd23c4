// Decode helper for F32: one array of floats, rows of whole octets.
@group(1) @binding(8) var<storage, read> wq: array<vec4<f32>>;

const HAS_MIN: bool = false;

fn octet(o: u32) -> Octet {
  return Octet(wq[2u * o], wq[2u * o + 1u], 1.0, 0.0);
}
