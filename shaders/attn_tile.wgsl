// o[c][h] = sum_p softmax_p(q[c][h] . keys[p][g] scale) values[p][g], p <= pos + c, g = h / (HEADS/KVHEADS)   for many columns
//
// q, out (n, HEADS, HD); keys, values (capacity, KVHEADS, HD), see kv_*.wgsl.
// A workgroup computes QUERIES queries, QUERIES/MATES columns of MATES heads that share a cached head, over all their positions, 64 at a
// time with a running softmax. The scores of a tile are a product of queries and keys, BD dimensions at a time in workgroup
// memory, both turned so that a thread reads four queries and four keys at once; their exponentials are a matrix in
// workgroup memory too, which is multiplied with the values, BV positions at a time. 4 QUERIES threads are QUERIES/4 by 16: each holds the scores
// of four queries and four positions, then of four queries and HD/16 dimensions in quads that lie 64 apart.
// Grid: x is the group of heads, y the tile of columns, the last first: it has the most positions.
// Constants: HEADS, KVHEADS, HD (multiple of 8, at most 256), MATES (divides HEADS/KVHEADS and QUERIES), QUERIES (32 or 64), BD (8, 16 or 32),
// BV (4 to 64).
struct Params {
  scale: f32,
}
@group(1) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read_write> out: array<f32>;
@group(1) @binding(2) var<uniform> params: Params;

const WG: u32 = 4u * QUERIES;
const COLUMNS: u32 = QUERIES / MATES;
const OCTETS: u32 = HD / 8u;
const QUADS: u32 = HD / 4u;
const RQ: u32 = QUERIES / 4u;
const SPAN: u32 = BD / 8u;
const Q_TASKS: u32 = RQ * SPAN;      // four queries, one octet each
const TASKS: u32 = Q_TASKS + 16u * SPAN;
const KEYS_AT: u32 = RQ * BD;
const WEIGHTS: u32 = 64u * RQ;
const SLICE: u32 = (RQ + 16u) * BD;
const TILE_SIZE: u32 = WEIGHTS + SLICE % WEIGHTS * (SLICE / WEIGHTS); // the larger, when that is less than twice WEIGHTS
const VALUE_SIZE: u32 = BV * QUADS;
const LOW: f32 = -3.0e38;
var<workgroup> tile: array<vec4<f32>, TILE_SIZE>; // [dimension][quad of queries], [dimension][quad of keys]; then [position][quad of queries]
var<workgroup> vt: array<vec4<f32>, VALUE_SIZE>;   // [position][quad of dimensions]
var<workgroup> tops: array<vec4<f32>, WG>;         // [quad of positions][quad of queries]

// query is where quad 0 of a row's query lies; rows behind the last column are computed as it.
fn query(row: u32, c0: u32, head: u32) -> u32 {
  return (min(c0 + row / MATES, frame.n - 1u) * HEADS + head + row % MATES) * QUADS;
}

fn turn(at: u32, step: u32, a: Eight, b: Eight, c: Eight, d: Eight) {
  tile[at] = vec4<f32>(a.lo.x, b.lo.x, c.lo.x, d.lo.x);
  tile[at + step] = vec4<f32>(a.lo.y, b.lo.y, c.lo.y, d.lo.y);
  tile[at + 2u * step] = vec4<f32>(a.lo.z, b.lo.z, c.lo.z, d.lo.z);
  tile[at + 3u * step] = vec4<f32>(a.lo.w, b.lo.w, c.lo.w, d.lo.w);
  tile[at + 4u * step] = vec4<f32>(a.hi.x, b.hi.x, c.hi.x, d.hi.x);
  tile[at + 5u * step] = vec4<f32>(a.hi.y, b.hi.y, c.hi.y, d.hi.y);
  tile[at + 6u * step] = vec4<f32>(a.hi.z, b.hi.z, c.hi.z, d.hi.z);
  tile[at + 7u * step] = vec4<f32>(a.hi.w, b.hi.w, c.hi.w, d.hi.w);
}

fn octet_of(at: u32) -> Eight {
  return Eight(q[at], q[at + 1u]);
}

