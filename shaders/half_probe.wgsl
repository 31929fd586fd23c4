// out[i] = the half with bits i, as the device unpacks it
//
// out (65536) floats as bits. A workgroup unpacks WG patterns. Grid: x over the patterns. Constants: WG.
@group(1) @binding(0) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let i = wid.x * WG + t;
  out[i] = bitcast<u32>(unpack2x16float(i).x);
}
