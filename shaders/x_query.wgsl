// Decode helper: the queries (n, HEADS, HD) from storage.
@group(1) @binding(0) var<storage, read> q: array<vec4<f32>>;
