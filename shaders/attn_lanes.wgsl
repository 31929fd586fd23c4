// o[c][h] = sum_p softmax_p(q[c][h] . keys[p][g] scale) values[p][g], p <= pos + c, g = h / (HEADS/KVHEADS)
//
// q, out (n, HEADS, HD), see x_query*.wgsl; keys, values (capacity, KVHEADS, HD), see kv_*.wgsl; part (n, HEADS, SPLITS, HD + 4): o, m, l.
// For software adapters, which run threads as the lanes of a processor's vectors and pay for every read of memory, workgroup
// memory too, and for every barrier. A workgroup computes what one of attn_split does with HD/8 threads: a thread forms
// the scores of four positions, so that a query is read once for them, then it adds up one octet of all values.
// Grid: x is the cached head and its folds, y the column, z the split.
// Constants: HEADS, KVHEADS, HD (multiple of 8), SPLITS, STEP, DIRECT_MAX, HELD (1 to 4).
struct Params {
  scale: f32,
}
@group(1) @binding(1) var<storage, read_write> part: array<f32>;
@group(1) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(3) var<uniform> params: Params;

const SHARE: u32 = HEADS / KVHEADS;
const FOLDS: u32 = (SHARE + HELD - 1u) / HELD;
const LANES: u32 = HD / 8u;
const QUADS: u32 = HD / 4u;
const CHUNK: u32 = 4u * LANES;
const LOW: f32 = -3.0e38;
const TOP_SIZE: u32 = HELD * LANES;
const WEIGHT_SIZE: u32 = HELD * CHUNK;
var<workgroup> tops: array<f32, TOP_SIZE>;
var<workgroup> weight: array<f32, WEIGHT_SIZE>;

// Sum is what a thread has of a head: maximum of the split, total of its own positions, eight values.
struct Sum {
  top: f32,
  total: f32,
  lo: vec4<f32>,
  hi: vec4<f32>,
}

// products is the sum of four positions' products with two quads of a query.
fn products(s: vec4<f32>, at: u32, k: array<vec4<f32>, 8>) -> vec4<f32> {
  let lo = q[at];
  let hi = q[at + 1u];
  var a = fma(vec4<f32>(lo.x), k[0], s);
  a = fma(vec4<f32>(lo.y), k[1], a);
  a = fma(vec4<f32>(lo.z), k[2], a);
  a = fma(vec4<f32>(lo.w), k[3], a);
  a = fma(vec4<f32>(hi.x), k[4], a);
  a = fma(vec4<f32>(hi.y), k[5], a);
  a = fma(vec4<f32>(hi.z), k[6], a);
  return fma(vec4<f32>(hi.w), k[7], a);
}

// announce masks the positions behind the end and shows the largest of the thread's scores.
fn announce(s: vec4<f32>, scale: f32, live: vec4<bool>, h: u32, t: u32) -> vec4<f32> {
  let m = select(vec4<f32>(LOW), s * scale, live);
  tops[h * LANES + t] = max(max(m.x, m.y), max(m.z, m.w));
  return m;
}

// weigh makes the weights of the thread's positions.
fn weigh(u: ptr<function, Sum>, s: vec4<f32>, h: u32, t: u32) {
  var top = (*u).top;
  for (var i = 0u; i < LANES; i += 1u) {
    top = max(top, tops[h * LANES + i]);
  }
  let keep = exp((*u).top - top);
  let e = exp(s - vec4<f32>(top));
  let at = h * CHUNK + t;
  weight[at] = e.x;
  weight[at + LANES] = e.y;
  weight[at + 2u * LANES] = e.z;
  weight[at + 3u * LANES] = e.w;
  *u = Sum(top, fma((*u).total, keep, (e.x + e.y) + (e.z + e.w)), (*u).lo * keep, (*u).hi * keep);
}

fn mix(u: ptr<function, Sum>, w: f32, v: Eight) {
  (*u).lo = fma(vec4<f32>(w), v.lo, (*u).lo);
  (*u).hi = fma(vec4<f32>(w), v.hi, (*u).hi);
}

