// Decode helper: eight consecutive weights of a row, an octet, and their product with eight activations. Each format's
// decode file reads its arrays (bindings 8 and up): weight i of octet o is scale_of(o).d * quants(o)[i], plus scale_of(o).m where
// the format has an offset (HAS_MIN). SHARED octets from a multiple of SHARED on have the same scale. Written with fma in a fixed order, so that kernels for one and for several columns round alike (the
// bit contract of package op).
struct Quants {
  lo: vec4<f32>, // the first four, unscaled
  hi: vec4<f32>,
}

struct Scale {
  d: f32,
  m: f32,
}

fn dot8(w: Quants, a: vec4<f32>, b: vec4<f32>) -> f32 {
  let s = fma(w.lo, a, w.hi * b);
  return (s.x + s.y) + (s.z + s.w);
}

fn sum8(a: vec4<f32>, b: vec4<f32>) -> f32 {
  let s = a + b;
  return (s.x + s.y) + (s.z + s.w);
}

// scaled adds a product with unscaled weights to acc; sum is that of the activations.
fn scaled(s: Scale, dot: f32, sum: f32, acc: f32) -> f32 {
  if (HAS_MIN) {
    return fma(s.m, sum, fma(s.d, dot, acc));
  }
  return fma(s.d, dot, acc);
}

fn scaled4(s: Scale, dot: vec4<f32>, sum: vec4<f32>, acc: vec4<f32>) -> vec4<f32> {
  if (HAS_MIN) {
    return fma(vec4<f32>(s.m), sum, fma(vec4<f32>(s.d), dot, acc));
  }
  return fma(vec4<f32>(s.d), dot, acc);
}

// dot8x4 is dot8 for four columns.
fn dot8x4(w: Quants, a: array<vec4<f32>, 8>) -> vec4<f32> {
  return vec4<f32>(dot8(w, a[0], a[1]), dot8(w, a[2], a[3]), dot8(w, a[4], a[5]), dot8(w, a[6], a[7]));
}

fn bytes4(w: u32) -> vec4<f32> { // two shifts beat unpack4x8snorm (spec engine.md 5.3)
  return vec4<f32>(
    f32(bitcast<i32>(w << 24u) >> 24u),
    f32(bitcast<i32>(w << 16u) >> 24u),
    f32(bitcast<i32>(w << 8u) >> 24u),
    f32(bitcast<i32>(w) >> 24u));
}

// nibbles is the low nibble of each byte, the first byte lowest.
fn nibbles(w: u32) -> vec4<u32> {
  return (vec4<u32>(w) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u);
}

// bits4 is the lowest four bits, each moved to bit 4.
fn bits4(h: u32) -> vec4<u32> {
  return (vec4<u32>(h << 4u) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(16u);
}
