package usage

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"
)

func TestTimes(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name         string
		d            time.Duration
		left, uptime string
	}{
		{"of the sheet: hours", 3900 * s, "1h05m", "1:05"},
		{"of the sheet: minutes", 118 * s, "1m58s", "1:58"},
		{"of the sheet: seconds", 24 * s, "24s", "0:24"},
		{"of the sheet: unknown", -1, "--", "0:00"},
		{"none", 0, "0s", "0:00"},
		{"below a minute, rounded", 59*s + 600*time.Millisecond, "1m00s", "0:59"},
		{"below an hour, rounded", 3599*s + 500*time.Millisecond, "1h00m", "59:59"},
		{"an hour", 3600 * s, "1h00m", "1:00"},
		{"two days", 48*time.Hour + 7*time.Minute, "48h07m", "48:07"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := TimeLeft(tt.d); got != tt.left {
				t.Errorf("left: got %q, want %q", got, tt.left)
			}
			if got := Uptime(tt.d); got != tt.uptime {
				t.Errorf("uptime: got %q, want %q", got, tt.uptime)
			}
		})
	}
}

func TestTokPerSec(t *testing.T) {
	for in, want := range map[float64]string{56.4: "56.4 tok/s", 17.96: "18.0 tok/s", 0: "", -1: "", 1234.56: "1234.6 tok/s"} {
		if got := TokPerSec(in); got != want {
			t.Errorf("%v: got %q, want %q", in, got, want)
		}
	}
	if got := TokPerSec(math.NaN()) + TokPerSec(math.Inf(1)); got != "" {
		t.Errorf("not a number: got %q", got)
	}
}

func TestCutCells(t *testing.T) {
	tests := []struct {
		name, in string
		cells    int
		want     string
	}{
		{"fits", "abc", 3, "abc"},
		{"cut", "abcd", 3, "ab…"},
		{"wide characters", "日本語", 5, "日本…"},
		{"a wide one that does not fit leaves a cell empty", "日本語", 4, "日…"},
		{"wide, fits", "日本語", 6, "日本語"},
		{"a family is one", "👨‍👩‍👧x", 2, "…"},
		{"a family and room", "👨‍👩‍👧xyz", 4, "👨‍👩‍👧x…"},
		{"marks stay with their letter", "e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"one cell", "abc", 1, "…"},
		{"no cell", "abc", 0, ""},
		{"nothing", "", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := CutCells(tt.in, tt.cells)
			if got != tt.want || uniseg.StringWidth(got) > tt.cells {
				t.Errorf("got %q, want %q in %d cells", got, tt.want, tt.cells)
			}
		})
	}
}

func TestStatusLine(t *testing.T) {
	first := Status{Code: "4TKG9P", Phase: Online, Devices: 4, Lo: 12, Hi: 31, Model: "qwen3.6-35b-moe", PerSec: 17.96, Passes: 830}
	tests := []struct {
		name string
		s    Status
		want string
	}{
		{"of the seed", Status{Code: "HJQN44", Phase: Online, Devices: 2, Lo: 14, Hi: 28, Model: "qwen3-1.7b", PerSec: 56.4, Passes: 390},
			"room HJQ-N44 · online · 2 devices · layers 14-27 of qwen3-1.7b · 56.4 tok/s · 390 passes"},
		{"online", first, "room 4TK-G9P · online · 4 devices · layers 12-30 of qwen3.6-35b-moe · 18.0 tok/s · 830 passes"},
		{"waiting", Status{Code: "ABCD", Phase: Waiting, Devices: 1}, "room ABCD · waiting for the host to deal layers · 1 device · 0 passes"},
		{"host waiting", Status{Code: "4TKG9P", Phase: Waiting, Host: true, Devices: 2, Model: "qwen3-4b", Passes: 1},
			"room 4TK-G9P · waiting for devices · 2 devices · qwen3-4b · 1 pass"},
		{"host online", Status{Code: "4TKG9P", Phase: Online, Host: true, Devices: 2, Lo: 0, Hi: 9, Head: true, Model: "qwen3-1.7b", Passes: 2},
			"room 4TK-G9P · online · 2 devices · layers 0-8 + embed/head of qwen3-1.7b · 2 passes"},
		{"loading", Status{Code: "4TKG9P", Phase: Loading, LoadPct: 61, Devices: 3}, "room 4TK-G9P · loading layers 61% · 3 devices · 0 passes"},
		{"rejoining", Status{Code: "4TKG9P", Phase: Rejoining, Try: 5}, "room 4TK-G9P · rejoining (try 5) · 0 passes"},
		{"signaling down", Status{Code: "4TKG9P", Phase: Online, SignalDown: true},
			"room 4TK-G9P · online · 0 passes · signaling down (links still up)"},
		{"everything, the code with its dash", Status{Code: "4TK-G9P", Phase: Online, Host: true, Answering: true, Devices: 3, Lo: 5, Hi: 6,
			Model: "mini", PerSec: 100, AtDoor: 2, Passes: 7, SignalDown: true},
			"room 4TK-G9P · answering · 3 devices · layers 5-5 of mini · 100.0 tok/s · 2 waiting to join · 7 passes · signaling down (links still up)"},
		{"only the host has a door", Status{Phase: Online, AtDoor: 2}, "online · 0 passes"},
		{"host without layers", Status{Phase: Online, Host: true, Head: true, Model: "mini"}, "online · embed/head of mini · 0 passes"},
		{"layers of no known model", Status{Phase: Loaded, Lo: 0, Hi: 2},
			"layers loaded: waiting for the rest of the room · layers 0-1 · 0 passes"},
		{"connecting", Status{Phase: Connecting}, "connecting · 0 passes"},
		{"lobby", Status{Phase: Lobby}, "waiting for the host to let you in · 0 passes"},
		{"guest", Status{Phase: Guest, Answering: true}, "in the room without layers (the host re-deals to include this device) · 0 passes"},
		{"guest that is not needed", Status{Phase: Guest, Unneeded: true}, "in the room without layers (the others hold all of them) · 0 passes"},
		{"guest that lends too little", Status{Phase: Guest, Small: true},
			"in the room without layers (it lends too little for one: see --gb) · 0 passes"},
		{"degraded", Status{Phase: Degraded}, "a device left: waiting for it · 0 passes"},
		{"host gone", Status{Phase: HostGone}, "lost the host: knocking · 0 passes"},
		{"leaving", Status{Phase: Leaving}, "leaving · 0 passes"},
		{"closed", Status{Phase: Closed}, "closed · 0 passes"},
		{"nothing known", Status{}, "0 passes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := StatusLine(tt.s); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
	t.Run("first row cut to 30", func(t *testing.T) {
		got := CutCells(StatusLine(first), 30)
		if uniseg.StringWidth(got) != 30 || !strings.HasSuffix(got, "…") {
			t.Errorf("got %q, %d cells", got, uniseg.StringWidth(got))
		}
	})
}

func TestPasses(t *testing.T) {
	var p Passes
	for i, step := range []struct{ engine, want int }{{7, 7}, {40, 40}, {12, 52}, {12, 52}, {3, 55}, {0, 55}, {1, 56}} {
		if got := p.Observe(step.engine); got != step.want {
			t.Errorf("step %d: got %d, want %d", i, got, step.want)
		}
	}
}
