// Decode helper: rows of a cache of halves, two a word: (capacity, KVHEADS, HD).
@group(1) @binding(8) var<storage, read> keys: array<vec4<u32>>;
@group(1) @binding(9) var<storage, read> values: array<vec2<u32>>;

struct Key8 {
  lo: vec4<f32>,
  hi: vec4<f32>,
}

// key8 is values 8o to 8o+7 of head g's key at a position.
fn key8(pos: u32, g: u32, o: u32) -> Key8 {
  let w = keys[(pos * KVHEADS + g) * (HD / 8u) + o];
  return Key8(vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y)), vec4<f32>(unpack2x16float(w.z), unpack2x16float(w.w)));
}

// value4 is values 4q to 4q+3 of head g's value at a position.
fn value4(pos: u32, g: u32, q: u32) -> vec4<f32> {
  let w = values[(pos * KVHEADS + g) * (HD / 4u) + q];
  return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));
}
