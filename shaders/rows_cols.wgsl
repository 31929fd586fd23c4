// Decode helper: rows.wgsl for four columns at a time. A weight is loaded and decoded once for the four; each column's sums
// are formed in the same order as there, bit for bit. Columns past the run's are computed from whatever the buffer holds.
const ALONE: u32 = 1u / LANES; // 1 when LANES is 1, else 0
const EACH: u32 = ALONE * SHARED + 1u - ALONE;
var<workgroup> red0: array<vec4<f32>, WG>;
var<workgroup> red1: array<vec4<f32>, WG>;
var<workgroup> red2: array<vec4<f32>, WG>;
var<workgroup> red3: array<vec4<f32>, WG>;
var<workgroup> red_square: array<vec4<f32>, WG>;

// A Sums member is a row; its components are the columns.
struct Sums {
  a: vec4<f32>,
  b: vec4<f32>,
  c: vec4<f32>,
  d: vec4<f32>,
  square: vec4<f32>,
}

fn square8(a: vec4<f32>, b: vec4<f32>) -> f32 {
  let q = fma(a, a, b * b);
  return (q.x + q.y) + (q.z + q.w);
}

fn walk(r: vec4<u32>, col: u32, lane: u32) -> Sums {
  var a = Sums(vec4<f32>(), vec4<f32>(), vec4<f32>(), vec4<f32>(), vec4<f32>());
  let c0 = col * OCTETS * 2u;
  for (var s = 0u; s < (OCTETS / EACH + LANES - 1u) / LANES; s += 1u) {
    let first = (s * LANES + lane) * EACH;
    if (OCTETS % LANES == 0u || first < OCTETS) {
      var pa = vec4<f32>();
      var pb = vec4<f32>();
      var pc = vec4<f32>();
      var pd = vec4<f32>();
      var sum = vec4<f32>();
      for (var k = 0u; k < EACH; k += 1u) {
        let i = first + k;
        let at = c0 + 2u * i;
        var x0 = x[at];
        var x1 = x[at + 1u];
        var x2 = x[at + 2u * OCTETS];
        var x3 = x[at + 2u * OCTETS + 1u];
        var x4 = x[at + 4u * OCTETS];
        var x5 = x[at + 4u * OCTETS + 1u];
        var x6 = x[at + 6u * OCTETS];
        var x7 = x[at + 6u * OCTETS + 1u];
        if (NORM == 1u) {
          a.square += vec4<f32>(square8(x0, x1), square8(x2, x3), square8(x4, x5), square8(x6, x7));
          let n0 = norm[2u * i];
          let n1 = norm[2u * i + 1u];
          x0 = x0 * n0;
          x1 = x1 * n1;
          x2 = x2 * n0;
          x3 = x3 * n1;
          x4 = x4 * n0;
          x5 = x5 * n1;
          x6 = x6 * n0;
          x7 = x7 * n1;
        }
        if (HAS_MIN) {
          sum += vec4<f32>(sum8(x0, x1), sum8(x2, x3), sum8(x4, x5), sum8(x6, x7));
        }
        let xs = array<vec4<f32>, 8>(x0, x1, x2, x3, x4, x5, x6, x7);
        pa += dot8x4(quants(r.x + i), xs);
        if (ROWS > 1u) {
          pb += dot8x4(quants(r.y + i), xs);
        }
        if (ROWS > 2u) {
          pc += dot8x4(quants(r.z + i), xs);
          pd += dot8x4(quants(r.w + i), xs);
        }
      }
      a.a = scaled4(scale_of(r.x + first), pa, sum, a.a);
      if (ROWS > 1u) {
        a.b = scaled4(scale_of(r.y + first), pb, sum, a.b);
      }
      if (ROWS > 2u) {
        a.c = scaled4(scale_of(r.z + first), pc, sum, a.c);
        a.d = scaled4(scale_of(r.w + first), pd, sum, a.d);
      }
    }
  }
  return a;
}

fn gather(a: Sums, at: u32) -> Sums {
  var s = a;
  s.a = s.a + red0[at];
  if (ROWS > 1u) {
    s.b = s.b + red1[at];
  }
  if (ROWS > 2u) {
    s.c = s.c + red2[at];
    s.d = s.d + red3[at];
  }
  if (NORM == 1u) {
    s.square = s.square + red_square[at];
  }
  return s;
}

fn leave(a: Sums, t: u32) {
  red0[t] = a.a;
  if (ROWS > 1u) {
    red1[t] = a.b;
  }
  if (ROWS > 2u) {
    red2[t] = a.c;
    red3[t] = a.d;
  }
  if (NORM == 1u) {
    red_square[t] = a.square;
  }
}

fn meet(part: Sums, t: u32, lane: u32) -> Sums {
  var a = part;
  if (LANES > 1u) {
    leave(a, t);
    workgroupBarrier();
    if (LANES > 8u) {
      if (lane < 8u) {
        for (var i = 8u; i < LANES; i += 8u) {
          a = gather(a, t + i);
        }
        leave(a, t);
      }
      workgroupBarrier();
    }
    if (lane == 0u) {
      for (var i = 1u; i < min(LANES, 8u); i += 1u) {
        a = gather(a, t + i);
      }
    }
  }
  if (NORM == 1u) {
    let size = sqrt(a.square / f32(OCTETS * 8u) + params.eps);
    a.a = a.a / size;
    a.b = a.b / size;
    a.c = a.c / size;
    a.d = a.d / size;
  }
  return a;
}
