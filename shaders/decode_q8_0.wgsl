// Decode helper for Q8_0 (and Q5_0, widened when loaded): 32 signed bytes and a half a block; d q.
@group(1) @binding(8) var<storage, read> wq: array<vec2<u32>>;
@group(1) @binding(9) var<storage, read> wd: array<u32>;

const HAS_MIN: bool = false;
const SHARED: u32 = 4u;

fn quants(o: u32) -> Quants {
  let w = wq[o];
  return Quants(bytes4(w.x), bytes4(w.y));
}

fn scale_of(o: u32) -> Scale {
  let b = o >> 2u;
  return Scale(half_of(wd[b >> 1u] >> ((b & 1u) * 16u)), 0.0);
}
