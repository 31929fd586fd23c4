// o[c][h] = sum_p softmax_p(q[c][h] . keys[p][g] scale) values[p][g], p <= pos + c, g = h / (HEADS/KVHEADS)
//
// q, out (n, HEADS, HD); keys, values (capacity, KVHEADS, HD), see pairs_*.wgsl.
// A workgroup computes one head of one column, WG positions at a time with a running softmax: a thread forms the score of one
// position, then threads add up the values, two dimensions each, in groups that take every GROUPS-th position.
// Grid: x is the head, y the column. Constants: HEADS, KVHEADS, HD (even, at most 2 WG), WG (a multiple of 16).
// The plain way, for heads of any even size; attn_split and attn_tile are faster.
struct Params {
  scale: f32,
}
@group(1) @binding(0) var<storage, read> q: array<vec2<f32>>;
@group(1) @binding(1) var<storage, read_write> out: array<vec2<f32>>;
@group(1) @binding(2) var<uniform> params: Params;

const SHARE: u32 = HEADS / KVHEADS;
const PAIRS: u32 = HD / 2u;
const GROUPS: u32 = WG / PAIRS;
const LOW: f32 = -3.0e38;
var<workgroup> qs: array<vec2<f32>, PAIRS>;
var<workgroup> weight: array<f32, WG>;
var<workgroup> part: array<vec2<f32>, WG>;

fn score(row: u32) -> f32 {
  var a = vec2<f32>();
  for (var j = 0u; j < PAIRS; j += 1u) {
    a = fma(key_pair(row * PAIRS + j), qs[j], a);
  }
  return a.x + a.y;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let n = frame.pos + wid.y + 1u;
  let head = wid.y * HEADS + wid.x;
  let g = wid.x / SHARE;
  for (var i = t; i < PAIRS; i += WG) {
    qs[i] = q[head * PAIRS + i];
  }
  workgroupBarrier();
  let group = t / PAIRS;
  let pair = t % PAIRS;
  var top = LOW;
  var total = 0.0;
  var acc = vec2<f32>();
  for (var p0 = 0u; p0 < n; p0 += WG) {
    let here = p0 + t < n;
    var s = LOW;
    if (here) {
      s = score((p0 + t) * KVHEADS + g) * params.scale;
    }
    let high = max(top, max_all(t, s));
    var e = 0.0;
    if (here) {
      e = exp(s - high);
    }
    weight[t] = e;
    let chunk = sum_all(t, e); // its barriers also publish weight
    let keep = exp(top - high);
    total = fma(total, keep, chunk);
    top = high;
    if (group < GROUPS) {
      acc = acc * keep;
      let count = min(n - p0, WG);
      for (var i = group; i < count; i += GROUPS) {
        acc = fma(vec2<f32>(weight[i]), value_pair(((p0 + i) * KVHEADS + g) * PAIRS + pair), acc);
      }
    }
    workgroupBarrier();
  }
  part[t] = acc;
  workgroupBarrier();
  if (t < PAIRS) {
    var sum = part[t];
    for (var i = 1u; i < GROUPS; i += 1u) {
      sum = sum + part[i * PAIRS + t];
    }
    out[head * PAIRS + t] = sum / total;
  }
}
