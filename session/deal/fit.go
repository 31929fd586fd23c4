package deal

import (
	"fmt"
	"math"
	"sort"
	"strings"
)

// GB is the unit of pledges and plans.
const GB = 1 << 30

// Fit says whether a room holds its model and what is missing (spec room.md 3.2).
type Fit struct {
	OK      bool
	Caps    []int     // whole layers per device
	Missing int       // layers nobody holds
	Short   float64   // bytes: the least that one device alone would have to add
	Raise   []float64 // bytes that each device alone would have to add, +Inf when it can't help
}

// Check computes the fit of a room.
func Check(r Room) Fit {
	caps := Caps(r.Pledges, r.LayerBytes, r.HostBytes)
	f := Fit{Caps: caps, Raise: make([]float64, len(caps))}
	if len(caps) == 0 {
		f.Missing = max(1, r.Layers)
		return f
	}
	has := 0
	for _, c := range caps {
		has += c
	}
	hostOut := 0
	if caps[0] < 1 {
		hostOut = 1
	}
	f.Missing = max(0, r.Layers-has, hostOut)
	if f.OK = f.Missing == 0; f.OK {
		return f
	}
	f.Short = math.Inf(1)
	for i := range caps {
		p := bytes(r.Pledges[i])
		raise := math.Inf(1)
		switch {
		case i == 0:
			raise = r.HostBytes + float64(max(1, r.Layers-(has-caps[0])))*r.LayerBytes - p
		case hostOut == 0:
			raise = float64(caps[i]+r.Layers-has)*r.LayerBytes - p
		}
		f.Raise[i] = max(1, math.Ceil(raise))
		f.Short = min(f.Short, f.Raise[i])
	}
	return f
}

// Up returns bytes in GB, rounded up to the next tenth.
func Up(b float64) float64 { return math.Ceil(b/GB*10-1e-9) / 10 }

// Giver is a device that could close the gap alone.
type Giver struct {
	At    int     // position in the room
	Bytes float64 // how much more
}

// Givers lists the devices whose spare (bytes they could lend beyond their pledge) covers what they alone would have
// to add, the least first.
func (f Fit) Givers(spare []float64) []Giver {
	var gs []Giver
	for i, b := range f.Raise {
		if f.OK || math.IsInf(b, 0) || i >= len(spare) || Up(b) > spare[i]/GB+1e-9 {
			continue
		}
		gs = append(gs, Giver{At: i, Bytes: b})
	}
	sort.SliceStable(gs, func(a, b int) bool { return gs[a].Bytes < gs[b].Bytes })
	return gs
}

// ShortBy is the headline: what the first giver would have to add, else the least anyone would.
func (f Fit) ShortBy(spare []float64) float64 {
	if gs := f.Givers(spare); len(gs) > 0 {
		return gs[0].Bytes
	}
	return f.Short
}

// Sentences about a room that is short: what, why and what to do. Empty when it fits (spec room.md 3.3).
func (f Fit) Sentences(label string, names []string, pledged float64, spare []float64) (what, why, do string) {
	if f.OK || len(f.Caps) == 0 {
		return "", "", ""
	}
	what = fmt.Sprintf("this room is %s GB short for %s", Tenths(Up(f.ShortBy(spare))), label)
	why = fmt.Sprintf("%s %s GB in all", lend(len(f.Caps)), Tenths(math.Floor(pledged/GB*10+1e-9)/10))
	if f.Caps[0] < 1 && len(names) > 0 {
		why += fmt.Sprintf(", and %s as the host must hold the embedding, the output head and a layer itself", names[0])
	}
	do = "add a device or lend more"
	var offers []string
	for _, g := range f.Givers(spare) {
		if len(offers) < 2 && g.At < len(names) {
			offers = append(offers, fmt.Sprintf("%s has %s GB more to give", names[g.At], Tenths(Up(g.Bytes))))
		}
	}
	if len(offers) > 0 {
		do += ": " + strings.Join(offers, ", or ")
	}
	return what, why, do
}

func lend(devices int) string {
	if devices == 1 {
		return "one device lends"
	}
	return fmt.Sprintf("%d devices lend", devices)
}

// Tenths writes a number of GB without a needless ".0".
func Tenths(gb float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", gb), ".0") }
