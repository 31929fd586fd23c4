// window[t][ch] = input[ch][n+t], input = window0 followed by inputs: the window as if only n columns had run
//
// window, window0 (TAPS-1, CHANNELS), inputs (16, CHANNELS). A workgroup treats WG channels. Grid: x over the channels.
// Constants: CHANNELS, TAPS, WG.
@group(1) @binding(0) var<storage, read> window0: array<f32>;
@group(1) @binding(1) var<storage, read> inputs: array<f32>;
@group(1) @binding(2) var<storage, read_write> window: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let ch = wid.x * WG + t;
  if (ch >= CHANNELS) {
    return;
  }
  for (var i = 0u; i < TAPS - 1u; i += 1u) {
    let at = frame.n + i;
    if (at < TAPS - 1u) {
      window[i * CHANNELS + ch] = window0[at * CHANNELS + ch];
    } else {
      window[i * CHANNELS + ch] = inputs[(at + 1u - TAPS) * CHANNELS + ch];
    }
  }
}
