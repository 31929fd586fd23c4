// Decode helper: the products of one step of a matrix-vector kernel. Written with fma in a fixed order, so that kernels
// for one and for several columns round alike (the bit contract of package op).
fn dot4(w: vec4<f32>, x: vec4<f32>) -> f32 {
  return fma(w.w, x.w, fma(w.z, x.z, fma(w.y, x.y, w.x * x.x)));
}
