// Decode helper: the activations of a matrix kernel, (16, COLS), and the weights of their norm, (COLS).
@group(1) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read> norm: array<vec4<f32>>;