// finish gives head h's values of the thread away.
fn finish(u: Sum, h: u32, head: u32, n: u32, split: u32, t: u32) {
  var total = 0.0;
  for (var i = 0u; i < LANES; i += 1u) {
    total = total + tops[h * LANES + i];
  }
  if (n <= DIRECT_MAX) {
    let at = head * HD + 8u * t;
    let lo = u.lo / total;
    let hi = u.hi / total;
    for (var i = 0u; i < 4u; i += 1u) {
      out[at + i] = lo[i];
      out[at + 4u + i] = hi[i];
    }
    return;
  }
  let at = (head * SPLITS + split) * (HD + 4u);
  for (var i = 0u; i < 4u; i += 1u) {
    part[at + 8u * t + i] = u.lo[i];
    part[at + 8u * t + 4u + i] = u.hi[i];
  }
  if (t == 0u) {
    part[at + HD] = u.top;
    part[at + HD + 1u] = total;
  }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let n = frame.pos + wid.y + 1u;
  let g = wid.x / FOLDS;
  let first = g * SHARE + wid.x % FOLDS * HELD;
  let heads = min(HELD, (g + 1u) * SHARE - first);
  var start = 0u;
  var end = n;
  if (n > DIRECT_MAX) {
    start = min(wid.z * split_len(n), n);
    end = min(start + split_len(n), n);
  } else if (wid.z > 0u) {
    end = 0u;
  }
  if (start >= end) {
    return;
  }
  let last = end - 1u;
  // Heads that aren't there are computed as the last one that is.
  let q0 = (wid.y * HEADS + first) * QUADS;
  let q1 = q0 + min(1u, heads - 1u) * QUADS;
  let q2 = q0 + min(2u, heads - 1u) * QUADS;
  let q3 = q0 + min(3u, heads - 1u) * QUADS;
  let empty = Sum(LOW, 0.0, vec4<f32>(), vec4<f32>());
  var u0 = empty;
  var u1 = empty;
  var u2 = empty;
  var u3 = empty;
  for (var p0 = start; p0 < end; p0 += CHUNK) {
    let at = vec4<u32>(p0 + t) + vec4<u32>(0u, LANES, 2u * LANES, 3u * LANES);
    let row = (min(at, vec4<u32>(last)) * KVHEADS + g) * LANES;
    var s0 = vec4<f32>();
    var s1 = vec4<f32>();
    var s2 = vec4<f32>();
    var s3 = vec4<f32>();
    for (var o = 0u; o < LANES; o += 1u) {
      let a = eight(keys[row.x + o]);
      let b = eight(keys[row.y + o]);
      let c = eight(keys[row.z + o]);
      let d = eight(keys[row.w + o]);
      let k = array<vec4<f32>, 8>(vec4<f32>(a.lo.x, b.lo.x, c.lo.x, d.lo.x), vec4<f32>(a.lo.y, b.lo.y, c.lo.y, d.lo.y),
        vec4<f32>(a.lo.z, b.lo.z, c.lo.z, d.lo.z), vec4<f32>(a.lo.w, b.lo.w, c.lo.w, d.lo.w),
        vec4<f32>(a.hi.x, b.hi.x, c.hi.x, d.hi.x), vec4<f32>(a.hi.y, b.hi.y, c.hi.y, d.hi.y),
        vec4<f32>(a.hi.z, b.hi.z, c.hi.z, d.hi.z), vec4<f32>(a.hi.w, b.hi.w, c.hi.w, d.hi.w));
      s0 = products(s0, q0 + 2u * o, k);
      if (HELD > 1u) {
        s1 = products(s1, q1 + 2u * o, k);
      }
      if (HELD > 2u) {
        s2 = products(s2, q2 + 2u * o, k);
      }
      if (HELD > 3u) {
        s3 = products(s3, q3 + 2u * o, k);
      }
    }
    let live = at < vec4<u32>(end);
    s0 = announce(s0, params.scale, live, 0u, t);
    if (HELD > 1u) {
      s1 = announce(s1, params.scale, live, 1u, t);
    }
    if (HELD > 2u) {
      s2 = announce(s2, params.scale, live, 2u, t);
    }
    if (HELD > 3u) {
      s3 = announce(s3, params.scale, live, 3u, t);
    }
    workgroupBarrier();
    weigh(&u0, s0, 0u, t);
    if (HELD > 1u) {
      weigh(&u1, s1, 1u, t);
    }
    if (HELD > 2u) {
      weigh(&u2, s2, 2u, t);
    }
    if (HELD > 3u) {
      weigh(&u3, s3, 3u, t);
    }
    workgroupBarrier();
    let count = min(end - p0, CHUNK);
    for (var i = 0u; i < count; i += 1u) {
      let v = eight(values[((p0 + i) * KVHEADS + g) * LANES + t]);
      mix(&u0, weight[i], v);
      if (HELD > 1u) {
        mix(&u1, weight[CHUNK + i], v);
      }
      if (HELD > 2u) {
        mix(&u2, weight[2u * CHUNK + i], v);
      }
      if (HELD > 3u) {
        mix(&u3, weight[3u * CHUNK + i], v);
      }
    }
  }
  workgroupBarrier();
  tops[t] = u0.total;
  if (HELD > 1u) {
    tops[LANES + t] = u1.total;
  }
  if (HELD > 2u) {
    tops[2u * LANES + t] = u2.total;
  }
  if (HELD > 3u) {
    tops[3u * LANES + t] = u3.total;
  }
  workgroupBarrier();
  let head = wid.y * HEADS + first;
  finish(u0, 0u, head, n, wid.z, t);
  if (heads > 1u) {
    finish(u1, 1u, head + 1u, n, wid.z, t);
  }
  if (heads > 2u) {
    finish(u2, 2u, head + 2u, n, wid.z, t);
  }
  if (heads > 3u) {
    finish(u3, 3u, head + 3u, n, wid.z, t);
  }
}
