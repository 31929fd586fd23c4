package gpu

import "pooled/compute/quant"

// format says how a weight type lies in device memory. A new type is one entry here, its repack function, a line in
// shaders.Formats and its decode file.
type format struct {
	layout string // of shaders.Formats; "any" for rows that are not whole octets
	// arrays are the bytes that one block of the file takes in each array. An array is indexed by the block's number in its
	// piece (spec engine.md 1.7), so rows need no padding.
	arrays []int64
	// repack moves whole blocks from file order to the arrays: bits are shuffled, values never change.
	repack func(dst [][]byte, src []byte)
}

// anyLayout is the layout of rows that are not whole octets: floats, read one by one.
const anyLayout = "any"

var formats = map[quant.Type]format{
	quant.F32:  {"f32", []int64{4}, repackCopy},
	quant.F16:  {"f16", []int64{2}, repackCopy},
	quant.BF16: {"bf16", []int64{2}, repackCopy},
	quant.Q8_0: {"q8_0", []int64{32, 2}, repackQ8_0},
	quant.Q4_0: {"q4_0", []int64{16, 2}, repackQ4_0},
	quant.Q4_1: {"q4_1", []int64{16, 4}, repackQ4_1},
	quant.Q5_0: {"q8_0", []int64{32, 2}, repackQ5_0},
	quant.Q5_1: {"q5_1", []int64{16, 4, 4}, repackQ5_1},
	quant.Q4_K: {"q4_k", []int64{128, 20}, repackQ4_K},
	quant.Q5_K: {"q5_k", []int64{128, 32, 20}, repackQ5_K},
	quant.Q6_K: {"q6_k", []int64{128, 64, 20}, repackQ6_K},
}

// formatOf is the layout of a tensor with rows of cols values. Rows of an unusual length are widened to floats.
func formatOf(t quant.Type, cols int) (format, bool) {
	f, ok := formats[t]
	if !ok || cols%8 == 0 {
		return f, ok
	}
	q, known := t.Format()
	if !known || q.BlockLen != 1 {
		return format{}, false
	}
	widen := func(dst [][]byte, src []byte) { repackFloats(dst[0], src, q) }
	return format{anyLayout, []int64{4}, widen}, true
}

// any says whether the rows are not whole octets.
func (f format) any() bool { return f.layout == anyLayout }

// kernel is the name of an operation's kernel for this format, form "" or "_cols".
func (f format) kernel(op, form string) string { return op + "_" + f.layout + form }
