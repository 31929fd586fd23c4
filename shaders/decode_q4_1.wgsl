// Decode helper for Q4_1: nibbles as Q4_0, two halves d and m a block of 32; d q + m.
@group(1) @binding(8) var<storage, read> wq: array<u32>;
@group(1) @binding(9) var<storage, read> wd: array<u32>;

const HAS_MIN: bool = true;
const SHARED: u32 = 4u;

fn quants(o: u32) -> Quants {
  let w = wq[o];
  return Quants(vec4<f32>(nibbles(w)), vec4<f32>(nibbles(w >> 4u)));
}

fn scale_of(o: u32) -> Scale {
  let s = wd[o >> 2u];
  return Scale(half_of(s), half_of(s >> 16u));
}
