// Decode helper for Q4_K: nibbles as Q4_0; per block of 256 five words: eight times scale and offset (a byte each) of a
// sub-block of 32, then the halves d and dmin; d sc q - dmin m.
@group(1) @binding(8) var<storage, read> wq: array<u32>;
@group(1) @binding(9) var<storage, read> ws: array<u32>;

const HAS_MIN: bool = true;
const SHARED: u32 = 4u;

fn quants(o: u32) -> Quants {
  let w = wq[o];
  return Quants(vec4<f32>(nibbles(w)), vec4<f32>(nibbles(w >> 4u)));
}

fn scale_of(o: u32) -> Scale {
  let at = (o >> 5u) * 5u;
  let s = ws[at + ((o >> 3u) & 3u)] >> (((o >> 2u) & 1u) * 16u);
  let d = ws[at + 4u];
  return Scale(half_of(d) * f32(s & 255u), -(half_of(d >> 16u) * f32((s >> 8u) & 255u)));
}
