// S' = decay S; d_j = beta (v_j - sum_i S'_ij k_i); S_ij = S'_ij + k_i d_j; out_j = (sum_i S'_ij q_i + d_j (k . q)) / sqrt(DIM)
//   q, k divided by their norms, beta = sigmoid(b), decay = exp(softplus(a + dt) ssm_a); one value head h, key head h mod KEYHEADS
//
// y (n, [KEYHEADS q | KEYHEADS k | HEADS v] of DIM), alpha, beta (n, HEADS), ssm_a, dt (HEADS), out (n, HEADS, DIM),
// state (HEADS, DIM keys, DIM values). kept holds, with frame.keep, the state as it was, then y, alpha and beta of up to
// 16 columns, each from a multiple of 64 values on.
// A workgroup treats COLUMNS values of one head, column of the run after column; its threads are COLUMNS by GROUPS, each with
// DIM/GROUPS keys: one sweep forms both sums, which meet in workgroup memory, a second one updates (its reads are
// cached). Grid: x over the parts of a head, y is the head.
// Constants: HEADS, KEYHEADS, DIM, COLUMNS (divides DIM), GROUPS (divides DIM), WG (at least COLUMNS GROUPS and 16;
// threads beyond that only help to load).
// One thread a value with all keys took 39 us where the sweep by groups is bound by memory (spec engine.md 5.5).
@group(1) @binding(0) var<storage, read> y: array<f32>;
@group(1) @binding(1) var<storage, read> alpha: array<f32>;
@group(1) @binding(2) var<storage, read> beta: array<f32>;
@group(1) @binding(3) var<storage, read> ssm_a: array<f32>;
@group(1) @binding(4) var<storage, read> dt: array<f32>;
@group(1) @binding(5) var<storage, read_write> out: array<f32>;
@group(1) @binding(6) var<storage, read_write> state: array<f32>;
@group(1) @binding(7) var<storage, read_write> kept: array<f32>;

const CHANNELS: u32 = (2u * KEYHEADS + HEADS) * DIM;
const KEPT_Y: u32 = (HEADS * DIM * DIM + 63u) / 64u * 64u;
const KEPT_ALPHA: u32 = KEPT_Y + (16u * CHANNELS + 63u) / 64u * 64u;
const KEPT_BETA: u32 = KEPT_ALPHA + (16u * HEADS + 63u) / 64u * 64u;
const KEYS: u32 = DIM / GROUPS;
const FLOOR: f32 = 1e-6;
var<workgroup> qs: array<f32, DIM>;
var<workgroup> ks: array<f32, DIM>;
var<workgroup> part_k: array<f32, WG>;
var<workgroup> part_q: array<f32, WG>;

fn softplus(x: f32) -> f32 {
  if (x > 20.0) {
    return x;
  }
  // ln(1 + e) without losing a small e: log(u) e / (u - 1) for u = 1 + e as rounded
  let e = exp(x);
  let u = 1.0 + e;
  if (u == 1.0) {
    return e;
  }
  return log(u) * e / (u - 1.0);
}

fn keep_inputs(h: u32, part: u32, t: u32) {
  for (var c = 0u; c < frame.n; c += 1u) {
    for (var i = part * WG + t; i < CHANNELS && h == 0u; i += (DIM / COLUMNS) * WG) {
      kept[KEPT_Y + c * CHANNELS + i] = y[c * CHANNELS + i];
    }
    if (part == 0u && t == 0u) {
      kept[KEPT_ALPHA + c * HEADS + h] = alpha[c * HEADS + h];
      kept[KEPT_BETA + c * HEADS + h] = beta[c * HEADS + h];
    }
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let h = wid.y;
  let key = h % KEYHEADS;
  let works = t < COLUMNS * GROUPS;
  let j = wid.x * COLUMNS + t % COLUMNS;
  let first = min(t / COLUMNS, GROUPS - 1u) * KEYS;
  let base = (h * DIM + first) * DIM + j;
  if (frame.keep == 1u) {
    keep_inputs(h, wid.x, t);
    for (var i = 0u; i < KEYS && works; i += 1u) {
      kept[base + i * DIM] = state[base + i * DIM];
    }
  }
  for (var c = 0u; c < frame.n; c += 1u) {
    let at = c * CHANNELS;
    var qq = 0.0;
    var kk = 0.0;
    var kq = 0.0;
    for (var i = t; i < DIM; i += WG) {
      let q = y[at + key * DIM + i];
      let k = y[at + (KEYHEADS + key) * DIM + i];
      qs[i] = q;
      ks[i] = k;
      qq = fma(q, q, qq);
      kk = fma(k, k, kk);
      kq = fma(k, q, kq);
    }
    let q_norm = 1.0 / max(sqrt(sum_all(t, qq)), FLOOR);
    let k_norm = 1.0 / max(sqrt(sum_all(t, kk)), FLOOR);
    let dot_kq = sum_all(t, kq) * q_norm * k_norm; // the barriers also publish qs and ks
    let b = 1.0 / (1.0 + exp(-beta[c * HEADS + h]));
    let decay = exp(softplus(alpha[c * HEADS + h] + dt[h]) * ssm_a[h]);
    var sk = 0.0;
    var sq = 0.0;
    for (var i = 0u; i < KEYS; i += 1u) {
      let s = state[base + i * DIM];
      sk = fma(s, ks[first + i], sk);
      sq = fma(s, qs[first + i], sq);
    }
    part_k[t] = sk;
    part_q[t] = sq;
    workgroupBarrier();
    var sum_k = 0.0;
    var sum_q = 0.0;
    for (var g = 0u; g < GROUPS; g += 1u) {
      sum_k = sum_k + part_k[g * COLUMNS + t % COLUMNS];
      sum_q = sum_q + part_q[g * COLUMNS + t % COLUMNS];
    }
    let v = y[at + (2u * KEYHEADS + h) * DIM + j];
    let d = b * (v - decay * k_norm * sum_k);
    let step = k_norm * d;
    for (var i = 0u; i < KEYS && works; i += 1u) {
      state[base + i * DIM] = fma(ks[first + i], step, decay * state[base + i * DIM]);
    }
    if (t < COLUMNS) {
      out[(c * HEADS + h) * DIM + j] = fma(decay * q_norm, sum_q, d * dot_kq) / sqrt(f32(DIM));
    }
    workgroupBarrier(); // before the next column's qs, ks and parts
  }
}
