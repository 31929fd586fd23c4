// q' = rotate(norm(q[c][h], wq), pos + c), k' = rotate(norm(k[c][g], wk), pos + c), keys[pos+c] = k'[c], values[pos+c] = v[c],
// o[c][h] = sum_p softmax_p(q'[c][h] . keys[p][g] scale) values[p][g], p <= pos + c, g = h / (HEADS/KVHEADS)
//
// q, out (n, HEADS, HD); k, v (n, KVHEADS, HD); keys, values (capacity, KVHEADS, HD), see kv_*.wgsl; part (n, HEADS, SPLITS, HD + 4):
// o, m, l; table (positions, NROT/2) of (cos, sin); wq, wk (HD).
// One launch instead of two. A workgroup computes what one of attn_split does, behind a prologue: it normalizes and rotates
// its queries, and stores those rows of its split that belong to this run, its column's and those of columns before, so that none
// waits for another workgroup. Several store the same row with the same bits. A row takes HD/16 threads with two octets
// each, which are rotated with each other. Grid: x is the cached head and its folds, y the column, z the split.
// Constants: HEADS, KVHEADS, HD (multiple of 16), NROT (multiple of 16, at most HD), SPLITS, STEP, DIRECT_MAX, HELD (1 to 8),
// TEAM (4 TEAM is at least HD/8), WG.
struct Params {
  scale: f32,
  eps: f32,
}
@group(1) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read> k: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> v: array<vec4<f32>>;
@group(1) @binding(3) var<storage, read> table: array<vec4<f32>>;
@group(1) @binding(4) var<storage, read_write> part: array<f32>;
@group(1) @binding(5) var<storage, read_write> out: array<f32>;
@group(1) @binding(6) var<uniform> wq: array<vec4<f32>, QUADS>;
@group(1) @binding(7) var<uniform> wk: array<vec4<f32>, QUADS>;
@group(1) @binding(10) var<uniform> params: Params;

const TURNED: u32 = NROT / 16u; // pairs of octets that are rotated
const PAIRS: u32 = HD / 16u;
const ROWS: u32 = WG / PAIRS;
var<workgroup> squares: array<f32, WG>;

// Two is a pair of octets.
struct Two {
  a: Eight,
  b: Eight,
}

fn of_query(base: u32, a: u32, b: u32) -> Two {
  return Two(Eight(q[base + a], q[base + a + 1u]), Eight(q[base + b], q[base + b + 1u]));
}

fn of_key(base: u32, a: u32, b: u32) -> Two {
  return Two(Eight(k[base + a], k[base + a + 1u]), Eight(k[base + b], k[base + b + 1u]));
}

fn weights(query: bool, a: u32, b: u32) -> Two {
  if (query) {
    return Two(Eight(wq[a], wq[a + 1u]), Eight(wq[b], wq[b + 1u]));
  }
  return Two(Eight(wk[a], wk[a + 1u]), Eight(wk[b], wk[b + 1u]));
}

// turn rotates four values x with their partners y; cs has two pairs (cos, sin) a vector.
fn turn_x(x: vec4<f32>, y: vec4<f32>, c: vec4<f32>, s: vec4<f32>) -> vec4<f32> {
  return fma(x, c, -(y * s));
}

fn turn_y(x: vec4<f32>, y: vec4<f32>, c: vec4<f32>, s: vec4<f32>) -> vec4<f32> {
  return fma(y, c, x * s);
}

// prepare treats the queries and the rows from fresh on. Its last barrier publishes both.
fn prepare(p: Place, fresh: u32, t: u32) {
  let rows = p.heads + p.end - fresh;
  let j = t % PAIRS;
  let turned = j < TURNED;
  let a = select(4u * j, 2u * j, turned); // first quads of the two octets
  let b = select(a + 2u, a + 2u * TURNED, turned);
  for (var r0 = 0u; r0 < rows; r0 += ROWS) {
    let r = r0 + t / PAIRS;
    let mine = t / PAIRS < ROWS && r < rows;
    let query = r < p.heads;
    var x = Two();
    var w = Two();
    var cs = Two();
    var column = p.c;
    if (mine) {
      if (query) {
        x = of_query((p.c * HEADS + p.first + r) * QUADS, a, b);
      } else {
        column = fresh + r - p.heads - frame.pos;
        x = of_key((column * KVHEADS + p.g) * QUADS, a, b);
      }
      w = weights(query, a, b);
      if (turned) {
        let at = (frame.pos + column) * (NROT / 4u) + 4u * j;
        cs = Two(Eight(table[at], table[at + 1u]), Eight(table[at + 2u], table[at + 3u]));
      }
    }
    squares[t] = (dot(x.a.lo, x.a.lo) + dot(x.a.hi, x.a.hi)) + (dot(x.b.lo, x.b.lo) + dot(x.b.hi, x.b.hi));
    workgroupBarrier();
    if (mine) {
      let mates = t / PAIRS * PAIRS;
      var sum = squares[mates];
      for (var i = 1u; i < PAIRS; i += 1u) {
        sum = sum + squares[mates + i];
      }
      let inv = 1.0 / sqrt(sum / f32(HD) + params.eps);
      x = Two(Eight(x.a.lo * inv * w.a.lo, x.a.hi * inv * w.a.hi), Eight(x.b.lo * inv * w.b.lo, x.b.hi * inv * w.b.hi));
      if (turned) {
        let c0 = vec4<f32>(cs.a.lo.xz, cs.a.hi.xz);
        let s0 = vec4<f32>(cs.a.lo.yw, cs.a.hi.yw);
        let c1 = vec4<f32>(cs.b.lo.xz, cs.b.hi.xz);
        let s1 = vec4<f32>(cs.b.lo.yw, cs.b.hi.yw);
        x = Two(Eight(turn_x(x.a.lo, x.b.lo, c0, s0), turn_x(x.a.hi, x.b.hi, c1, s1)),
          Eight(turn_y(x.a.lo, x.b.lo, c0, s0), turn_y(x.a.hi, x.b.hi, c1, s1)));
      }
      if (query) {
        let to = r * QUADS;
        qs[to + a] = x.a.lo;
        qs[to + a + 1u] = x.a.hi;
        qs[to + b] = x.b.lo;
        qs[to + b + 1u] = x.b.hi;
      } else {
        let to = ((frame.pos + column) * KVHEADS + p.g) * OCTETS;
        keys[to + a / 2u] = raw(x.a.lo, x.a.hi);
        keys[to + b / 2u] = raw(x.b.lo, x.b.hi);
        let base = (column * KVHEADS + p.g) * QUADS;
        values[to + a / 2u] = raw(v[base + a], v[base + a + 1u]);
        values[to + b / 2u] = raw(v[base + b], v[base + b + 1u]);
      }
    }
    workgroupBarrier();
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let p = place(wid);
  if (p.start >= p.end) {
    return;
  }
  var first: Four;
  let fresh = min(max(p.start, frame.pos), p.end);
  if (fresh == p.end) {
    first = load_keys(p, p.start, t);
  }
  prepare(p, fresh, t);
  if (fresh < p.end) {
    storageBarrier();
    first = load_keys(p, p.start, t);
  }
  attend(p, first, params.scale, t);
}
