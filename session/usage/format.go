package usage

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rivo/uniseg"
)

// TimeLeft is a time that is still to pass: 1h05m, 1m58s, 24s; -- when d is negative, which stands for unknown.
func TimeLeft(d time.Duration) string {
	if d < 0 {
		return "--"
	}
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s >= 3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	case s >= 60:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%ds", s)
}

// Uptime is a time that has passed, uptime or waiting: m:ss, from an hour on h:mm. What is negative counts as none.
func Uptime(d time.Duration) string {
	s := int64(max(0, d) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d", s/3600, s/60%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// TokPerSec is a speed, 56.4 tok/s; empty when it is not known, which is anything but a positive number.
func TokPerSec(perSec float64) string {
	if !(perSec > 0) || math.IsInf(perSec, 0) {
		return ""
	}
	return fmt.Sprintf("%.1f tok/s", perSec)
}

// CutCells cuts a line to at most cells cells of the terminal, the last of them … if it was wider. It cuts between what
// a reader sees as characters.
func CutCells(line string, cells int) string {
	if uniseg.StringWidth(line) <= cells {
		return line
	}
	if cells < 1 {
		return ""
	}
	var b strings.Builder
	width, state := 0, -1
	for rest := line; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if width += w; width > cells-1 {
			break
		}
		b.WriteString(cluster)
	}
	return b.String() + "…"
}
