// Decode helper: half precision by integer arithmetic, exact for every pattern, because drivers may flush subnormal
// halves (spec engine.md 0.1) and may round pack2x16float as they like.

// half_to_f32 is the value of the low 16 bits of h.
fn half_to_f32(h: u32) -> f32 {
  let a = (h & 0x7fffu) << 13u;
  let sub = bitcast<f32>(a + 0x38800000u) - 0x1p-14f;
  let normal = select(a + 0x38000000u, a | 0x7f800000u, a >= 0x0f800000u);
  let magnitude = select(normal, bitcast<u32>(sub), a < 0x00800000u);
  return bitcast<f32>(magnitude | ((h & 0x8000u) << 16u));
}

// f32_to_half rounds to the nearest half, ties to even; from 65520 up it is infinite.
fn f32_to_half(x: f32) -> u32 {
  let b = bitcast<u32>(x);
  let sign = (b >> 16u) & 0x8000u;
  let a = b & 0x7fffffffu;
  if (a > 0x7f800000u) {
    let payload = (a >> 13u) & 0x3ffu;
    return sign | 0x7c00u | select(payload, 0x200u, payload == 0u);
  }
  if (a >= 0x477ff000u) {
    return sign | 0x7c00u;
  }
  if (a >= 0x38800000u) {
    return sign | ((a - 0x38000000u + 0xfffu + ((a >> 13u) & 1u)) >> 13u);
  }
  // A subnormal half counts units of 2^-24. A shift of 25 leaves nothing.
  let shift = min(126u - (a >> 23u), 25u);
  let man = (a & 0x7fffffu) | 0x800000u;
  let whole = man >> shift;
  let rest = man & ((1u << shift) - 1u);
  let mid = 1u << (shift - 1u);
  let up = rest > mid || (rest == mid && (whole & 1u) == 1u);
  return sign | (whole + select(0u, 1u, up));
}
