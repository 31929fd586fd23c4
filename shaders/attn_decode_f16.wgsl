// o[c][h] = sum_p softmax_p(q[c][h] . keys[p][g] scale) values[p][g], p <= pos + c, g = h / (HEADS/KVHEADS)
//
// q, out (n, HEADS, HD); keys, values (capacity, KVHEADS, HD) halves.
// A workgroup computes one head of one column over one split of the positions, WG positions at a time with a running
// softmax: a thread forms the score of one position, then threads add up the values, two dimensions each, in
// groups that take every GROUPS-th position. With DIRECT = 1 there is one split and out gets the result (columns of
// at most DIRECT_MAX positions); with DIRECT = 0 (the others) it gets the sum of the split unscaled, its maximum and its weight: attn_combine
// finishes. Grid: x is the head, y the column, z the split.
// Constants: HEADS, KVHEADS, HD (multiple of 8, at most 2 WG), SPLITS, DIRECT, DIRECT_MAX, WG (a multiple of 16).
// A fixed number of splits of the whole cache left most of the GPU idle in short contexts and was 20 times slower.
struct Params {
  scale: f32,
}
@group(1) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read> keys: array<vec4<u32>>;
@group(1) @binding(2) var<storage, read> values: array<u32>;
@group(1) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(4) var<uniform> params: Params;

const SHARE: u32 = HEADS / KVHEADS;
const PAIRS: u32 = HD / 2u;
const GROUPS: u32 = WG / PAIRS;
const QUADS: u32 = HD / 4u;
const LOW: f32 = -3.0e38;
var<workgroup> qs: array<vec4<f32>, QUADS>;
var<workgroup> weight: array<f32, WG>;
var<workgroup> part: array<vec2<f32>, WG>;

// score is q . keys[row], four running sums over the row.
fn score(row: u32) -> f32 {
  let base = row * (HD / 8u);
  var a = vec4<f32>();
  for (var j = 0u; j < HD / 8u; j += 1u) {
    let w = keys[base + j];
    a = fma(vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y)), qs[2u * j], a);
    a = fma(vec4<f32>(unpack2x16float(w.z), unpack2x16float(w.w)), qs[2u * j + 1u], a);
  }
  return (a.x + a.y) + (a.z + a.w);
}

fn value_pair(at: u32) -> vec2<f32> {
  return unpack2x16float(values[at]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let h = wid.x;
  let c = wid.y;
  let n = frame.pos + c + 1u;
  var start = 0u;
  var end = n;
  if (DIRECT == 1u) {
    if (n > DIRECT_MAX) {
      return;
    }
  } else {
    start = wid.z * split_len(n);
    end = min(start + split_len(n), n);
    if (n <= DIRECT_MAX || start >= n) {
      return;
    }
  }
  let g = h / SHARE;
  for (var i = t; i < QUADS; i += WG) {
    qs[i] = q[(c * HEADS + h) * QUADS + i];
  }
  workgroupBarrier();
  let group = t / PAIRS;
  let pair = t % PAIRS;
  var top = LOW;
  var total = 0.0;
  var acc = vec2<f32>();
  for (var p0 = start; p0 < end; p0 += WG) {
    let here = p0 + t < end;
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
      let count = min(end - p0, WG);
      for (var i = group; i < count; i += GROUPS) {
        acc = fma(vec2<f32>(weight[i]), value_pair(((p0 + i) * KVHEADS + g) * PAIRS + pair), acc);
      }
    }
  }
  part[t] = acc;
  workgroupBarrier();
  if (t < PAIRS) {
    var sum = part[t];
    for (var i = 1u; i < GROUPS; i += 1u) {
      sum = sum + part[i * PAIRS + t];
    }
    if (DIRECT == 1u) {
      let at = (c * HEADS + h) * HD + 2u * t;
      out[at] = sum.x / total;
      out[at + 1u] = sum.y / total;
    } else {
      let at = ((c * HEADS + h) * SPLITS + wid.z) * (HD + 2u) + 2u * t;
      out[at] = sum.x;
      out[at + 1u] = sum.y;
    }
  }
  if (DIRECT == 0u && t == 0u) {
    let at = ((c * HEADS + h) * SPLITS + wid.z) * (HD + 2u) + HD;
    out[at] = top;
    out[at + 1u] = total;
  }
}
