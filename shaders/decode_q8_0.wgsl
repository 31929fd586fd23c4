// Decode helper: four signed bytes of a word, lowest byte first. Two shifts beat unpack4x8snorm (spec engine.md 5.3).
fn bytes4(w: u32) -> vec4<f32> {
  return vec4<f32>(
    f32(bitcast<i32>(w << 24u) >> 24u),
    f32(bitcast<i32>(w << 16u) >> 24u),
    f32(bitcast<i32>(w << 8u) >> 24u),
    f32(bitcast<i32>(w) >> 24u));
}

// scale_of is the scale of block i: two halves a word, counted over the whole piece, not per row.
fn scale_of(word: u32, i: u32) -> f32 {
  return half_to_f32(word >> ((i & 1u) * 16u));
}
