package launch

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"pooled/compute/op"
)

// GiB is the unit of every pledge: 2^30 bytes (spec cli.md 5.1).
const GiB = 1 << 30

// maxPledgeGB is the most one device may lend (seed 000: "At most 64 GB per device").
const maxPledgeGB = 64

// Pledge is how much a device lends, and why that much.
type Pledge struct {
	Bytes int64
	Why   string
}

// GB is the value of --gb: a number of GB, or Max, or neither (zero value: the default rule).
type GB struct {
	N   float64
	Max bool
}

// ParseGB reads the value of --gb (spec cli.md 5.3): nothing, "max" in any case, or a number of at least 1; more than 64
// is 64.
func ParseGB(s string) (GB, error) {
	if s == "" {
		return GB{}, nil
	}
	if strings.EqualFold(s, "max") {
		return GB{Max: true}, nil
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || n < 1 {
		return GB{}, Usage("--gb takes a number of GB from 1 to %d, or max: got %q", maxPledgeGB, s)
	}
	return GB{N: min(n, maxPledgeGB)}, nil
}

// PledgeFor applies the rule for a device whose memory can't be read: half of its largest buffer, from 1 to 64 GB
// (seed 000, "How much it lends"). A number in --gb wins.
func PledgeFor(info op.Info, gb GB) Pledge {
	if gb.N > 0 {
		return Pledge{int64(gb.N * GiB), "--gb"}
	}
	buffer := float64(info.MaxBuffer) / GiB
	if info.MaxBuffer <= 0 {
		buffer = 2
	}
	n := min(max(math.Round(buffer/2), 1), maxPledgeGB)
	return Pledge{int64(n * GiB), fmt.Sprintf(
		"half of its largest buffer, %.4g GB: this GPU does not say how much memory it has; --gb to change", buffer)}
}
