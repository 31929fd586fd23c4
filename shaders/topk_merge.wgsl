// out[c] = (number of non-finite values, 0), then the frame.k largest of the column as (id, bits), by value descending,
// then id ascending
//
// cand (n, SLICES, 64) with keys and bad (n, SLICES) from topk_slice; out (n, 2 + 2 k) words.
// A workgroup merges the sorted lists of one column: k times the best head is taken and its list moved on.
// Grid: x is the column. Constants: SLICES (at most 1024).
@group(1) @binding(0) var<storage, read> cand: array<vec2<u32>>;
@group(1) @binding(1) var<storage, read> bad: array<u32>;
@group(1) @binding(2) var<storage, read_write> out: array<u32>;

const NONE: u32 = 0xffffffffu;
var<workgroup> head: array<u32, SLICES>;
var<workgroup> best: array<u32, 256>;
var<workgroup> who: array<u32, 256>;
var<workgroup> list: array<u32, 256>;
var<workgroup> count: array<u32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let base = wid.x * SLICES;
  let to = wid.x * (2u + 2u * frame.k);
  var wrong = 0u;
  for (var s = t; s < SLICES; s += 256u) {
    head[s] = 0u;
    wrong += bad[base + s];
  }
  count[t] = wrong;
  for (var r = 0u; r < frame.k; r += 1u) {
    var b = 0u;
    var w = NONE;
    var f = NONE;
    for (var s = t; s < SLICES; s += 256u) {
      if (head[s] < frame.k) {
        let c = cand[(base + s) * 64u + head[s]];
        if (c.y > b) {
          b = c.y;
          w = c.x;
          f = s;
        }
      }
    }
    best[t] = b;
    who[t] = w;
    list[t] = f;
    workgroupBarrier();
    if (t < 16u) {
      for (var i = t + 16u; i < 256u; i += 16u) {
        if (best[i] > best[t] || (best[i] == best[t] && who[i] < who[t])) {
          best[t] = best[i];
          who[t] = who[i];
          list[t] = list[i];
        }
      }
    }
    workgroupBarrier();
    if (t == 0u) {
      for (var i = 1u; i < 16u; i += 1u) {
        if (best[i] > best[t] || (best[i] == best[t] && who[i] < who[t])) {
          best[t] = best[i];
          who[t] = who[i];
          list[t] = list[i];
        }
      }
      out[to + 2u + 2u * r] = who[0];
      out[to + 3u + 2u * r] = select(~best[0], best[0] & 0x7fffffffu, (best[0] & 0x80000000u) != 0u);
      if (list[0] != NONE) {
        head[list[0]] = head[list[0]] + 1u;
      }
    }
    workgroupBarrier();
  }
  workgroupBarrier();
  if (t < 16u) {
    for (var i = t + 16u; i < 256u; i += 16u) {
      count[t] = count[t] + count[i];
    }
  }
  workgroupBarrier();
  if (t == 0u) {
    for (var i = 1u; i < 16u; i += 1u) {
      count[0] = count[0] + count[i];
    }
    out[to] = count[0];
    out[to + 1u] = 0u;
  }
}
