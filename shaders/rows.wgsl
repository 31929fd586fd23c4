// Decode helper: LANES threads share ROWS rows and one column; every thread walks octets LANES apart and loads the
// activations once for all its rows. The partial sums meet in workgroup memory in two steps (a tree has more barriers and is
// slower, most of all on a processor); with LANES = 1, which suits a processor, a thread has rows of its own and nothing meets.
// With NORM = 1 the activations are the RMS norm of x: the sum of squares is formed along the way.
// The kernel declares x (vec4), norm (vec4), OCTETS and params.eps.
const ALONE: u32 = 1u / LANES; // 1 when LANES is 1, else 0
const EACH: u32 = ALONE * SHARED + 1u - ALONE;
var<workgroup> red: array<vec4<f32>, WG>;
var<workgroup> red_square: array<f32, WG>;

struct Sums {
  rows: vec4<f32>,
  square: f32,
}

// Eight is as many activations, what their squares add to and what they add to (where a format needs that).
struct Eight {
  a: vec4<f32>,
  b: vec4<f32>,
  square: f32,
  sum: f32,
}

fn eight(base: u32, i: u32) -> Eight {
  var e = Eight(x[base + 2u * i], x[base + 2u * i + 1u], 0.0, 0.0);
  if (NORM == 1u) {
    let q = fma(e.a, e.a, e.b * e.b);
    e.square = (q.x + q.y) + (q.z + q.w);
    e.a = e.a * norm[2u * i];
    e.b = e.b * norm[2u * i + 1u];
  }
  if (HAS_MIN) {
    e.sum = sum8(e.a, e.b);
  }
  return e;
}

// walk is a thread's part of rows r (first octets; those past ROWS are not read). A thread by itself scales what SHARED octets
// give together.
fn walk(r: vec4<u32>, col: u32, lane: u32) -> Sums {
  var a = Sums(vec4<f32>(), 0.0);
  let base = col * OCTETS * 2u;
  for (var s = 0u; s < (OCTETS / EACH + LANES - 1u) / LANES; s += 1u) {
    let first = (s * LANES + lane) * EACH;
    if (OCTETS % LANES == 0u || first < OCTETS) {
      var p = vec4<f32>();
      var sum = 0.0;
      for (var k = 0u; k < EACH; k += 1u) {
        let i = first + k;
        let e = eight(base, i);
        a.square += e.square;
        sum += e.sum;
        p.x += dot8(quants(r.x + i), e.a, e.b);
        if (ROWS > 1u) {
          p.y += dot8(quants(r.y + i), e.a, e.b);
        }
        if (ROWS > 2u) {
          p.z += dot8(quants(r.z + i), e.a, e.b);
          p.w += dot8(quants(r.w + i), e.a, e.b);
        }
      }
      a.rows.x = scaled(scale_of(r.x + first), p.x, sum, a.rows.x);
      if (ROWS > 1u) {
        a.rows.y = scaled(scale_of(r.y + first), p.y, sum, a.rows.y);
      }
      if (ROWS > 2u) {
        a.rows.z = scaled(scale_of(r.z + first), p.z, sum, a.rows.z);
        a.rows.w = scaled(scale_of(r.w + first), p.w, sum, a.rows.w);
      }
    }
  }
  return a;
}

// meet adds up the threads' parts; the result is valid on lane 0. To be called in uniform control flow.
fn meet(part: Sums, t: u32, lane: u32) -> vec4<f32> {
  var a = part;
  if (LANES > 1u) {
    red[t] = a.rows;
    if (NORM == 1u) {
      red_square[t] = a.square;
    }
    workgroupBarrier();
    if (LANES > 8u) {
      if (lane < 8u) {
        for (var i = 8u; i < LANES; i += 8u) {
          a.rows = a.rows + red[t + i];
          if (NORM == 1u) {
            a.square = a.square + red_square[t + i];
          }
        }
        red[t] = a.rows;
        if (NORM == 1u) {
          red_square[t] = a.square;
        }
      }
      workgroupBarrier();
    }
    if (lane == 0u) {
      for (var i = 1u; i < min(LANES, 8u); i += 1u) {
        a.rows = a.rows + red[t + i];
        if (NORM == 1u) {
          a.square = a.square + red_square[t + i];
        }
      }
    }
  }
  if (NORM == 1u) {
    return a.rows / sqrt(a.square / f32(OCTETS * 8u) + params.eps);
  }
  return a.rows;
}
