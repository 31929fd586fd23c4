// Decode helper: attention of up to HELD query heads, which share a cached head, over one split of a column's positions.
//
// Threads in teams of TEAM form the scores of WG/TEAM positions: a thread multiplies up to four octets of a key with every
// query. Then HD/8 threads add up a row of values, in groups that take every GROUPS-th position; a group keeps its own maximum and total, so that
// nothing is exchanged before the end. Keys of the next positions and the values are asked for before they are needed.
// Constants: HEADS, KVHEADS, HD (multiple of 8), SPLITS, STEP, DIRECT_MAX, HELD (1 to 8), TEAM, WG; 4 TEAM is at least HD/8.
const SHARE: u32 = HEADS / KVHEADS;
const FOLDS: u32 = (SHARE + HELD - 1u) / HELD;
const OCTETS: u32 = HD / 8u;
const QUADS: u32 = HD / 4u;
const CHUNK: u32 = WG / TEAM;
const GROUPS: u32 = WG / OCTETS;
const LOW: f32 = -3.0e38;
const Q_SIZE: u32 = HELD * QUADS;
const LINE: u32 = WG + 4u; // not a multiple of the memory's banks
const MEM_SIZE: u32 = 8u * LINE;
const SCORE_SIZE: u32 = HELD * CHUNK;
const TOP_SIZE: u32 = HELD * GROUPS;
var<workgroup> qs: array<vec4<f32>, Q_SIZE>;
var<workgroup> mem: array<f32, MEM_SIZE>;
var<workgroup> score: array<f32, SCORE_SIZE>;
var<workgroup> tops: array<f32, TOP_SIZE>;
var<workgroup> totals: array<f32, TOP_SIZE>;

// Place is what a workgroup computes: positions start to end of cached head g, for the heads from first on.
struct Place {
  c: u32,
  n: u32,
  g: u32,
  first: u32,
  heads: u32,
  split: u32,
  start: u32,
  end: u32,
}

// place: x is the cached head and its folds, y the column, z the split. A workgroup with nothing to do has start = end.
fn place(wid: vec3<u32>) -> Place {
  let n = frame.pos + wid.y + 1u;
  let g = wid.x / FOLDS;
  let first = g * SHARE + wid.x % FOLDS * HELD;
  var p = Place(wid.y, n, g, first, min(HELD, (g + 1u) * SHARE - first), wid.z, 0u, n);
  if (n > DIRECT_MAX) {
    p.start = min(wid.z * split_len(n), n);
    p.end = min(p.start + split_len(n), n);
  } else if (wid.z > 0u) {
    p.end = 0u;
  }
  return p;
}

struct Four {
  a: Raw,
  b: Raw,
  c: Raw,
  d: Raw,
}

// load_keys is the thread's share of a key of the positions from p0 on. What lies behind the end is read at the end.
fn load_keys(p: Place, p0: u32, t: u32) -> Four {
  let row = (min(p0 + t / TEAM, p.end - 1u) * KVHEADS + p.g) * OCTETS;
  let o = t % TEAM;
  let last = OCTETS - 1u;
  return Four(keys[row + min(o, last)], keys[row + min(o + TEAM, last)], keys[row + min(o + 2u * TEAM, last)], keys[row + min(o + 3u * TEAM, last)]);
}

// load_values is the thread's octet of four positions.
fn load_values(p: Place, p0: u32, t: u32) -> Four {
  let o = p.g * OCTETS + t % OCTETS;
  let at = p0 + t / OCTETS;
  let last = p.end - 1u;
  let row = KVHEADS * OCTETS;
  return Four(values[min(at, last) * row + o], values[min(at + GROUPS, last) * row + o],
    values[min(at + 2u * GROUPS, last) * row + o], values[min(at + 3u * GROUPS, last) * row + o]);
}

