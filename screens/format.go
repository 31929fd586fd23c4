package screens

import (
	"fmt"
	"math"
	"strings"
)

// count writes a number with its noun: 1 device, 2 devices.
func count(n int, noun string) string {
	return fmt.Sprintf("%d %s", n, plural(n, noun))
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// tableGB writes bytes as in the device table (spec cli.md 3.4): GB, rounded from 10 on, else one decimal, which is left
// out when it is 0.
func tableGB(bytes int64) string {
	gb := float64(bytes) / (1 << 30)
	if gb >= 9.95 {
		return fmt.Sprintf("%.0f GB", gb)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", math.Round(gb*10)/10), ".0") + " GB"
}

// thousands writes n with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// layerRange writes [lo, hi) with its last layer.
func layerRange(lo, hi int) string {
	if hi-lo == 1 {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d-%d", lo, hi-1)
}
