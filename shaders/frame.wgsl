// Decode helper, put in front of every kernel: what the present run works on (bind group 0, one record of a ring).
// pos is the position of column 0, n the number of columns, first the column of the run that column 0 is,
// k the number of candidates, keep is 1 when recurrent states keep what an undo needs, bit c of masked says that column c has a
// mask of allowed candidates, tokens the id of each column.
struct Frame {
  pos: u32,
  n: u32,
  first: u32,
  k: u32,
  keep: u32,
  masked: u32,
  tokens: array<vec4<u32>, 4>,
}
@group(0) @binding(0) var<uniform> frame: Frame;
