// Decode helper: how a column's positions are cut for attention. It depends on the column's own number of positions n
// alone, so that a column's bits don't depend on the run's other columns (spec engine.md 5.4). Package gpu computes the
// same in Go to size the grid.

// split_len is the number of positions in a split: a multiple of STEP, so that there are at most SPLITS splits.
fn split_len(n: u32) -> u32 {
  return ((n + SPLITS - 1u) / SPLITS + STEP - 1u) / STEP * STEP;
}
