// Decode helper: eight cached floats as they lie in memory, and their values.
struct Eight {
  lo: vec4<f32>,
  hi: vec4<f32>,
}

alias Raw = Eight;

fn eight(w: Raw) -> Eight {
  return w;
}
