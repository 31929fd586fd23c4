// q[c][h] = rotate(norm(q[c][h], wq), pos + c), k[c][g] = rotate(norm(k[c][g], wk), pos + c), both in place, then
// keys[pos+c] = k[c], values[pos+c] = v[c]
//   norm and rotate as in norm_rope; the rounding to halves, if any, as in kv_store_f16
//
// q (n, HEADS, HD), k, v (n, KVHEADS, HD), wq, wk (HD), table (positions, NROT/2) of (cos, sin); keys, values (capacity,
// KVHEADS, HD), see store_*.wgsl.
// One launch instead of three. A workgroup computes one head of one column, the first HEADS those of q, the others those of
// k with the head of v beside it. Grid: x is the head, y the column.
// Constants: HEADS, KVHEADS, HD (even), NROT (even, at most HD), NORM (0 leaves out the norms; wq and wk are then not read), WG.
struct Params {
  eps: f32,
}
@group(1) @binding(0) var<storage, read> wq: array<f32>;
@group(1) @binding(1) var<storage, read> wk: array<f32>;
@group(1) @binding(2) var<storage, read> table: array<vec2<f32>>;
@group(1) @binding(3) var<storage, read> v: array<f32>;
@group(1) @binding(4) var<storage, read_write> q: array<f32>;
@group(1) @binding(5) var<storage, read_write> k: array<f32>;
@group(1) @binding(8) var<uniform> params: Params;

const PAIRS: u32 = NROT / 2u;
var<workgroup> head: array<f32, HD>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let c = wid.y;
  let query = wid.x < HEADS;
  let h = select(wid.x - HEADS, wid.x, query);
  let base = select((c * KVHEADS + h) * HD, (c * HEADS + h) * HD, query);
  var a = 0.0;
  for (var i = t; i < HD; i += WG) {
    var x = 0.0;
    if (query) {
      x = q[base + i];
    } else {
      x = k[base + i];
    }
    head[i] = x;
    a = fma(x, x, a);
  }
  let inv = 1.0 / sqrt(sum_all(t, a) / f32(HD) + params.eps);
  if (NORM == 1u) {
    for (var i = t; i < HD; i += WG) {
      var w = 0.0;
      if (query) {
        w = wq[i];
      } else {
        w = wk[i];
      }
      head[i] = head[i] * inv * w;
    }
  }
  workgroupBarrier();
  let row = (frame.pos + c) * PAIRS;
  for (var i = t; i < PAIRS; i += WG) {
    let cs = table[row + i];
    let x = head[i];
    let y = head[i + PAIRS];
    head[i] = fma(x, cs.x, -(y * cs.y));
    head[i + PAIRS] = fma(y, cs.x, x * cs.y);
  }
  workgroupBarrier();
  if (query) {
    for (var i = t; i < HD; i += WG) {
      q[base + i] = head[i];
    }
    return;
  }
  for (var i = t; i < HD; i += WG) {
    k[base + i] = head[i];
  }
  let to = ((frame.pos + c) * KVHEADS + h) * (HD / 2u);
  for (var i = t; i < HD / 2u; i += WG) {
    put_key(to + i, head[2u * i], head[2u * i + 1u]);
    put_value(to + i, v[base + 2u * i], v[base + 2u * i + 1u]);
  }
}
