// Package deal decides who holds which layers of a model. It is arithmetic only (spec room.md 3.2 to 3.4).
//
// Every list is host first, then the chain: the other devices sorted by peer id. A deal takes devices out of that
// order but never reorders it. Sizes are bytes in float64, as every peer of a room counts them (a GB is 2^30 bytes,
// and pledges arrive as fractions of one), so that all come to the same deal. Layer ranges are [lo, hi), from 0.
//
// A device's cap is how many whole layers its pledge holds; the host's pledge first pays for the embedding and the
// output head. A room fits when the caps sum to the model's layers and the host holds at least one.
package deal

import (
	"math"
	"sort"
)

// Room is what a deal is made from.
type Room struct {
	Layers      int
	LayerBytes  float64   // one layer's weights and its cache at the room's context
	HostBytes   float64   // embedding and output head
	Pledges     []float64 // bytes; missing, negative or not a number counts as 0
	Phone       []bool    // may be shorter than Pledges
	Ms          []float64 // measured ms per layer; 0, negative, not a number or missing: unmeasured
	Spread      bool      // over every device in proportion; else the fastest first
	PhoneLayers bool      // Spread: phones take part even when the computers alone would do
}

// Out says why a device holds nothing.
type Out string

// Reasons for holding nothing, as on the wire (spec room.md 1.3).
const (
	Small    Out = "small"    // its pledge holds no layer
	Unneeded Out = "unneeded" // the others hold all
)

// Plan is a deal.
type Plan struct {
	Fit      Fit
	Assigned []int       // layers per device, 0 for those out; nil when the room doesn't fit
	Lo       []int       // first layer per device; a device without layers has Lo of the next one
	Held     []float64   // bytes per device
	Out      map[int]Out // by position
}

// Make deals the layers of a room. When the room doesn't fit only Plan.Fit is set.
func Make(r Room) Plan {
	f := Check(r)
	p := Plan{Fit: f}
	if !f.OK {
		return p
	}
	n := len(r.Pledges)
	out := make(map[int]Out)
	caps := make([]int, n)
	copy(caps, f.Caps)
	for i := 1; i < n; i++ {
		if caps[i] < 1 {
			out[i] = Small
		}
	}
	if r.Spread {
		p.Assigned = spread(r, caps, out)
	} else {
		p.Assigned = fastest(r, caps)
	}
	p.Lo = make([]int, n)
	p.Held = make([]float64, n)
	at := 0
	for i, k := range p.Assigned {
		p.Lo[i] = at
		at += k
		p.Held[i] = float64(k) * r.LayerBytes
		if i == 0 {
			p.Held[i] += r.HostBytes
		}
		if _, there := out[i]; k == 0 && !there {
			out[i] = Unneeded
		}
	}
	p.Out = out
	return p
}

// Caps returns how many whole layers each pledge holds.
func Caps(pledges []float64, layerBytes, hostBytes float64) []int {
	caps := make([]int, len(pledges))
	for i, p := range pledges {
		p = bytes(p)
		if i == 0 {
			p -= hostBytes
		}
		if p > 0 && layerBytes > 0 {
			caps[i] = int(min(math.Floor(p/layerBytes+1e-9), math.MaxInt32))
		}
	}
	return caps
}

// bytes reads a pledge: what is no amount is 0.
func bytes(p float64) float64 {
	if math.IsNaN(p) || p < 0 {
		return 0
	}
	return p
}

func (r Room) phone(i int) bool { return i < len(r.Phone) && r.Phone[i] }

func (r Room) ms(i int) float64 {
	if i < len(r.Ms) && r.Ms[i] > 0 && !math.IsInf(r.Ms[i], 0) {
		return r.Ms[i]
	}
	return 0
}

