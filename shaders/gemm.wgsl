// out[c][row0+r] (+)= sum_i w[r][i] x[c][i]                       for many columns
//
// x (n, COLS), w (rows, COLS) in any format, out (n, stride). Sums of a column are formed in the order of i, BK at a time.
// A workgroup computes a tile of BM rows and BN columns: for BK values of i at a time the weights are decoded into workgroup
// memory, and the activations copied beside them, both turned so that a thread reads four rows and four columns at once. Its
// 256 threads are 16 by 16; each holds the sums of 4 or 8 rows and as many columns, in quads that lie BM/2 and BN/2 apart.
// Grid: x folds the tiles of rows and z counts the folds (32,768 each), y is the tile of columns.
// Constants: COLS (multiple of 8), BM, BN (64 or 128), BK (multiple of 8), UNROLL (1, 2, 4 or 8), ACC (1 adds to out), FAST_HALF.
struct Params {
  rows: u32,    // rows of this piece
  row0: u32,    // first row of the piece in out
  stride: u32,  // values from one column of out to the next
  at: u32,      // octets in the arrays before the matrix
}
@group(1) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read_write> out: array<f32>;
@group(1) @binding(2) var<uniform> params: Params;

const OCTETS: u32 = COLS / 8u;
const STEP: u32 = BK / 8u;        // octets of a row in a tile
const MQ: u32 = BM / 4u;          // quads of rows
const NQ: u32 = BN / 4u;          // quads of columns
const W_TASKS: u32 = MQ * STEP;   // four rows, one octet each
const TASKS: u32 = W_TASKS + NQ * STEP;
const W_SIZE: u32 = BK * MQ;
const X_SIZE: u32 = BK * NQ;
var<workgroup> wt: array<vec4<f32>, W_SIZE>; // [i][quad of rows]
var<workgroup> xt: array<vec4<f32>, X_SIZE>; // [i][quad of columns]

struct Octet {
  a: vec4<f32>,
  b: vec4<f32>,
}

// weights is octet o of the arrays with its scale.
fn weights(o: u32) -> Octet {
  let q = quants(o);
  let s = scale_of(o);
  if (HAS_MIN) {
    return Octet(fma(vec4<f32>(s.d), q.lo, vec4<f32>(s.m)), fma(vec4<f32>(s.d), q.hi, vec4<f32>(s.m)));
  }
  return Octet(s.d * q.lo, s.d * q.hi);
}

fn load_w(task: u32, first: u32, row: u32) {
  let g = task % MQ;
  let o = task / MQ;
  var e = array<Octet, 4>();
  if (first + o < OCTETS) {
    let r = min(vec4<u32>(row + 4u * g) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.rows - 1u)) * OCTETS + params.at + first + o;
    e = array<Octet, 4>(weights(r.x), weights(r.y), weights(r.z), weights(r.w));
  }
  let at = o * 8u * MQ + g;
  wt[at] = vec4<f32>(e[0].a.x, e[1].a.x, e[2].a.x, e[3].a.x);
  wt[at + MQ] = vec4<f32>(e[0].a.y, e[1].a.y, e[2].a.y, e[3].a.y);
  wt[at + 2u * MQ] = vec4<f32>(e[0].a.z, e[1].a.z, e[2].a.z, e[3].a.z);
  wt[at + 3u * MQ] = vec4<f32>(e[0].a.w, e[1].a.w, e[2].a.w, e[3].a.w);
  wt[at + 4u * MQ] = vec4<f32>(e[0].b.x, e[1].b.x, e[2].b.x, e[3].b.x);
  wt[at + 5u * MQ] = vec4<f32>(e[0].b.y, e[1].b.y, e[2].b.y, e[3].b.y);
  wt[at + 6u * MQ] = vec4<f32>(e[0].b.z, e[1].b.z, e[2].b.z, e[3].b.z);
  wt[at + 7u * MQ] = vec4<f32>(e[0].b.w, e[1].b.w, e[2].b.w, e[3].b.w);
}

fn load_x(task: u32, first: u32, col: u32) {
  let g = task % NQ;
  let o = task / NQ;
  var e = array<Octet, 4>();
  if (first + o < OCTETS) {
    let c = (min(vec4<u32>(col + 4u * g) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(frame.n - 1u)) * OCTETS + first + o) * 2u;
    e = array<Octet, 4>(Octet(x[c.x], x[c.x + 1u]), Octet(x[c.y], x[c.y + 1u]), Octet(x[c.z], x[c.z + 1u]), Octet(x[c.w], x[c.w + 1u]));
  }
  let at = o * 8u * NQ + g;
  xt[at] = vec4<f32>(e[0].a.x, e[1].a.x, e[2].a.x, e[3].a.x);
  xt[at + NQ] = vec4<f32>(e[0].a.y, e[1].a.y, e[2].a.y, e[3].a.y);
  xt[at + 2u * NQ] = vec4<f32>(e[0].a.z, e[1].a.z, e[2].a.z, e[3].a.z);
  xt[at + 3u * NQ] = vec4<f32>(e[0].a.w, e[1].a.w, e[2].a.w, e[3].a.w);
  xt[at + 4u * NQ] = vec4<f32>(e[0].b.x, e[1].b.x, e[2].b.x, e[3].b.x);
  xt[at + 5u * NQ] = vec4<f32>(e[0].b.y, e[1].b.y, e[2].b.y, e[3].b.y);
  xt[at + 6u * NQ] = vec4<f32>(e[0].b.z, e[1].b.z, e[2].b.z, e[3].b.z);
  xt[at + 7u * NQ] = vec4<f32>(e[0].b.w, e[1].b.w, e[2].b.w, e[3].b.w);
}

