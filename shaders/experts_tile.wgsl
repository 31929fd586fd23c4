// out[s][r] = sum_i w[e F + r][i] x[s'][i] for the pairs s of an expert e and a column, many columns; ACT: out = silu(out) * that
//
// x (n, COLS), w (experts F, COLS) in any format, of which the arrays hold rows row0..row0+rows-1, out (pairs, F) in the places that
// experts_sort gave; rows of other pieces are left alone. s' is the pair's column with BY_COLUMN = 1, else its place.
// A workgroup of 128 threads computes BM rows of one expert for the BN pairs of a tile. As in tile.wgsl the weights are decoded
// into workgroup memory and the activations copied beside them, BK values of i at a time, both turned; what comes next is
// fetched before the products of what is there. A thread holds the sums of 8 rows, a quad from either half, and 4 pairs. Where the
// tile has 16 pairs, two teams of threads share i.
// Few columns choose the same expert, so the tile is narrow; one of 64 pairs would be mostly empty.
// Grid: x is the tile of rows, y the tile of pairs; those past the number of tiles return at once.
// Constants: COLS (multiple of 8), F, USED, BY_COLUMN, ACT, TX (4, 8: BN / 4), BK (16, 32), FAST_HALF.
struct Params {
  rows: u32,  // of this piece
  row0: u32,
  at: u32,    // octets in the arrays before the piece
}
@group(1) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read> tiles: array<vec4<u32>>;
@group(1) @binding(2) var<storage, read> list: array<u32>;
@group(1) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(4) var<uniform> params: Params;

const OCTETS: u32 = COLS / 8u;
const BM: u32 = 128u;
const TEAM: u32 = 16u * TX;         // threads that hold all sums of a tile
const TEAMS: u32 = 128u / TEAM;
const STEP: u32 = BK / 8u;          // octets of a row at a time
const QUADS: u32 = BK / 4u;
const W_TASKS: u32 = 32u * STEP;    // threads that fetch weights: an octet of four rows each
const X_TASKS: u32 = TX * QUADS;    // threads, the last ones, that fetch activations: four values of four pairs each

// Padding moves the writes of different threads to different banks.
struct WeightQuads {
  v: array<array<array<vec4<f32>, 16>, 2>, 4>,
  pad: vec4<f32>,
}

struct PairQuads {
  v: array<array<vec4<f32>, TX>, 4>,
  pad: vec4<f32>,
}
var<workgroup> wt: array<WeightQuads, QUADS>; // [four i][i][half][thread]: the rows of a quad
var<workgroup> xt: array<PairQuads, QUADS>;   // [four i][i][thread]: four pairs

// Sums holds four rows each: member 2 p + h is pair p with half h of the rows.
alias Sums = array<vec4<f32>, 8>;

// Octets is an octet of four rows, Fetched a thread's part of what comes next.
struct Octets {
  q0: Quants,
  q1: Quants,
  q2: Quants,
  q3: Quants,
  s0: Scale,
  s1: Scale,
  s2: Scale,
  s3: Scale,
}

struct Fetched {
  w: Octets,
  x0: vec4<f32>,
  x1: vec4<f32>,
  x2: vec4<f32>,
  x3: vec4<f32>,
}

// row_at is the first octet of row r of expert e, or of another row of the piece.
fn row_at(e: u32, r: u32) -> u32 {
  let row = e * F + min(r, F - 1u);
  return min(max(row, params.row0) - params.row0, params.rows - 1u) * OCTETS + params.at;
}

// pair_at is the first quad of what the tile's pair p reads.
fn pair_at(tile: vec4<u32>, p: u32) -> u32 {
  let s = tile.y + min(p, tile.z - 1u);
  if (BY_COLUMN == 1u) {
    return list[s] / USED * (2u * OCTETS);
  }
  return s * (2u * OCTETS);
}

