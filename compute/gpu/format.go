package gpu

import "pooled/compute/quant"

// format says how a weight type lies in device memory. A new type is one entry here and its .wgsl files: embed_<name>,
// matvec_<name>, matvec_<name>_cols, a decode helper, and gate_up_<name> where a fused one pays.
type format struct {
	name string
	// arrays are the bytes that one block takes in each array. An array is indexed by the block's number in its piece
	// (spec engine.md 1.7), so rows need no padding.
	arrays []int64
	// repack moves whole blocks from file order to the arrays: bytes are shuffled, values never change.
	repack func(dst [][]byte, src []byte)
	// kernels read the arrays as bindings in order.
	embed, matVec, matVecCols string
	gateUp, gateUpCols        string // optional: gate, up and SiluMul in one launch
}

var formats = map[quant.Type]format{
	quant.F32: {
		name: "f32", arrays: []int64{4}, repack: func(dst [][]byte, src []byte) { copy(dst[0], src) },
		embed: "embed_f32", matVec: "matvec_f32", matVecCols: "matvec_f32_cols",
	},
	quant.Q8_0: {
		name: "q8_0", arrays: []int64{32, 2}, repack: repackQ8_0,
		embed: "embed_q8_0", matVec: "matvec_q8_0", matVecCols: "matvec_q8_0_cols",
		gateUp: "gate_up_q8_0", gateUpCols: "gate_up_q8_0_cols",
	},
}

// repackQ8_0: 34-byte blocks (half d, 32 bytes q) to an array of q and an array of d.
func repackQ8_0(dst [][]byte, src []byte) {
	q, d := dst[0], dst[1]
	for i := 0; len(src) >= 34; i, src = i+1, src[34:] {
		d[2*i], d[2*i+1] = src[0], src[1]
		copy(q[32*i:32*i+32], src[2:34])
	}
}