fn put(col: u32, row: u32, v: vec4<f32>) {
  if (col >= frame.n) {
    return;
  }
  let at = col * params.stride + params.row0 + row;
  var s = v;
  for (var i = 0u; i < 4u && row + i < params.rows; i += 1u) {
    if (ACC == 1u) {
      out[at + i] = out[at + i] + s[i];
    } else {
      out[at + i] = s[i];
    }
  }
}

// step adds the products of value i: a holds the sums of four rows each, for the first quad of columns and of rows, then for the
// second quad of rows, then for the second quad of columns in the same order.
fn step(a: ptr<function, array<vec4<f32>, 16>>, i: u32, tx: u32, ty: u32) {
  let w0 = wt[i * MQ + ty];
  let x0 = xt[i * NQ + tx];
  (*a)[0] = fma(vec4<f32>(x0.x), w0, (*a)[0]);
  (*a)[1] = fma(vec4<f32>(x0.y), w0, (*a)[1]);
  (*a)[2] = fma(vec4<f32>(x0.z), w0, (*a)[2]);
  (*a)[3] = fma(vec4<f32>(x0.w), w0, (*a)[3]);
  var w1 = vec4<f32>();
  if (BM > 64u) {
    w1 = wt[i * MQ + 16u + ty];
    (*a)[4] = fma(vec4<f32>(x0.x), w1, (*a)[4]);
    (*a)[5] = fma(vec4<f32>(x0.y), w1, (*a)[5]);
    (*a)[6] = fma(vec4<f32>(x0.z), w1, (*a)[6]);
    (*a)[7] = fma(vec4<f32>(x0.w), w1, (*a)[7]);
  }
  if (BN > 64u) {
    let x1 = xt[i * NQ + 16u + tx];
    (*a)[8] = fma(vec4<f32>(x1.x), w0, (*a)[8]);
    (*a)[9] = fma(vec4<f32>(x1.y), w0, (*a)[9]);
    (*a)[10] = fma(vec4<f32>(x1.z), w0, (*a)[10]);
    (*a)[11] = fma(vec4<f32>(x1.w), w0, (*a)[11]);
    if (BM > 64u) {
      (*a)[12] = fma(vec4<f32>(x1.x), w1, (*a)[12]);
      (*a)[13] = fma(vec4<f32>(x1.y), w1, (*a)[13]);
      (*a)[14] = fma(vec4<f32>(x1.z), w1, (*a)[14]);
      (*a)[15] = fma(vec4<f32>(x1.w), w1, (*a)[15]);
    }
  }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = (wid.z * 32768u + wid.x) * BM;
  let col = wid.y * BN;
  if (row >= params.rows) {
    return;
  }
  let ty = t % 16u; // quads of rows
  let tx = t / 16u; // quads of columns
  var a = array<vec4<f32>, 16>();
  for (var first = 0u; first < OCTETS; first += STEP) {
    for (var task = t; task < TASKS; task += 256u) {
      if (task < W_TASKS) {
        load_w(task, first, row);
      } else {
        load_x(task - W_TASKS, first, col);
      }
    }
    workgroupBarrier();
    for (var i = 0u; i < BK; i += UNROLL) {
      step(&a, i, tx, ty);
      if (UNROLL > 1u) {
        step(&a, i + 1u, tx, ty);
      }
      if (UNROLL > 2u) {
        step(&a, i + 2u, tx, ty);
        step(&a, i + 3u, tx, ty);
      }
      if (UNROLL > 4u) {
        step(&a, i + 4u, tx, ty);
        step(&a, i + 5u, tx, ty);
        step(&a, i + 6u, tx, ty);
        step(&a, i + 7u, tx, ty);
      }
    }
    workgroupBarrier();
  }
  let r = row + 4u * ty;
  let c = col + 4u * tx;
  put(c, r, a[0]);
  put(c + 1u, r, a[1]);
  put(c + 2u, r, a[2]);
  put(c + 3u, r, a[3]);
  if (BM > 64u) {
    put(c, r + 64u, a[4]);
    put(c + 1u, r + 64u, a[5]);
    put(c + 2u, r + 64u, a[6]);
    put(c + 3u, r + 64u, a[7]);
  }
  if (BN > 64u) {
    put(c + 64u, r, a[8]);
    put(c + 65u, r, a[9]);
    put(c + 66u, r, a[10]);
    put(c + 67u, r, a[11]);
    if (BM > 64u) {
      put(c + 64u, r + 64u, a[12]);
      put(c + 65u, r + 64u, a[13]);
      put(c + 66u, r + 64u, a[14]);
      put(c + 67u, r + 64u, a[15]);
    }
  }
}
