package compute

import (
	"fmt"

	"pooled/compute/gguf"
)

// Bounds on the numbers of a model file, well above any model that fits into a room.
const (
	maxLayers  = 1 << 12
	maxWidth   = 1 << 20
	maxHeads   = 1 << 12
	maxExperts = 1 << 14
	maxCtx     = 1 << 24
)

// numbers reads the keys of one architecture; the first error stays.
type numbers struct {
	f        *gguf.File
	prefixes []string // the first one that has a key counts
	err      error
}

// at is the full name of a key.
func (n *numbers) at(key string) string {
	for _, p := range n.prefixes {
		if full := p + "." + key; n.f.Has(full) {
			return full
		}
	}
	return n.prefixes[0] + "." + key
}

func (n *numbers) fail(key, format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf("%w: key %s: %s", ErrModel, n.at(key), fmt.Sprintf(format, args...))
	}
}

// count reads an integer from lo to hi.
func (n *numbers) count(key string, lo, hi int) int {
	v, err := n.f.Uint(n.at(key))
	if err != nil && n.err == nil {
		n.err = fmt.Errorf("%w: %w", ErrModel, err)
	}
	if n.err == nil && (v < uint64(lo) || v > uint64(hi)) {
		n.fail(key, "%d is not between %d and %d", v, lo, hi)
	}
	if n.err != nil {
		return lo
	}
	return int(v)
}

// countOr is count with a value for a missing key.
func (n *numbers) countOr(key string, lo, hi, missing int) int {
	if !n.f.Has(n.at(key)) {
		return missing
	}
	return n.count(key, lo, hi)
}

// positive reads a float above 0 and at most hi.
func (n *numbers) positive(key string, hi float64) float64 {
	v, err := n.f.Float(n.at(key))
	if err != nil && n.err == nil {
		n.err = fmt.Errorf("%w: %w", ErrModel, err)
	}
	if n.err == nil && !(v > 0 && v <= hi) {
		n.fail(key, "%g is not above 0 and at most %g", v, hi)
	}
	return v
}