// fastest gives the host one layer, then fills the devices whole in order of cost per layer: unmeasured devices count
// as half as slow again as the slowest measured, unmeasured phones twenty times that. Ties: the host, then the larger
// cap, then the earlier.
func fastest(r Room, caps []int) []int {
	n := len(caps)
	slowest := 0.0
	for i := range n {
		if caps[i] > 0 {
			slowest = max(slowest, r.ms(i))
		}
	}
	if slowest == 0 {
		slowest = 1 / 1.5
	}
	cost := make([]float64, n)
	order := make([]int, n)
	for i := range n {
		order[i] = i
		switch cost[i] = r.ms(i); {
		case cost[i] > 0:
		case r.phone(i):
			cost[i] = 1.5 * slowest * 20
		default:
			cost[i] = 1.5 * slowest
		}
	}
	sort.SliceStable(order, func(x, y int) bool {
		a, b := order[x], order[y]
		switch {
		case cost[a] != cost[b]:
			return cost[a] < cost[b]
		case (a == 0) != (b == 0):
			return a == 0
		}
		return caps[a] > caps[b]
	})
	got := make([]int, n)
	got[0] = 1
	left := r.Layers - 1
	for _, i := range order {
		k := min(left, caps[i]-got[i])
		if k > 0 {
			got[i] += k
			left -= k
		}
	}
	return got
}

// spread shares in proportion to what each pledge has left for layers, without phones when the computers hold all.
func spread(r Room, caps []int, out map[int]Out) []int {
	if !r.PhoneLayers {
		for _, i := range phonesOut(r, caps) {
			caps[i] = 0
			if _, there := out[i]; !there {
				out[i] = Unneeded
			}
		}
	}
	weights := make([]float64, len(caps))
	most := 0.0
	for i, p := range r.Pledges {
		weights[i] = bytes(p)
		if i == 0 {
			weights[i] -= r.HostBytes
		}
		most = max(most, weights[i])
	}
	for i := range weights {
		weights[i] = max(weights[i]/most, 1e-9)
	}
	return Within(r.Layers, weights, caps)
}

// phonesOut lists every phone when host and computers hold all layers, else none.
func phonesOut(r Room, caps []int) []int {
	var phones []int
	has := 0
	for i, c := range caps {
		if i > 0 && r.phone(i) {
			phones = append(phones, i)
		} else {
			has += c
		}
	}
	if has < r.Layers {
		return nil
	}
	return phones
}

// Within shares layers in proportion to weights, none above its most: whole parts first, then the largest fractions
// (ties: the earlier), again until all are out; at the end each device that could hold one holds one while another
// has more than one. It returns nil when the mosts don't sum to layers.
func Within(layers int, weights []float64, most []int) []int {
	n := len(weights)
	sum := 0
	for _, m := range most {
		sum += m
	}
	if sum < layers {
		return nil
	}
	got := make([]int, n)
	left := layers
	for round := 0; left > 0 && round < n+2; round++ {
		left = fill(got, left, weights, most)
	}
	for i := range got {
		if got[i] > 0 || most[i] < 1 {
			continue
		}
		rich := 0
		for j := range got {
			if got[j] > got[rich] {
				rich = j
			}
		}
		if got[rich] > 1 || i == 0 && got[rich] == 1 { // the host always holds one
			got[rich]--
			got[i]++
		}
	}
	return got
}

// fill is one round of Within; it returns what is still left.
func fill(got []int, left int, weights []float64, most []int) int {
	var open []int
	total := 0.0
	for i := range got {
		if got[i] < most[i] {
			open = append(open, i)
			total += weight(weights[i])
		}
	}
	if total <= 0 {
		return 0
	}
	fraction := make([]float64, len(got))
	start := left
	for _, i := range open {
		want := float64(start) * weight(weights[i]) / total
		whole := math.Floor(want)
		fraction[i] = want - whole
		k := min(int(whole), most[i]-got[i])
		got[i] += k
		left -= k
	}
	sort.SliceStable(open, func(a, b int) bool { return fraction[open[a]] > fraction[open[b]] })
	for _, i := range open {
		if left > 0 && got[i] < most[i] {
			got[i]++
			left--
		}
	}
	return left
}

func weight(w float64) float64 {
	if math.IsNaN(w) || w <= 0 {
		return 1e-9
	}
	return w
}