// load copies SPAN octets from octet first on of all queries and of 64 keys.
fn load(first: u32, c0: u32, head: u32, p0: u32, last: u32, g: u32, t: u32) {
  for (var task = t; task < TASKS; task += WG) {
    if (task < Q_TASKS) {
      let quad = task % RQ;
      let o = task / RQ;
      if (first + o < OCTETS) {
        let at = 2u * (first + o);
        turn(o * 8u * RQ + quad, RQ, octet_of(query(4u * quad, c0, head) + at), octet_of(query(4u * quad + 1u, c0, head) + at),
          octet_of(query(4u * quad + 2u, c0, head) + at), octet_of(query(4u * quad + 3u, c0, head) + at));
      }
    } else {
      let quad = (task - Q_TASKS) % 16u;
      let o = (task - Q_TASKS) / 16u;
      if (first + o < OCTETS) {
        let row = (min(vec4<u32>(p0 + 4u * quad) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last)) * KVHEADS + g) * OCTETS + first + o;
        turn(KEYS_AT + o * 128u + quad, 16u, eight(keys[row.x]), eight(keys[row.y]), eight(keys[row.z]), eight(keys[row.w]));
      }
    }
  }
}

// load_values copies BV positions of values.
fn load_values(p0: u32, last: u32, g: u32, t: u32) {
  for (var task = t; task < BV * OCTETS; task += WG) {
    let v = eight(values[(min(p0 + task / OCTETS, last) * KVHEADS + g) * OCTETS + task % OCTETS]);
    vt[2u * task] = v.lo;
    vt[2u * task + 1u] = v.hi;
  }
}

// products adds dimension i of the tile: s holds the scores of four queries each, for four positions.
fn products(s: ptr<function, array<vec4<f32>, 4>>, i: u32, tx: u32, ty: u32) {
  let x = tile[i * RQ + ty];
  let k = tile[KEYS_AT + i * 16u + tx];
  (*s)[0] = fma(vec4<f32>(k.x), x, (*s)[0]);
  (*s)[1] = fma(vec4<f32>(k.y), x, (*s)[1]);
  (*s)[2] = fma(vec4<f32>(k.z), x, (*s)[2]);
  (*s)[3] = fma(vec4<f32>(k.w), x, (*s)[3]);
}

// quad_of is the first dimension quad of the thread's j-th, or one that is there.
fn quad_of(j: u32, tx: u32) -> u32 {
  if (QUADS % 16u == 0u) {
    return 16u * j + tx;
  }
  return min(16u * j + tx, QUADS - 1u);
}

fn add(a: ptr<function, array<vec4<f32>, 16>>, w: vec4<f32>, v: vec4<f32>, j: u32) {
  (*a)[4u * j] = fma(vec4<f32>(v.x), w, (*a)[4u * j]);
  (*a)[4u * j + 1u] = fma(vec4<f32>(v.y), w, (*a)[4u * j + 1u]);
  (*a)[4u * j + 2u] = fma(vec4<f32>(v.z), w, (*a)[4u * j + 2u]);
  (*a)[4u * j + 3u] = fma(vec4<f32>(v.w), w, (*a)[4u * j + 3u]);
}

// weighted adds the values of position i of the slice, which is position p of the tile.
fn weighted(a: ptr<function, array<vec4<f32>, 16>>, p: u32, i: u32, tx: u32, ty: u32) {
  let w = tile[p * RQ + ty];
  let at = i * QUADS;
  add(a, w, vt[at + quad_of(0u, tx)], 0u);
  if (QUADS > 16u) {
    add(a, w, vt[at + quad_of(1u, tx)], 1u);
  }
  if (QUADS > 32u) {
    add(a, w, vt[at + quad_of(2u, tx)], 2u);
  }
  if (QUADS > 48u) {
    add(a, w, vt[at + quad_of(3u, tx)], 3u);
  }
}

fn put(row: u32, c0: u32, head: u32, quad: u32, v: vec4<f32>) {
  let c = c0 + row / MATES;
  if (c >= frame.n || quad >= QUADS) {
    return;
  }
  let at = (c * HEADS + head + row % MATES) * HD + 4u * quad;
  out[at] = v.x;
  out[at + 1u] = v.y;
  out[at + 2u] = v.z;
  out[at + 3u] = v.w;
}