fn fetch(t: u32, o: u32, w: vec4<u32>, p: vec4<u32>) -> Fetched {
  var f = Fetched();
  if (t < W_TASKS && (OCTETS % STEP == 0u || o + t % STEP < OCTETS)) {
    f.w = Octets(quants(w.x + o), quants(w.y + o), quants(w.z + o), quants(w.w + o),
      scale_of(w.x + o), scale_of(w.y + o), scale_of(w.z + o), scale_of(w.w + o));
  }
  if (t >= 128u - X_TASKS && (OCTETS % STEP == 0u || o + t % QUADS / 2u < OCTETS)) {
    f.x0 = x[p.x + 2u * o];
    f.x1 = x[p.y + 2u * o];
    f.x2 = x[p.z + 2u * o];
    f.x3 = x[p.w + 2u * o];
  }
  return f;
}

fn weighted(q: vec4<f32>, s: Scale) -> vec4<f32> {
  if (HAS_MIN) {
    return s.d * q + s.m;
  }
  return s.d * q;
}

// turn writes four values of four rows, those of quad y of half h.
fn turn(k: u32, h: u32, y: u32, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) {
  wt[k].v[0][h][y] = vec4<f32>(a.x, b.x, c.x, d.x);
  wt[k].v[1][h][y] = vec4<f32>(a.y, b.y, c.y, d.y);
  wt[k].v[2][h][y] = vec4<f32>(a.z, b.z, c.z, d.z);
  wt[k].v[3][h][y] = vec4<f32>(a.w, b.w, c.w, d.w);
}

fn put_away(t: u32, f: Fetched) {
  if (t < W_TASKS) {
    let k = t % STEP * 2u;
    let h = t / STEP / 16u;
    let y = t / STEP % 16u;
    turn(k, h, y, weighted(f.w.q0.lo, f.w.s0), weighted(f.w.q1.lo, f.w.s1), weighted(f.w.q2.lo, f.w.s2), weighted(f.w.q3.lo, f.w.s3));
    turn(k + 1u, h, y, weighted(f.w.q0.hi, f.w.s0), weighted(f.w.q1.hi, f.w.s1), weighted(f.w.q2.hi, f.w.s2), weighted(f.w.q3.hi, f.w.s3));
  }
  if (t >= 128u - X_TASKS) {
    let k = t % QUADS;
    let p = (t + X_TASKS - 128u) / QUADS;
    xt[k].v[0][p] = vec4<f32>(f.x0.x, f.x1.x, f.x2.x, f.x3.x);
    xt[k].v[1][p] = vec4<f32>(f.x0.y, f.x1.y, f.x2.y, f.x3.y);
    xt[k].v[2][p] = vec4<f32>(f.x0.z, f.x1.z, f.x2.z, f.x3.z);
    xt[k].v[3][p] = vec4<f32>(f.x0.w, f.x1.w, f.x2.w, f.x3.w);
  }
}

fn add(a: ptr<function, Sums>, k: u32, i: u32, ty: u32, tx: u32) {
  let w0 = wt[k].v[i][0][ty];
  let w1 = wt[k].v[i][1][ty];
  let p = xt[k].v[i][tx];
  (*a)[0] += w0 * p.x;
  (*a)[1] += w1 * p.x;
  (*a)[2] += w0 * p.y;
  (*a)[3] += w1 * p.y;
  (*a)[4] += w0 * p.z;
  (*a)[5] += w1 * p.z;
  (*a)[6] += w0 * p.w;
  (*a)[7] += w1 * p.w;
}

// leave and left use the room of the weights when the products are done.
fn leave(j: u32, e: u32, v: vec4<f32>) { wt[j / 2u].v[j % 2u * 2u + e / 32u][e / 16u % 2u][e % 16u] = v; }

fn left(j: u32, e: u32) -> vec4<f32> { return wt[j / 2u].v[j % 2u * 2u + e / 32u][e / 16u % 2u][e % 16u]; }

