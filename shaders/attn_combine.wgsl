// out[c][h] = sum_s exp(m_s - M) o_s / sum_s exp(m_s - M) l_s, M = max_s m_s
//
// part (n, HEADS, SPLITS, HD + 2): o (HD), m, l of every split, from attn_decode_*; out (n, HEADS, HD).
// A workgroup computes one head of one column that has more than DIRECT_MAX positions: weights of the splits in
// parallel, then a thread adds up one dimension. Grid: x is the head, y the column.
// Constants: HEADS, HD, SPLITS, DIRECT_MAX, WG (a multiple of 16).
@group(1) @binding(0) var<storage, read> part: array<f32>;
@group(1) @binding(1) var<storage, read_write> out: array<f32>;

const SIZE: u32 = HD + 2u;
const LOW: f32 = -3.0e38;
var<workgroup> weight: array<f32, SPLITS>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let n = frame.pos + wid.y + 1u;
  if (n <= DIRECT_MAX) {
    return;
  }
  let count = (n + split_len(n) - 1u) / split_len(n);
  let head = wid.y * HEADS + wid.x;
  let base = head * SPLITS * SIZE;
  var m = LOW;
  for (var s = t; s < count; s += WG) {
    m = max(m, part[base + s * SIZE + HD]);
  }
  let top = max_all(t, m);
  var l = 0.0;
  for (var s = t; s < count; s += WG) {
    let e = exp(part[base + s * SIZE + HD] - top);
    weight[s] = e;
    l = fma(e, part[base + s * SIZE + HD + 1u], l);
  }
  let total = sum_all(t, l); // its barriers also publish weight
  for (var i = t; i < HD; i += WG) {
    var a = 0.0;
    for (var s = 0u; s < count; s += 1u) {
      a = fma(weight[s], part[base + s * SIZE + i], a);
    }
    out[head * HD + i] = a / total;
  }
}