// give writes the thread's j-th quad of dimensions of its four queries.
fn give(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, inv: vec4<f32>, j: u32, c0: u32, head: u32, tx: u32, ty: u32) {
  let quad = 16u * j + tx;
  let row = 4u * ty;
  put(row, c0, head, quad, vec4<f32>(a.x, b.x, c.x, d.x) * inv.x);
  put(row + 1u, c0, head, quad, vec4<f32>(a.y, b.y, c.y, d.y) * inv.y);
  put(row + 2u, c0, head, quad, vec4<f32>(a.z, b.z, c.z, d.z) * inv.z);
  put(row + 3u, c0, head, quad, vec4<f32>(a.w, b.w, c.w, d.w) * inv.w);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let c0 = (grid.y - 1u - wid.y) * COLUMNS;
  let head = wid.x * MATES;
  let g = head / (HEADS / KVHEADS);
  let last = frame.pos + min(c0 + COLUMNS, frame.n) - 1u; // position of the last column
  let ty = t % RQ;  // quad of queries
  let tx = t / RQ;  // quad of positions, then of dimensions
  // The last position that each of the four queries sees.
  let sees = vec4<u32>(frame.pos + c0) + (vec4<u32>(4u * ty) + vec4<u32>(0u, 1u, 2u, 3u)) / MATES;
  var top = vec4<f32>(LOW);
  var total = vec4<f32>(); // of the thread's positions
  var a = array<vec4<f32>, 16>();
  for (var p0 = 0u; p0 <= last; p0 += 64u) {
    var s = array<vec4<f32>, 4>();
    for (var first = 0u; first < OCTETS; first += SPAN) {
      load(first, c0, head, p0, last, g, t);
      workgroupBarrier();
      let dims = min(BD, HD - 8u * first);
      for (var i = 0u; i < dims; i += 8u) {
        products(&s, i, tx, ty);
        products(&s, i + 1u, tx, ty);
        products(&s, i + 2u, tx, ty);
        products(&s, i + 3u, tx, ty);
        products(&s, i + 4u, tx, ty);
        products(&s, i + 5u, tx, ty);
        products(&s, i + 6u, tx, ty);
        products(&s, i + 7u, tx, ty);
      }
      workgroupBarrier();
    }
    let p = p0 + 4u * tx;
    s[0] = select(vec4<f32>(LOW), s[0] * params.scale, vec4<u32>(p) <= sees);
    s[1] = select(vec4<f32>(LOW), s[1] * params.scale, vec4<u32>(p + 1u) <= sees);
    s[2] = select(vec4<f32>(LOW), s[2] * params.scale, vec4<u32>(p + 2u) <= sees);
    s[3] = select(vec4<f32>(LOW), s[3] * params.scale, vec4<u32>(p + 3u) <= sees);
    tops[tx * RQ + ty] = max(max(s[0], s[1]), max(s[2], s[3]));
    workgroupBarrier();
    var high = top;
    for (var i = 0u; i < 16u; i += 1u) {
      high = max(high, tops[i * RQ + ty]);
    }
    let keep = exp(top - high);
    top = high;
    let e0 = exp(s[0] - high);
    let e1 = exp(s[1] - high);
    let e2 = exp(s[2] - high);
    let e3 = exp(s[3] - high);
    let at = 4u * tx * RQ + ty;
    tile[at] = e0;
    tile[at + RQ] = e1;
    tile[at + 2u * RQ] = e2;
    tile[at + 3u * RQ] = e3;
    total = fma(total, keep, (e0 + e1) + (e2 + e3));
    a[0] = a[0] * keep;
    a[1] = a[1] * keep;
    a[2] = a[2] * keep;
    a[3] = a[3] * keep;
    if (QUADS > 16u) {
      a[4] = a[4] * keep;
      a[5] = a[5] * keep;
      a[6] = a[6] * keep;
      a[7] = a[7] * keep;
    }
    if (QUADS > 32u) {
      a[8] = a[8] * keep;
      a[9] = a[9] * keep;
      a[10] = a[10] * keep;
      a[11] = a[11] * keep;
    }
    if (QUADS > 48u) {
      a[12] = a[12] * keep;
      a[13] = a[13] * keep;
      a[14] = a[14] * keep;
      a[15] = a[15] * keep;
    }
    for (var v0 = 0u; v0 < 64u; v0 += BV) {
      load_values(p0 + v0, last, g, t);
      workgroupBarrier();
      for (var i = 0u; i < BV; i += 4u) {
        weighted(&a, v0 + i, i, tx, ty);
        weighted(&a, v0 + i + 1u, i + 1u, tx, ty);
        weighted(&a, v0 + i + 2u, i + 2u, tx, ty);
        weighted(&a, v0 + i + 3u, i + 3u, tx, ty);
      }
      workgroupBarrier();
    }
  }
  tops[tx * RQ + ty] = total;
  workgroupBarrier();
  var all = vec4<f32>();
  for (var i = 0u; i < 16u; i += 1u) {
    all = all + tops[i * RQ + ty];
  }
  let inv = 1.0 / all;
  give(a[0], a[1], a[2], a[3], inv, 0u, c0, head, tx, ty);
  if (QUADS > 16u) {
    give(a[4], a[5], a[6], a[7], inv, 1u, c0, head, tx, ty);
  }
  if (QUADS > 32u) {
    give(a[8], a[9], a[10], a[11], inv, 2u, c0, head, tx, ty);
  }
  if (QUADS > 48u) {
    give(a[12], a[13], a[14], a[15], inv, 3u, c0, head, tx, ty);
  }
}
