// Decode helper for Q5_K: as Q4_K with a byte of fifth bits an octet.
@group(1) @binding(8) var<storage, read> wq: array<u32>;
@group(1) @binding(9) var<storage, read> wh: array<u32>;
@group(1) @binding(10) var<storage, read> ws: array<u32>;

const HAS_MIN: bool = true;
const SHARED: u32 = 4u;

fn quants(o: u32) -> Quants {
  let w = wq[o];
  let h = wh[o >> 2u] >> ((o & 3u) * 8u);
  return Quants(vec4<f32>(nibbles(w) | bits4(h)), vec4<f32>(nibbles(w >> 4u) | bits4(h >> 4u)));
}

fn scale_of(o: u32) -> Scale {
  let at = (o >> 5u) * 5u;
  let s = ws[at + ((o >> 3u) & 3u)] >> (((o >> 2u) & 1u) * 16u);
  let d = ws[at + 4u];
  return Scale(half_of(d) * f32(s & 255u), -(half_of(d >> 16u) * f32((s >> 8u) & 255u)));
}
