// Decode helper: the activations of a matrix kernel, (16, COLS), and the weights of their norm, (COLS), in uniform bindings of at
// most 64 KiB. A software adapter reads an element of them once for all threads that want the same one, where it reads storage
// thread by thread.
@group(1) @binding(0) var<uniform> x: array<vec4<f32>, X_QUADS>;
@group(1) @binding(1) var<uniform> norm: array<vec4<f32>, NORM_QUADS>;

const X_QUADS: u32 = 4u * COLS;
const NORM_QUADS: u32 = COLS / 4u;