// multiply adds the products of octet o of a key with the queries.
fn multiply(s: ptr<function, array<f32, 8>>, w: Raw, o: u32) {
  if (OCTETS != 4u * TEAM && o >= OCTETS) {
    return;
  }
  let e = eight(w);
  let at = 2u * o;
  (*s)[0] = (*s)[0] + (dot(e.lo, qs[at]) + dot(e.hi, qs[at + 1u]));
  if (HELD > 1u) {
    (*s)[1] = (*s)[1] + (dot(e.lo, qs[QUADS + at]) + dot(e.hi, qs[QUADS + at + 1u]));
  }
  if (HELD > 2u) {
    (*s)[2] = (*s)[2] + (dot(e.lo, qs[2u * QUADS + at]) + dot(e.hi, qs[2u * QUADS + at + 1u]));
  }
  if (HELD > 3u) {
    (*s)[3] = (*s)[3] + (dot(e.lo, qs[3u * QUADS + at]) + dot(e.hi, qs[3u * QUADS + at + 1u]));
  }
  if (HELD > 4u) {
    (*s)[4] = (*s)[4] + (dot(e.lo, qs[4u * QUADS + at]) + dot(e.hi, qs[4u * QUADS + at + 1u]));
  }
  if (HELD > 5u) {
    (*s)[5] = (*s)[5] + (dot(e.lo, qs[5u * QUADS + at]) + dot(e.hi, qs[5u * QUADS + at + 1u]));
  }
  if (HELD > 6u) {
    (*s)[6] = (*s)[6] + (dot(e.lo, qs[6u * QUADS + at]) + dot(e.hi, qs[6u * QUADS + at + 1u]));
  }
  if (HELD > 7u) {
    (*s)[7] = (*s)[7] + (dot(e.lo, qs[7u * QUADS + at]) + dot(e.hi, qs[7u * QUADS + at + 1u]));
  }
}

// products leaves the thread's sums in mem, a line a head.
fn products(k: Four, t: u32) {
  var s = array<f32, 8>();
  let o = t % TEAM;
  multiply(&s, k.a, o);
  multiply(&s, k.b, o + TEAM);
  multiply(&s, k.c, o + 2u * TEAM);
  multiply(&s, k.d, o + 3u * TEAM);
  mem[t] = s[0];
  if (HELD > 1u) {
    mem[LINE + t] = s[1];
  }
  if (HELD > 2u) {
    mem[2u * LINE + t] = s[2];
  }
  if (HELD > 3u) {
    mem[3u * LINE + t] = s[3];
  }
  if (HELD > 4u) {
    mem[4u * LINE + t] = s[4];
  }
  if (HELD > 5u) {
    mem[5u * LINE + t] = s[5];
  }
  if (HELD > 6u) {
    mem[6u * LINE + t] = s[6];
  }
  if (HELD > 7u) {
    mem[7u * LINE + t] = s[7];
  }
}

// Sum is what a thread has of a head: maximum and total of its group's positions, and eight values.
struct Sum {
  top: f32,
  total: f32,
  lo: vec4<f32>,
  hi: vec4<f32>,
}

fn score_of(h: u32, i: u32) -> f32 {
  if (CHUNK != 4u * GROUPS && i >= CHUNK) {
    return LOW;
  }
  return score[h * CHUNK + i];
}

// mix adds four positions to head h.
fn mix(s: ptr<function, Sum>, h: u32, group: u32, a: Eight, b: Eight, c: Eight, d: Eight) {
  let x = vec4<f32>(score_of(h, group), score_of(h, group + GROUPS), score_of(h, group + 2u * GROUPS), score_of(h, group + 3u * GROUPS));
  let top = max((*s).top, max(max(x.x, x.y), max(x.z, x.w)));
  let keep = exp((*s).top - top);
  let e = exp(x - vec4<f32>(top));
  (*s).top = top;
  (*s).total = fma((*s).total, keep, (e.x + e.y) + (e.z + e.w));
  var lo = (*s).lo * keep;
  lo = fma(vec4<f32>(e.x), a.lo, lo);
  lo = fma(vec4<f32>(e.y), b.lo, lo);
  lo = fma(vec4<f32>(e.z), c.lo, lo);
  (*s).lo = fma(vec4<f32>(e.w), d.lo, lo);
  var hi = (*s).hi * keep;
  hi = fma(vec4<f32>(e.x), a.hi, hi);
  hi = fma(vec4<f32>(e.y), b.hi, hi);
  hi = fma(vec4<f32>(e.z), c.hi, hi);
  (*s).hi = fma(vec4<f32>(e.w), d.hi, hi);
}

// announce shows the group's maximum.
fn announce(s: ptr<function, Sum>, h: u32, t: u32) {
  if (t % OCTETS == 0u && t / OCTETS < GROUPS) {
    tops[h * GROUPS + t / OCTETS] = (*s).top;
  }
}

