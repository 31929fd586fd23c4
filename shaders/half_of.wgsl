// Decode helper: the half in the low 16 bits of h. FAST_HALF is 1 where the device was seen to unpack every finite half
// exactly, subnormals too; elsewhere integers do it.
fn half_of(h: u32) -> f32 {
  if (FAST_HALF == 1u) {
    return unpack2x16float(h).x;
  }
  return half_to_f32(h);
}
