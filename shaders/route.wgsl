// sel[c] = the USED largest of logits[c], larger ones first, then lower ids: ids as bits, then the softmax over them
//
// logits (n, EXPERTS), sel (n, 2 USED). A workgroup treats one column: every thread counts, for its logits, those before
// them in the order. Values are compared as keys, unsigned numbers in the order of the floats, NaN lowest.
// Grid: x is the column. Constants: EXPERTS, USED (at most 64 and EXPERTS), WG (at least USED).
@group(1) @binding(0) var<storage, read> logits: array<u32>;
@group(1) @binding(1) var<storage, read_write> sel: array<u32>;

var<workgroup> keys: array<u32, EXPERTS>;
var<workgroup> chosen: array<f32, USED>;

fn key(bits: u32) -> u32 {
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return 0u;
  }
  if (bits == 0x80000000u) {
    return 0x80000000u;
  }
  return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let c = wid.x;
  for (var i = t; i < EXPERTS; i += WG) {
    keys[i] = key(logits[c * EXPERTS + i]);
  }
  workgroupBarrier();
  for (var i = t; i < EXPERTS; i += WG) {
    let mine = keys[i];
    var before = 0u;
    for (var o = 0u; o < EXPERTS; o += 1u) {
      let other = keys[o];
      before += select(0u, 1u, other > mine || (other == mine && o < i));
    }
    if (before < USED) {
      sel[c * 2u * USED + before] = i;
      chosen[before] = bitcast<f32>(logits[c * EXPERTS + i]);
    }
  }
  workgroupBarrier();
  if (t < USED) {
    var sum = 0.0;
    for (var k = 0u; k < USED; k += 1u) {
      sum = sum + exp(chosen[k] - chosen[0]);
    }
    sel[c * 2u * USED + USED + t] = bitcast<u32>(exp(chosen[t] - chosen[0]) / sum);
  }
}
