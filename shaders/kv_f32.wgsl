// Decode helper: rows of a cache of floats in octets of a head's values, (capacity, KVHEADS, HD/8).
@group(1) @binding(8) var<storage, read> keys: array<Raw>;
@group(1) @binding(9) var<storage, read> values: array<Raw>;
