// Decode helper: the products of BM rows of a matrix with BN columns of activations, for kernels with many columns. A workgroup of
// 256 threads decodes the weights into workgroup memory, BK values of i at a time, and copies the activations beside them. Both
// are turned, so that a thread reads four rows and four columns at once: [four i][i][half][thread][row or column of a quad], padded so that the
// threads that write different i of a row use different banks. What comes next is fetched before the products of what is there.
// Each thread holds the sums of 8 rows and 8 columns: a quad from either half of the tile's. TEAMS teams of TY by TX threads hold
// all of them and share i; their sums are added at the end.
// A kernel declares the activations, x, and says where rows and columns begin: row_at(row, r) is the first octet of row r of the tile that begins at row,
// column_at(col, c) the first quad of column c of the tile that begins at col; rows and columns that don't exist may be any other.
// Constants: COLS (multiple of 8), TY (4 or 8), TX (8 or 16), BK (16 or 32), FAST_HALF. BM BK and BN BK are at most 2048 and 4096.
const OCTETS: u32 = COLS / 8u;
const BM: u32 = 8u * TY;
const BN: u32 = 8u * TX;
const TEAM: u32 = TY * TX;          // threads
const TEAMS: u32 = 256u / TEAM;
const STEP: u32 = BK / 8u;          // octets of a row at a time
const QUADS: u32 = BK / 4u;
const W_TASKS: u32 = BM * STEP;        // threads that fetch weights: an octet of a row each
const X_TASKS: u32 = BN / 4u * QUADS;  // threads, the last ones, that fetch activations: four values of four columns each

struct WeightQuads {
  v: array<array<array<vec4<f32>, TY>, 2>, 4>,
  pad: vec4<f32>,
}

struct ColumnQuads {
  v: array<array<array<vec4<f32>, TX>, 2>, 4>,
  pad: vec4<f32>,
}
var<workgroup> wt: array<WeightQuads, QUADS>;
var<workgroup> xt: array<ColumnQuads, QUADS>;

// Sums holds four rows each: member 2 c + h is column c (of the first quad, then of the second) with half h of the rows.
alias Sums = array<vec4<f32>, 16>;

// Fetched is a thread's part of what comes next.
struct Fetched {
  q: Quants,
  s: Scale,
  x0: vec4<f32>,
  x1: vec4<f32>,
  x2: vec4<f32>,
  x3: vec4<f32>,
}

fn fetches_w(t: u32) -> bool { return W_TASKS == 256u || t < W_TASKS; }

fn fetches_x(t: u32) -> bool { return X_TASKS == 256u || t >= 256u - X_TASKS; }

// x_task is the number of a thread that fetches activations among those that do.
fn x_task(t: u32) -> u32 { return (t + X_TASKS) % 256u; }

// fetch reads octet o and up of the rows, w is where the thread's row begins, c where its columns do. Behind the end of a row come
// weights of the next one; the activations for them are zero.
fn fetch(t: u32, o: u32, w: u32, c: vec4<u32>) -> Fetched {
  var f = Fetched();
  if (fetches_w(t)) {
    f.q = quants(w + o);
    f.s = scale_of(w + o);
  }
  if (fetches_x(t) && (OCTETS % STEP == 0u || o + t % QUADS / 2u < OCTETS)) {
    f.x0 = x[c.x + 2u * o];
    f.x1 = x[c.y + 2u * o];
    f.x2 = x[c.z + 2u * o];
    f.x3 = x[c.w + 2u * o];
  }
  return f;
}

fn weighted(q: vec4<f32>, s: Scale) -> vec4<f32> {
  if (HAS_MIN) {
    return s.d * q + s.m;
  }
  return s.d * q;
}

// place writes it to workgroup memory.
fn place(t: u32, f: Fetched) {
  if (fetches_w(t)) {
    let k = t % STEP * 2u;
    let r = t / STEP;
    let h = r / (BM / 2u);
    let y = r / 4u % TY;
    let lo = weighted(f.q.lo, f.s);
    let hi = weighted(f.q.hi, f.s);
    wt[k].v[0][h][y][r % 4u] = lo.x;
    wt[k].v[1][h][y][r % 4u] = lo.y;
    wt[k].v[2][h][y][r % 4u] = lo.z;
    wt[k].v[3][h][y][r % 4u] = lo.w;
    wt[k + 1u].v[0][h][y][r % 4u] = hi.x;
    wt[k + 1u].v[1][h][y][r % 4u] = hi.y;
    wt[k + 1u].v[2][h][y][r % 4u] = hi.z;
    wt[k + 1u].v[3][h][y][r % 4u] = hi.w;
  }
  if (fetches_x(t)) {
    let e = x_task(t);
    let k = e % QUADS;
    let h = e / QUADS / TX;
    let c = e / QUADS % TX;
    xt[k].v[0][h][c] = vec4<f32>(f.x0.x, f.x1.x, f.x2.x, f.x3.x);
    xt[k].v[1][h][c] = vec4<f32>(f.x0.y, f.x1.y, f.x2.y, f.x3.y);
    xt[k].v[2][h][c] = vec4<f32>(f.x0.z, f.x1.z, f.x2.z, f.x3.z);
    xt[k].v[3][h][c] = vec4<f32>(f.x0.w, f.x1.w, f.x2.w, f.x3.w);
  }
}

