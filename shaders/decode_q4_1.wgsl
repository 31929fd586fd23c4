// Decode helper for Q4_1: nibbles as Q4_0, two halves d and m a block of 32; d q + m.
@group(1) @binding(8) var<storage, read> wq: array<u32>;
@group(1) @binding(9) var<storage, read> wd: array<u32>;

const HAS_MIN: bool = true;

fn octet(o: u32) -> Octet {
  let w = wq[o];
  let s = wd[o >> 2u];
  return Octet(vec4<f32>(nibbles(w)), vec4<f32>(nibbles(w >> 4u)), half_of(s), half_of(s >> 16u));
}
