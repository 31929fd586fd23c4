// Decode helper for Q4_0: a word of nibbles an octet (the low ones are its first four), a half a block of 32; d (q - 8).
@group(1) @binding(8) var<storage, read> wq: array<u32>;
@group(1) @binding(9) var<storage, read> wd: array<u32>;

const HAS_MIN: bool = false;
const SHARED: u32 = 4u;

fn quants(o: u32) -> Quants {
  let w = wq[o];
  return Quants(vec4<f32>(nibbles(w)) - 8.0, vec4<f32>(nibbles(w >> 4u)) - 8.0);
}

fn scale_of(o: u32) -> Scale {
  let b = o >> 2u;
  return Scale(half_of(wd[b >> 1u] >> ((b & 1u) * 16u)), 0.0);
}
