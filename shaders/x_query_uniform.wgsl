// Decode helper: the queries (n, HEADS, HD) of up to 16 columns from a uniform binding.
const Q_SIZE: u32 = 4u * HEADS * HD; // quads of 16 columns
@group(1) @binding(0) var<uniform> q: array<vec4<f32>, Q_SIZE>;