// finish adds up the groups of head h and gives the result away. It has barriers.
fn finish(p: Place, s: ptr<function, Sum>, h: u32, t: u32) {
  var top = LOW;
  for (var i = 0u; i < GROUPS; i += 1u) {
    top = max(top, tops[h * GROUPS + i]);
  }
  let f = exp((*s).top - top);
  let group = t / OCTETS;
  if (group < GROUPS) {
    let lo = (*s).lo * f;
    let hi = (*s).hi * f;
    mem[t] = lo.x;
    mem[LINE + t] = lo.y;
    mem[2u * LINE + t] = lo.z;
    mem[3u * LINE + t] = lo.w;
    mem[4u * LINE + t] = hi.x;
    mem[5u * LINE + t] = hi.y;
    mem[6u * LINE + t] = hi.z;
    mem[7u * LINE + t] = hi.w;
    if (t % OCTETS == 0u) {
      totals[h * GROUPS + group] = (*s).total * f;
    }
  }
  workgroupBarrier();
  if (h < p.heads) {
    var total = 0.0;
    for (var i = 0u; i < GROUPS; i += 1u) {
      total = total + totals[h * GROUPS + i];
    }
    let head = p.c * HEADS + p.first + h;
    for (var i = t; i < HD; i += WG) {
      let at = i % 8u * LINE + i / 8u;
      var sum = 0.0;
      for (var k = 0u; k < GROUPS; k += 1u) {
        sum = sum + mem[at + k * OCTETS];
      }
      if (p.n <= DIRECT_MAX) {
        out[head * HD + i] = sum / total;
      } else {
        part[(head * SPLITS + p.split) * (HD + 4u) + i] = sum;
      }
    }
    if (p.n > DIRECT_MAX && t == 0u) {
      let at = (head * SPLITS + p.split) * (HD + 4u) + HD;
      part[at] = top;
      part[at + 1u] = total;
    }
  }
  workgroupBarrier();
}

// attend starts with the queries in qs, behind a barrier, and the keys of the first positions.
fn attend(p: Place, first: Four, scale: f32, t: u32) {
  let empty = Sum(LOW, 0.0, vec4<f32>(), vec4<f32>());
  var s0 = empty;
  var s1 = empty;
  var s2 = empty;
  var s3 = empty;
  var s4 = empty;
  var s5 = empty;
  var s6 = empty;
  var s7 = empty;
  var k = first;
  for (var p0 = p.start; p0 < p.end; p0 += CHUNK) {
    let v = load_values(p, p0, t);
    products(k, t);
    if (p0 + CHUNK < p.end) {
      k = load_keys(p, p0 + CHUNK, t);
    }
    workgroupBarrier();
    for (var i = t; i < SCORE_SIZE; i += WG) {
      let at = i / CHUNK * LINE + i % CHUNK * TEAM;
      var s = mem[at];
      for (var j = 1u; j < TEAM; j += 1u) {
        s = s + mem[at + j];
      }
      score[i] = select(LOW, s * scale, p0 + i % CHUNK < p.end);
    }
    workgroupBarrier();
    let group = t / OCTETS;
    if (group < GROUPS) {
      let a = eight(v.a);
      let b = eight(v.b);
      let c = eight(v.c);
      let d = eight(v.d);
      mix(&s0, 0u, group, a, b, c, d);
      if (HELD > 1u) {
        mix(&s1, 1u, group, a, b, c, d);
      }
      if (HELD > 2u) {
        mix(&s2, 2u, group, a, b, c, d);
      }
      if (HELD > 3u) {
        mix(&s3, 3u, group, a, b, c, d);
      }
      if (HELD > 4u) {
        mix(&s4, 4u, group, a, b, c, d);
      }
      if (HELD > 5u) {
        mix(&s5, 5u, group, a, b, c, d);
      }
      if (HELD > 6u) {
        mix(&s6, 6u, group, a, b, c, d);
      }
      if (HELD > 7u) {
        mix(&s7, 7u, group, a, b, c, d);
      }
    }
  }
  announce(&s0, 0u, t);
  if (HELD > 1u) {
    announce(&s1, 1u, t);
  }
  if (HELD > 2u) {
    announce(&s2, 2u, t);
  }
  if (HELD > 3u) {
    announce(&s3, 3u, t);
  }
  if (HELD > 4u) {
    announce(&s4, 4u, t);
  }
  if (HELD > 5u) {
    announce(&s5, 5u, t);
  }
  if (HELD > 6u) {
    announce(&s6, 6u, t);
  }
  if (HELD > 7u) {
    announce(&s7, 7u, t);
  }
  workgroupBarrier();
  finish(p, &s0, 0u, t);
  if (HELD > 1u) {
    finish(p, &s1, 1u, t);
  }
  if (HELD > 2u) {
    finish(p, &s2, 2u, t);
  }
  if (HELD > 3u) {
    finish(p, &s3, 3u, t);
  }
  if (HELD > 4u) {
    finish(p, &s4, 4u, t);
  }
  if (HELD > 5u) {
    finish(p, &s5, 5u, t);
  }
  if (HELD > 6u) {
    finish(p, &s6, 6u, t);
  }
  if (HELD > 7u) {
    finish(p, &s7, 7u, t);
  }
}
