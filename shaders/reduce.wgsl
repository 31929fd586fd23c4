// Decode helper: sums and maxima over a workgroup of WG threads (at least 16), in two steps and a fixed order. Every thread
// gets the result. To be called in uniform control flow. A tree has log2(WG) barriers instead of three.
var<workgroup> red: array<f32, WG>;

fn sum_all(t: u32, v: f32) -> f32 {
  red[t] = v;
  workgroupBarrier();
  if (t < 16u) {
    var s = v;
    for (var i = t + 16u; i < WG; i += 16u) {
      s = s + red[i];
    }
    red[t] = s;
  }
  workgroupBarrier();
  var all = red[0];
  for (var i = 1u; i < 16u; i += 1u) {
    all = all + red[i];
  }
  workgroupBarrier();
  return all;
}

fn max_all(t: u32, v: f32) -> f32 {
  red[t] = v;
  workgroupBarrier();
  if (t < 16u) {
    var s = v;
    for (var i = t + 16u; i < WG; i += 16u) {
      s = max(s, red[i]);
    }
    red[t] = s;
  }
  workgroupBarrier();
  var all = red[0];
  for (var i = 1u; i < 16u; i += 1u) {
    all = max(all, red[i]);
  }
  workgroupBarrier();
  return all;
}
