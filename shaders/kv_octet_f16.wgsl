// Decode helper: eight cached halves as they lie in memory, and their values.
alias Raw = vec4<u32>;

struct Eight {
  lo: vec4<f32>,
  hi: vec4<f32>,
}

fn eight(w: Raw) -> Eight {
  return Eight(vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y)), vec4<f32>(unpack2x16float(w.z), unpack2x16float(w.w)));
}