// gather gives the first of two teams the sums of both.
fn gather(a: ptr<function, Sums>, t: u32) {
  let e = t % 64u;
  if (t >= 64u) {
    leave(0u, e, (*a)[0]);
    leave(1u, e, (*a)[1]);
    leave(2u, e, (*a)[2]);
    leave(3u, e, (*a)[3]);
    leave(4u, e, (*a)[4]);
    leave(5u, e, (*a)[5]);
    leave(6u, e, (*a)[6]);
    leave(7u, e, (*a)[7]);
  }
  workgroupBarrier();
  (*a)[0] += left(0u, e);
  (*a)[1] += left(1u, e);
  (*a)[2] += left(2u, e);
  (*a)[3] += left(3u, e);
  (*a)[4] += left(4u, e);
  (*a)[5] += left(5u, e);
  (*a)[6] += left(6u, e);
  (*a)[7] += left(7u, e);
}

fn put(e: u32, s: u32, r: u32, v: f32) {
  if (r < F && e * F + r >= params.row0 && e * F + r - params.row0 < params.rows) {
    let at = s * F + r;
    if (ACT == 1u) {
      let g = out[at];
      out[at] = g / (1.0 + exp(-g)) * v;
    } else {
      out[at] = v;
    }
  }
}

// put_pair writes a thread's rows of the tile's pair p.
fn put_pair(tile: vec4<u32>, p: u32, r: u32, v: vec4<f32>, u: vec4<f32>) {
  if (p >= tile.z) {
    return;
  }
  let s = tile.y + p;
  put(tile.x, s, r, v.x);
  put(tile.x, s, r + 1u, v.y);
  put(tile.x, s, r + 2u, v.z);
  put(tile.x, s, r + 3u, v.w);
  put(tile.x, s, r + BM / 2u, u.x);
  put(tile.x, s, r + BM / 2u + 1u, u.y);
  put(tile.x, s, r + BM / 2u + 2u, u.z);
  put(tile.x, s, r + BM / 2u + 3u, u.w);
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  if (wid.y >= tiles[0].x) {
    return;
  }
  let tile = tiles[1u + wid.y];
  let row = wid.x * BM;
  let end = tile.x * F + min(row + BM, F);
  if (end <= params.row0 || tile.x * F + row >= params.row0 + params.rows) {
    return;
  }
  let team = t / TEAM;
  let ty = t % 16u;
  let tx = t % TEAM / 16u;
  let r = row + t / STEP * 4u;
  let w = vec4<u32>(row_at(tile.x, r), row_at(tile.x, r + 1u), row_at(tile.x, r + 2u), row_at(tile.x, r + 3u)) + t % STEP;
  let q = (t + X_TASKS) % 128u / QUADS * 4u;
  let p = vec4<u32>(pair_at(tile, q), pair_at(tile, q + 1u), pair_at(tile, q + 2u), pair_at(tile, q + 3u)) + t % QUADS;
  var a = Sums();
  var f = fetch(t, 0u, w, p);
  for (var o = 0u; o < OCTETS; o += STEP) {
    put_away(t, f);
    workgroupBarrier();
    if (o + STEP < OCTETS) {
      f = fetch(t, o + STEP, w, p);
    }
    for (var k = 0u; k < QUADS / TEAMS; k += 1u) {
      add(&a, team * (QUADS / TEAMS) + k, 0u, ty, tx);
      add(&a, team * (QUADS / TEAMS) + k, 1u, ty, tx);
      add(&a, team * (QUADS / TEAMS) + k, 2u, ty, tx);
      add(&a, team * (QUADS / TEAMS) + k, 3u, ty, tx);
    }
    workgroupBarrier();
  }
  if (TEAMS == 2u) {
    gather(&a, t);
    if (t >= TEAM) {
      return;
    }
  }
  put_pair(tile, 4u * tx, row + 4u * ty, a[0], a[1]);
  put_pair(tile, 4u * tx + 1u, row + 4u * ty, a[2], a[3]);
  put_pair(tile, 4u * tx + 2u, row + 4u * ty, a[4], a[5]);
  put_pair(tile, 4u * tx + 3u, row + 4u * ty, a[6], a[7]);
}
