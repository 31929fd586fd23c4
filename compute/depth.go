package compute

import "time"

// Depth chooses how many tokens the draft block proposes per step: in a chain 3, 5 or 7, by measured speed (spec room.md
// 5.6). The first three steps take the first candidate; then each untried one gets a step; then the fastest one leads,
// and every 16th step tries another. The zero value always says 3, as a device that works alone does.
type Depth struct {
	candidates []int
	rates      []float64 // tokens per second, a moving average; 0: untried
	step       int       // steps that Note saw
	last       int       // place of what Next said
}

const (
	depthAlone  = 3
	depthSettle = 3    // steps with the first candidate
	depthProbe  = 16   // every so many steps another one is tried
	depthKeep   = 0.6  // weight of the old average
	depthShort  = 1e-6 // seconds that a step takes at least
)

// NewDepth chooses among candidates; none means 3, 5 and 7.
func NewDepth(candidates ...int) *Depth {
	if len(candidates) == 0 {
		candidates = []int{3, 5, 7}
	}
	return &Depth{candidates: candidates, rates: make([]float64, len(candidates))}
}

// Next is the number of drafts for the next step.
func (d *Depth) Next() int {
	if len(d.candidates) == 0 {
		return depthAlone
	}
	d.last = d.choose()
	return d.candidates[d.last]
}

func (d *Depth) choose() int {
	step := d.step + 1
	if step <= depthSettle {
		return 0
	}
	best := 0
	for i, r := range d.rates {
		if r == 0 {
			return i
		}
		if r > d.rates[best] {
			best = i
		}
	}
	if step%depthProbe != 0 || len(d.rates) == 1 {
		return best
	}
	other := step / depthProbe % (len(d.rates) - 1)
	if other >= best {
		other++
	}
	return other
}

// Note says how many tokens the step that Next was asked for yielded, and how long it took.
func (d *Depth) Note(tokens int, took time.Duration) {
	d.step++
	if len(d.candidates) == 0 {
		return
	}
	rate := float64(tokens) / max(took.Seconds(), depthShort)
	if old := d.rates[d.last]; old > 0 {
		rate = depthKeep*old + (1-depthKeep)*rate
	}
	d.rates[d.last] = rate
}
