// Decode helper for BF16: one array of upper halves of floats, rows of whole octets.
@group(1) @binding(8) var<storage, read> wq: array<vec4<u32>>;

const HAS_MIN: bool = false;
const SHARED: u32 = 1u;

fn quants(o: u32) -> Quants {
  let w = wq[o];
  let low = bitcast<vec4<f32>>(w << vec4<u32>(16u));
  let high = bitcast<vec4<f32>>(w & vec4<u32>(0xffff0000u));
  return Quants(vec4<f32>(low.x, high.x, low.y, high.y), vec4<f32>(low.z, high.z, low.w, high.w));
}

fn scale_of(o: u32) -> Scale {
  return Scale(1.0, 0.0);
}
