// o[c][h] = sum_p softmax_p(q[c][h] . keys[p][g] scale) values[p][g], p <= pos + c, g = h / (HEADS/KVHEADS)
//
// q, out (n, HEADS, HD); keys, values (capacity, KVHEADS, HD), see kv_*.wgsl; part (n, HEADS, SPLITS, HD + 4): o, m, l.
// A workgroup computes up to HELD heads that share a cached head, one column, over one split of the positions: see attn_team.wgsl.
// Columns of at most DIRECT_MAX positions have one split and get their result; of the others part gets the sum of the split
// unscaled, its maximum and its weight, and attn_combine finishes. Grid: x is the cached head and its folds, y the column, z the split.
// Constants: HEADS, KVHEADS, HD (multiple of 8), SPLITS, STEP, DIRECT_MAX, HELD (1 to 8), TEAM (4 TEAM is at least HD/8), WG.
// One thread a position and one head a workgroup (attn_decode) reads keys without neighbours and waits longer.
struct Params {
  scale: f32,
}
@group(1) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read_write> part: array<f32>;
@group(1) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let p = place(wid);
  if (p.start >= p.end) {
    return;
  }
  let k = load_keys(p, p.start, t);
  for (var i = t; i < p.heads * QUADS; i += WG) {
    qs[i] = q[(p.c * HEADS + p.first) * QUADS + i];
  }
  workgroupBarrier();
  attend(p, k, params.scale, t);
}
