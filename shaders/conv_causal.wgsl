// out[c][ch] = silu(sum_t w[ch][t] input[ch][c+t]), input = the window followed by the columns of x; then the window moves on
//
// x, out (n, CHANNELS), w (CHANNELS, TAPS), window, window0 (TAPS-1, CHANNELS), inputs (16, CHANNELS).
// A workgroup treats WG channels, a thread one channel, column after column. With frame.keep the window as it was and
// the inputs are kept for conv_undo. Grid: x over the channels. Constants: CHANNELS, TAPS, WG.
@group(1) @binding(0) var<storage, read> x: array<f32>;
@group(1) @binding(1) var<storage, read> w: array<f32>;
@group(1) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(3) var<storage, read_write> window: array<f32>;
@group(1) @binding(4) var<storage, read_write> window0: array<f32>;
@group(1) @binding(5) var<storage, read_write> inputs: array<f32>;

// input is the channel's i-th input, the remembered ones first.
fn input(ch: u32, i: u32) -> f32 {
  if (i < TAPS - 1u) {
    return window[i * CHANNELS + ch];
  }
  return x[(i + 1u - TAPS) * CHANNELS + ch];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let ch = wid.x * WG + t;
  if (ch >= CHANNELS) {
    return;
  }
  for (var c = 0u; c < frame.n; c += 1u) {
    var a = 0.0;
    for (var i = 0u; i < TAPS; i += 1u) {
      a = fma(w[ch * TAPS + i], input(ch, c + i), a);
    }
    out[c * CHANNELS + ch] = a / (1.0 + exp(-a));
  }
  if (frame.keep == 1u) {
    for (var i = 0u; i < TAPS - 1u; i += 1u) {
      window0[i * CHANNELS + ch] = window[i * CHANNELS + ch];
    }
    for (var c = 0u; c < frame.n; c += 1u) {
      inputs[c * CHANNELS + ch] = x[c * CHANNELS + ch];
    }
  }
  for (var i = 0u; i < TAPS - 1u; i += 1u) { // input n + i is further on than window i: nothing is read after it was written
    window[i * CHANNELS + ch] = input(ch, frame.n + i);
  }
}