// add adds the products of value i of the four with number k.
fn add(a: ptr<function, Sums>, k: u32, i: u32, ty: u32, tx: u32) {
  let w0 = wt[k].v[i][0][ty];
  let w1 = wt[k].v[i][1][ty];
  let x0 = xt[k].v[i][0][tx];
  let x1 = xt[k].v[i][1][tx];
  (*a)[0] += w0 * x0.x;
  (*a)[1] += w1 * x0.x;
  (*a)[2] += w0 * x0.y;
  (*a)[3] += w1 * x0.y;
  (*a)[4] += w0 * x0.z;
  (*a)[5] += w1 * x0.z;
  (*a)[6] += w0 * x0.w;
  (*a)[7] += w1 * x0.w;
  (*a)[8] += w0 * x1.x;
  (*a)[9] += w1 * x1.x;
  (*a)[10] += w0 * x1.y;
  (*a)[11] += w1 * x1.y;
  (*a)[12] += w0 * x1.z;
  (*a)[13] += w1 * x1.z;
  (*a)[14] += w0 * x1.w;
  (*a)[15] += w1 * x1.w;
}

// Four is a part of the sums that two teams exchange at a time.
struct Four {
  a: vec4<f32>,
  b: vec4<f32>,
  c: vec4<f32>,
  d: vec4<f32>,
}

// leave and left use the room of the activations when the products are done.
fn leave(e: u32, v: vec4<f32>) { xt[e / (8u * TX)].v[e / (2u * TX) % 4u][e / TX % 2u][e % TX] = v; }

fn left(e: u32) -> vec4<f32> { return xt[e / (8u * TX)].v[e / (2u * TX) % 4u][e / TX % 2u][e % TX]; }

// exchange gives teams 0 to half-1 their sums and those of teams half to 2 half - 1.
fn exchange(v: Four, half: u32, t: u32) -> Four {
  let e = t % (half * TEAM);
  if (t / TEAM >= half && t / TEAM < 2u * half) {
    leave(e, v.a);
    leave(e + 128u, v.b);
    leave(e + 256u, v.c);
    leave(e + 384u, v.d);
  }
  workgroupBarrier();
  var s = v;
  if (t / TEAM < half) {
    s = Four(v.a + left(e), v.b + left(e + 128u), v.c + left(e + 256u), v.d + left(e + 384u));
  }
  workgroupBarrier();
  return s;
}

// products forms the tile's sums; those of team 0 are complete.
fn products(a: ptr<function, Sums>, row: u32, col: u32, t: u32) {
  let team = t / TEAM;
  let ty = t % TEAM % TY;
  let tx = t % TEAM / TY;
  let w = row_at(row, t / STEP) + t % STEP;
  let e = x_task(t);
  let q = e / QUADS * 4u;
  let c = vec4<u32>(column_at(col, q), column_at(col, q + 1u), column_at(col, q + 2u), column_at(col, q + 3u)) + e % QUADS;
  var f = fetch(t, 0u, w, c);
  for (var o = 0u; o < OCTETS; o += STEP) {
    place(t, f);
    workgroupBarrier();
    if (o + STEP < OCTETS) {
      f = fetch(t, o + STEP, w, c);
    }
    for (var k = 0u; k < QUADS / TEAMS; k += 1u) {
      add(a, team * (QUADS / TEAMS) + k, 0u, ty, tx);
      add(a, team * (QUADS / TEAMS) + k, 1u, ty, tx);
      add(a, team * (QUADS / TEAMS) + k, 2u, ty, tx);
      add(a, team * (QUADS / TEAMS) + k, 3u, ty, tx);
    }
    workgroupBarrier();
  }
  for (var half = TEAMS / 2u; half > 0u; half /= 2u) {
    let v0 = exchange(Four((*a)[0], (*a)[1], (*a)[2], (*a)[3]), half, t);
    let v1 = exchange(Four((*a)[4], (*a)[5], (*a)[6], (*a)[7]), half, t);
    let v2 = exchange(Four((*a)[8], (*a)[9], (*a)[10], (*a)[11]), half, t);
    let v3 = exchange(Four((*a)[12], (*a)[13], (*a)[14], (*a)[15]), half, t);
    (*a) = Sums(v0.a, v0.b, v0.c, v0.d, v1.a, v1.b, v1.c, v1.d, v2.a, v2.b, v2.c, v2.d, v3.a, v3.b, v3.c, v3.d);
  }
}
