// o[c][h] = sum_p softmax_p(q[c][h] . keys[p][g] scale) values[p][g], p <= pos + c, g = h / (HEADS/KVHEADS)
//
// q, out (n, HEADS, HD); keys, values (capacity, KVHEADS, HD), see kv_*.wgsl.
// A workgroup computes up to four heads that share a cached head, one column, over one split of the positions, WG/2 positions at
// a time with a running softmax: the four are the components of vectors, so that a key and a value are read once for them.
// Two threads form the scores of a position; then HD/4 threads add up four dimensions each, in groups that take every
// GROUPS-th position. With DIRECT = 1 there is one split and out gets the result (columns of at most DIRECT_MAX positions); with
// DIRECT = 0 (the others) the sum of the split unscaled, its maximum and its weight: attn_combine finishes.
// Grid: x is the cached head and its fours, y the column, z the split.
// Constants: HEADS, KVHEADS, HD (multiple of 8, at most 256), SPLITS, DIRECT, DIRECT_MAX, WG (a multiple of 64).
// One thread a position and one head a workgroup (attn_decode) reads keys without neighbours and waits longer.
struct Params {
  scale: f32,
}
@group(1) @binding(0) var<storage, read> q: array<f32>;
@group(1) @binding(1) var<storage, read_write> out: array<f32>;
@group(1) @binding(2) var<uniform> params: Params;

const SHARE: u32 = HEADS / KVHEADS;
const FOURS: u32 = (SHARE + 3u) / 4u;
const CHUNK: u32 = WG / 2u;
const QUADS: u32 = HD / 4u;
const GROUPS: u32 = WG / QUADS;
const SUMS: u32 = 4u * WG;
const LOW: f32 = -3.0e38;
var<workgroup> qs: array<vec4<f32>, HD>;
var<workgroup> part: array<vec4<f32>, WG>;
var<workgroup> weight: array<vec4<f32>, CHUNK>;
var<workgroup> sums: array<vec4<f32>, SUMS>;
var<workgroup> totals: array<vec4<f32>, GROUPS>;

// scores is a thread's half of the products of a position with the four heads.
fn scores(pos: u32, g: u32, r: u32) -> vec4<f32> {
  var s = vec4<f32>();
  for (var o = r; o < HD / 8u; o += 2u) {
    let k = key8(pos, g, o);
    s = fma(vec4<f32>(k.lo.x), qs[8u * o], s);
    s = fma(vec4<f32>(k.lo.y), qs[8u * o + 1u], s);
    s = fma(vec4<f32>(k.lo.z), qs[8u * o + 2u], s);
    s = fma(vec4<f32>(k.lo.w), qs[8u * o + 3u], s);
    s = fma(vec4<f32>(k.hi.x), qs[8u * o + 4u], s);
    s = fma(vec4<f32>(k.hi.y), qs[8u * o + 5u], s);
    s = fma(vec4<f32>(k.hi.z), qs[8u * o + 6u], s);
    s = fma(vec4<f32>(k.hi.w), qs[8u * o + 7u], s);
  }
  return s;
}

fn finish(c: u32, h: u32, split: u32, d: u32, sum: f32, total: f32) {
  if (DIRECT == 1u) {
    out[(c * HEADS + h) * HD + d] = sum / total;
  } else {
    out[((c * HEADS + h) * SPLITS + split) * (HD + 2u) + d] = sum;
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
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
  let g = wid.x / FOURS;
  let first = g * SHARE + wid.x % FOURS * 4u;
  let heads = min(4u, (g + 1u) * SHARE - first);
  for (var i = t; i < HD; i += WG) {
    let at = (c * HEADS + first) * HD + i;
    qs[i] = vec4<f32>(q[at], q[at + min(1u, heads - 1u) * HD], q[at + min(2u, heads - 1u) * HD], q[at + min(3u, heads - 1u) * HD]);
  }
  workgroupBarrier();
  let p = t / 2u;
  let r = t % 2u;
  let group = t / QUADS;
  let quad = t % QUADS;
  var top = vec4<f32>(LOW);
  var total = vec4<f32>();
  var a = vec4<f32>();
  var b = vec4<f32>();
  var d = vec4<f32>();
  var e = vec4<f32>();
  for (var p0 = start; p0 < end; p0 += CHUNK) {
    let count = min(end - p0, CHUNK);
    if (p < count) {
      part[t] = scores(p0 + p, g, r);
    }
    workgroupBarrier();
    var mine = vec4<f32>(LOW);
    if (r == 0u && p < count) {
      mine = (part[t] + part[t + 1u]) * params.scale;
    }
    if (r == 0u) {
      weight[p] = mine;
    }
    workgroupBarrier();
    var high = top;
    for (var i = 0u; i < count; i += 1u) {
      high = max(high, weight[i]);
    }
    workgroupBarrier();
    if (r == 0u) {
      weight[p] = exp(mine - high);
    }
    workgroupBarrier();
    let keep = exp(top - high);
    top = high;
    total = total * keep;
    a = a * keep;
    b = b * keep;
    d = d * keep;
    e = e * keep;
    if (group < GROUPS) {
      for (var i = group; i < count; i += GROUPS) {
        let w = weight[i];
        let v = value4(p0 + i, g, quad);
        a = fma(w, vec4<f32>(v.x), a);
        b = fma(w, vec4<f32>(v.y), b);
        d = fma(w, vec4<f32>(v.z), d);
        e = fma(w, vec4<f32>(v.w), e);
        total = total + w;
      }
    }
  }
  sums[t] = a;
  sums[WG + t] = b;
  sums[2u * WG + t] = d;
  sums[3u * WG + t] = e;
  if (quad == 0u && group < GROUPS) {
    totals[group] = total;
  }
  workgroupBarrier();
  var all = totals[0];
  for (var i = 1u; i < GROUPS; i += 1u) {
    all = all + totals[i];
  }
  for (var i = t; i < HD; i += WG) {
    let at = i % 4u * WG + i / 4u;
    var sum = sums[at];
    for (var k = 1u; k < GROUPS; k += 1u) {
      sum = sum + sums[at + k * QUADS];
    }
    finish(c, first, wid.z, i, sum.x, all.x);
    if (heads > 1u) {
      finish(c, first + 1u, wid.z, i, sum.y, all.y);
    }
    if (heads > 2u) {
      finish(c, first + 2u, wid.z, i, sum.z, all.z);
    }
    if (heads > 3u) {
      finish(c, first + 3u, wid.z, i, sum.w, all.w);
    }
  }
  if (DIRECT == 0u && t < heads) {
    let at = ((c * HEADS + first + t) * SPLITS + wid.z) * (HD + 2u) + HD;
    out[at] = top[t];
    out[at + 1u] = all[t];
  }
}
