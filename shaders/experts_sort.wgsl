// The pairs of a column and an expert that it chose, grouped by expert and cut into tiles of at most TILE pairs
//
// sel (n, 2 USED) as route makes it. The places: experts in order, and an expert's pairs in the order of their columns. list (MOST)
// gives the pair at a place, place (MOST) the place of a pair; pair c USED + k is expert sel[c][k] of column c.
// tiles[0].x is the number of tiles, tiles[1 + i] (expert, first place, pairs) of a tile.
// One workgroup. A bit for each expert and column says who chose whom; how many bits are before a column's is its pair's place
// among those of the expert. So the order doesn't depend on who comes first, and nothing is searched.
// bits and before (EXPERTS, WORDS) are memory for that. An id that is no expert counts as the last one; a column that had an
// expert twice would leave a place as it was.
// Constants: EXPERTS, USED, WORDS (at least n / 32), TILE, WG (a power of two).
@group(1) @binding(0) var<storage, read> sel: array<u32>;
@group(1) @binding(1) var<storage, read_write> tiles: array<vec4<u32>>;
@group(1) @binding(2) var<storage, read_write> list: array<u32>;
@group(1) @binding(3) var<storage, read_write> place: array<u32>;
@group(1) @binding(4) var<storage, read_write> bits: array<atomic<u32>>;
@group(1) @binding(5) var<storage, read_write> before: array<u32>;

const EACH: u32 = (EXPERTS + WG - 1u) / WG; // experts of a thread
var<workgroup> sums: array<vec2<u32>, WG>;  // of pairs and of tiles

fn expert(p: u32) -> u32 { return min(sel[p / USED * 2u * USED + p % USED], EXPERTS - 1u); }

fn count(e: u32) -> u32 {
  var n = 0u;
  for (var w = 0u; w < WORDS; w += 1u) {
    n += countOneBits(atomicLoad(&bits[e * WORDS + w]));
  }
  return n;
}

// sums_before adds up what the threads before t have; the last of sums is then the sum of all.
fn sums_before(t: u32, mine: vec2<u32>) -> vec2<u32> {
  sums[t] = mine;
  for (var step = 1u; step < WG; step *= 2u) {
    workgroupBarrier();
    let other = sums[max(t, step) - step];
    workgroupBarrier();
    if (t >= step) {
      sums[t] += other;
    }
  }
  workgroupBarrier();
  return sums[t] - mine;
}

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) t: u32) {
  for (var i = t; i < EXPERTS * WORDS; i += WG) {
    atomicStore(&bits[i], 0u);
  }
  storageBarrier();
  for (var p = t; p < frame.n * USED; p += WG) {
    let c = p / USED;
    atomicOr(&bits[expert(p) * WORDS + min(c / 32u, WORDS - 1u)], 1u << (c % 32u));
  }
  storageBarrier();
  var mine = vec2<u32>();
  for (var i = 0u; i < EACH && t * EACH + i < EXPERTS; i += 1u) {
    let n = count(t * EACH + i);
    mine += vec2<u32>(n, (n + TILE - 1u) / TILE);
  }
  var at = sums_before(t, mine);
  for (var i = 0u; i < EACH && t * EACH + i < EXPERTS; i += 1u) {
    let e = t * EACH + i;
    let first = at.x;
    for (var w = 0u; w < WORDS; w += 1u) {
      before[e * WORDS + w] = at.x;
      at.x += countOneBits(atomicLoad(&bits[e * WORDS + w]));
    }
    for (var p = first; p < at.x; p += TILE) {
      at.y += 1u;
      tiles[at.y] = vec4<u32>(e, p, min(at.x - p, TILE), 0u);
    }
  }
  if (t == 0u) {
    tiles[0] = vec4<u32>(sums[WG - 1u].y, 0u, 0u, 0u);
  }
  storageBarrier();
  for (var p = t; p < frame.n * USED; p += WG) {
    let c = p / USED;
    let word = expert(p) * WORDS + min(c / 32u, WORDS - 1u);
    let s = before[word] + countOneBits(atomicLoad(&bits[word]) & ((1u << (c % 32u)) - 1u));
    list[s] = p;
    place[p] = s;
  }
}
