// out[c][h] = sum_s exp(m_s - M) o_s / sum_s exp(m_s - M) l_s, M = max_s m_s
//
// part (n, HEADS, SPLITS, HD + 4): o (HD), m, l of every split, from attn_split; out (n, HEADS, HD).
// A workgroup computes one head of one column that has more than DIRECT_MAX positions: HD/4 threads add up four dimensions each, in
// groups that take every GROUPS-th split, four at a time; then the groups are added. Grid: x is the head, y the column.
// Constants: HEADS, HD (multiple of 4), SPLITS, STEP, DIRECT_MAX, WG (at least HD/4).
@group(1) @binding(0) var<storage, read> part: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read_write> out: array<vec4<f32>>;

const QUADS: u32 = HD / 4u;
const GROUPS: u32 = WG / QUADS;
const LOW: f32 = -3.0e38;
var<workgroup> tops: array<f32, GROUPS>;
var<workgroup> totals: array<f32, GROUPS>;
var<workgroup> sums: array<vec4<f32>, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let n = frame.pos + wid.y + 1u;
  if (n <= DIRECT_MAX) {
    return;
  }
  let count = (n + split_len(n) - 1u) / split_len(n);
  let head = wid.y * HEADS + wid.x;
  let base = head * SPLITS * (QUADS + 1u);
  let group = t / QUADS;
  let quad = t % QUADS;
  var top = LOW;
  var total = 0.0;
  var sum = vec4<f32>();
  if (group < GROUPS) {
    for (var s = group; s < count; s += 4u * GROUPS) {
      let at = vec4<u32>(s, s + GROUPS, s + 2u * GROUPS, s + 3u * GROUPS);
      let row = base + min(at, vec4<u32>(count - 1u)) * (QUADS + 1u);
      let a = part[row.x + QUADS];
      let b = part[row.y + QUADS];
      let c = part[row.z + QUADS];
      let d = part[row.w + QUADS];
      let x = part[row.x + quad];
      let y = part[row.y + quad];
      let z = part[row.z + quad];
      let w = part[row.w + quad];
      let m = select(vec4<f32>(LOW), vec4<f32>(a.x, b.x, c.x, d.x), at < vec4<u32>(count));
      let high = max(top, max(max(m.x, m.y), max(m.z, m.w)));
      let keep = exp(top - high);
      let e = exp(m - vec4<f32>(high));
      top = high;
      total = fma(e.w, d.y, fma(e.z, c.y, fma(e.y, b.y, fma(e.x, a.y, total * keep))));
      sum = sum * keep;
      sum = fma(vec4<f32>(e.x), x, sum);
      sum = fma(vec4<f32>(e.y), y, sum);
      sum = fma(vec4<f32>(e.z), z, sum);
      sum = fma(vec4<f32>(e.w), w, sum);
    }
    if (quad == 0u) {
      tops[group] = top;
      totals[group] = total;
    }
    sums[t] = sum;
  }
  workgroupBarrier();
  if (t < QUADS) {
    var high = LOW;
    for (var i = 0u; i < GROUPS; i += 1u) {
      high = max(high, tops[i]);
    }
    var all = 0.0;
    var o = vec4<f32>();
    for (var i = 0u; i < GROUPS; i += 1u) {
      let f = exp(tops[i] - high);
      all = fma(f, totals[i], all);
      o = fma(vec4<f32>(f), sums[i * QUADS + t], o);
    }
    out[head * QUADS + t] = o / all;
  }
}
