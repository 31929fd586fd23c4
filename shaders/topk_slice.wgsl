// cand[c][s] = the frame.k largest of x[c][s*2048 .. s*2048+2047] as (id, key), by value descending, then id ascending
// bad[c][s] = how many of them are NaN or infinite; those are never candidates, nor are those that the column's mask leaves out
//
// x (n, WIDTH), mask (n, WIDTH/32 rounded up) with a bit for each value, cand (n, SLICES, 64), bad (n, SLICES). A workgroup treats one slice of one column: the values lie in
// workgroup memory, and k times the best one is found in two steps and knocked out. A slot without a value holds id
// 0xffffffff and key 0. Values are compared as keys, unsigned numbers in the order of the floats: a GPU may take tiny floats
// for zero when it compares them. Grid: x is the slice, y the column. Constants: WIDTH, SLICES.
@group(1) @binding(0) var<storage, read> x: array<u32>;
@group(1) @binding(1) var<storage, read> mask: array<u32>;
@group(1) @binding(2) var<storage, read_write> cand: array<vec2<u32>>;
@group(1) @binding(3) var<storage, read_write> bad: array<u32>;

const NONE: u32 = 0xffffffffu;
var<workgroup> v: array<u32, 2048>;
var<workgroup> best: array<u32, 256>;
var<workgroup> who: array<u32, 256>;
var<workgroup> count: array<u32, 256>;

// key orders the bits of finite floats as their values are ordered, from 1 up; both zeros are one.
fn key(bits: u32) -> u32 {
  if (bits == 0x80000000u) {
    return 0x80000000u;
  }
  return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}

const WORDS: u32 = (WIDTH + 31u) / 32u;

fn allowed(c: u32, i: u32) -> bool {
  if (((frame.masked >> c) & 1u) == 0u) {
    return true;
  }
  return ((mask[c * WORDS + i / 32u] >> (i % 32u)) & 1u) == 1u;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let slot = wid.y * SLICES + wid.x;
  let first = wid.x * 2048u;
  var wrong = 0u;
  for (var i = t; i < 2048u; i += 256u) {
    var y = 0u;
    if (first + i < WIDTH) {
      let bits = x[wid.y * WIDTH + first + i];
      if ((bits & 0x7f800000u) == 0x7f800000u) {
        wrong += 1u;
      } else if (allowed(wid.y, first + i)) {
        y = key(bits);
      }
    }
    v[i] = y;
  }
  count[t] = wrong;
  for (var r = 0u; r < frame.k; r += 1u) {
    var b = 0u;
    var w = NONE;
    for (var i = t; i < 2048u; i += 256u) {
      if (v[i] > b) {
        b = v[i];
        w = first + i;
      }
    }
    best[t] = b;
    who[t] = w;
    workgroupBarrier();
    if (t < 16u) {
      for (var i = t + 16u; i < 256u; i += 16u) {
        if (best[i] > best[t] || (best[i] == best[t] && who[i] < who[t])) {
          best[t] = best[i];
          who[t] = who[i];
        }
      }
    }
    workgroupBarrier();
    if (t == 0u) {
      for (var i = 1u; i < 16u; i += 1u) {
        if (best[i] > best[t] || (best[i] == best[t] && who[i] < who[t])) {
          best[t] = best[i];
          who[t] = who[i];
        }
      }
      cand[slot * 64u + r] = vec2<u32>(who[0], best[0]);
      if (who[0] != NONE) {
        v[who[0] - first] = 0u;
      }
    }
    workgroupBarrier();
  }
  workgroupBarrier();
  if (t < 16u) {
    for (var i = t + 16u; i < 256u; i += 16u) {
      count[t] = count[t] + count[i];
    }
  }
  workgroupBarrier();
  if (t == 0u) {
    for (var i = 1u; i < 16u; i += 1u) {
      count[0] = count[0] + count[i];
    }
    bad[slot] = count[0];
  }
}
