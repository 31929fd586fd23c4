// Decode helper for F16: one array of halves, rows of whole octets.
@group(1) @binding(8) var<storage, read> wq: array<vec4<u32>>;

const HAS_MIN: bool = false;
const SHARED: u32 = 1u;

fn quants(o: u32) -> Quants {
  let w = wq[o];
  return Quants(
    vec4<f32>(half_of(w.x), half_of(w.x >> 16u), half_of(w.y), half_of(w.y >> 16u)),
    vec4<f32>(half_of(w.z), half_of(w.z >> 16u), half_of(w.w), half_of(w.w >> 16u)));
}

fn scale_of(o: u32) -> Scale {
  return Scale(1.0, 0.0);
}
