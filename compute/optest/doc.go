// Package optest compares the GPU backend with the reference, operation by operation, over one case list per operation.
//
// Both devices get the same weights, inputs and positions, from a seed. A result is accepted when every value is finite
// and within Abs + Rel*m of the reference, m being the largest magnitude of the reference's column; a list whose
// results are all equal is refused as a test of nothing. On the GPU itself, columns run together must have the bits of
// columns run one by one.
//
// Everything runs twice: with the adapter's limits and with WebGPU's default limits. Without an adapter the tests
// fail, unless POOLED_NO_GPU=1 says that this machine is known to have none; then they skip and say so.
package optest

import "math"

// Tolerance is how far a GPU result may be from the reference.
type Tolerance struct{ Abs, Rel float64 }

// The tolerances, per operation. The reference accumulates in float64, the GPU in f32 with a tree.
var (
	TolEmbed    = Tolerance{1e-37, 0} // exact but for subnormals
	TolRMSNorm  = Tolerance{1e-6, 2e-6}
	TolMatVec   = Tolerance{1e-6, 1e-5}
	TolNormRope = Tolerance{1e-6, 4e-6}
	TolAttend32 = Tolerance{2e-6, 2e-5}
	// Drivers may flush subnormal halves of cached keys and values, up to 6.1e-5 each.
	TolAttend16 = Tolerance{7e-5, 2e-5}
	// A chain of two products, the second over results of the first.
	TolExperts = Tolerance{1e-6, 3e-5}
	// The state passes through many columns; each adds a rounding.
	TolDelta   = Tolerance{2e-6, 5e-5}
	TolSiluMul = Tolerance{1e-6, 4e-6} // exp is good to 3 + 2|x| units in the last place
)

// Diff is the worst value of a comparison.
type Diff struct {
	At        int
	Got, Want float32
	Excess    float64 // how far beyond the tolerance; 0 or less: accepted
}

// Compare returns the worst difference over columns of the given width.
func (t Tolerance) Compare(got, want []float32, width int) Diff {
	worst := Diff{Excess: math.Inf(-1)}
	for c := 0; c+width <= len(want); c += width {
		scale := 0.0
		for _, v := range want[c : c+width] {
			scale = max(scale, math.Abs(float64(v)))
		}
		for i := c; i < c+width; i++ {
			excess := math.Abs(float64(got[i])-float64(want[i])) - t.Abs - t.Rel*scale
			if math.IsNaN(excess) {
				excess = math.Inf(1)
			}
			if excess > worst.Excess {
				worst = Diff{i, got[i], want[i], excess}
			}
		}
	}
	return worst
}
