// Decode helper for Q6_K: nibbles as Q4_0, sixteen bits an octet with the upper pairs in order; per block of 256 five
// words: sixteen signed scales (a byte each) of 16 weights, then the half d; d sc (q - 32).
@group(1) @binding(8) var<storage, read> wq: array<u32>;
@group(1) @binding(9) var<storage, read> wh: array<u32>;
@group(1) @binding(10) var<storage, read> ws: array<u32>;

const HAS_MIN: bool = false;
const SHARED: u32 = 2u;

// pairs4 is the lowest four pairs of bits, each moved to bits 4 and 5.
fn pairs4(h: u32) -> vec4<u32> {
  return (vec4<u32>(h << 4u) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(48u);
}

fn quants(o: u32) -> Quants {
  let w = wq[o];
  let h = wh[o >> 1u] >> ((o & 1u) * 16u);
  return Quants(vec4<f32>(nibbles(w) | pairs4(h)) - 32.0, vec4<f32>(nibbles(w >> 4u) | pairs4(h >> 8u)) - 32.0);
}

fn scale_of(o: u32) -> Scale {
  let at = (o >> 5u) * 5u;
  let s = bitcast<i32>(ws[at + ((o >> 3u) & 3u)] << (24u - ((o >> 1u) & 3u) * 8u)) >> 24u;
  return Scale(half_of(ws[at + 4u]) * f32(s), 0.0);
}
