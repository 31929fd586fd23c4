// Decode helper: LANES threads share ROWS rows and one column; every thread walks octets LANES apart and loads the
// activations once for all its rows. The partial sums meet in workgroup memory in two steps (a tree has more barriers and is
// slower, most of all on a processor); with LANES = 1, which suits a processor, a thread has rows of its own and nothing meets.
// With NORM = 1 the activations are the RMS norm of x: the sum of squares is formed along the way.
// The kernel declares x (vec4), norm (vec4), OCTETS and params.eps.
var<workgroup> red: array<vec4<f32>, WG>;
var<workgroup> red_square: array<f32, WG>;

struct Sums {
  rows: vec4<f32>,
  square: f32,
}

// walk is a thread's part of rows r (first octets; those past ROWS are not read).
fn walk(r: vec4<u32>, col: u32, lane: u32) -> Sums {
  var a = Sums(vec4<f32>(), 0.0);
  let base = col * OCTETS * 2u;
  for (var s = 0u; s < (OCTETS + LANES - 1u) / LANES; s += 1u) {
    let i = s * LANES + lane;
    if (OCTETS % LANES == 0u || i < OCTETS) {
      var x0 = x[base + 2u * i];
      var x1 = x[base + 2u * i + 1u];
      if (NORM == 1u) {
        let q = fma(x0, x0, x1 * x1);
        a.square += (q.x + q.y) + (q.z + q.w);
        x0 = x0 * norm[2u * i];
        x1 = x1 * norm[2u * i + 1u];
      }
      var sum = 0.0;
      if (HAS_MIN) {
        sum = sum8(x0, x1);
      }
      a.rows.x = times(octet(r.x + i), x0, x1, sum, a.rows.x);
      if (ROWS > 1u) {
        a.rows.y = times(octet(r.y + i), x0, x1, sum, a.rows.y);
      }
      if (ROWS > 2u) {
        a.rows.z = times(octet(r.z + i), x0, x1, sum, a.rows.z);
        a.rows.w = times(octet(r.w + i), x0, x1, sum, a.rows.w);
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
