package launch

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"

	"pooled/catalog"
	"pooled/compute/bench"
	"pooled/session/usage"
)

// printBench writes a report for people.
func printBench(w io.Writer, r *bench.Report) error {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s"+format+"\n", append([]any{label}, args...)...)
	}
	software := ""
	if r.Software {
		software = ", software"
	}
	line("adapter", "%s (%s%s)", plain(r.Adapter), r.Backend, software)
	line("model", "%s (%s, %d layers), weights %s", plain(r.Model.Name), r.Model.Arch, r.Model.Layers, catalog.FormatBytes(r.Model.Bytes))
	wide := ""
	if r.Wide > 0 {
		wide = fmt.Sprintf(", prompts %d tokens a pass", r.Wide)
	}
	line("context", "%d positions, %s cache%s", r.Context, r.KV, wide)
	line("load", "%.2f s, %s/s", r.Load.Seconds, catalog.FormatBytes(int64(r.Load.BytesPerSec)))
	line("memory", "%s on the device (%s computed)", catalog.FormatBytes(r.Memory.Used), catalog.FormatBytes(r.Memory.Need))
	for _, p := range r.Prefill {
		line(fmt.Sprintf("prompt %d", p.Tokens), "%s tok/s, first token after %s ms", spread(p.TokPerSec), spread(milli(p.FirstToken)))
	}
	for _, d := range r.Decode {
		line(fmt.Sprintf("decode @%d", d.Depth), "%s tok/s, %.2f ms a token", spread(d.TokPerSec), 1000/d.TokPerSec.Median)
		line("", "%s a token, %.4g GB/s (weights %s, states %s, cache %s)", catalog.FormatBytes(d.BytesPerToken), d.BytesPerSec.Median/1e9,
			catalog.FormatBytes(d.WeightBytes), catalog.FormatBytes(d.StateBytes), catalog.FormatBytes(d.CacheBytes))
		if d.Each.Counted {
			line("", "a token: %s", work(d.Each))
		}
		if s := d.Proposals; s != nil {
			line("  proposals", "%s tok/s, %.3f x plain, %.2f tokens a step, accepted: draft block %s, lookup %s",
				spread(s.TokPerSec), s.Speedup, s.PerStep, share(s.Draft), share(s.Lookup))
		}
	}
	line("checked", "%s; medians of %d runs after one that does not count (smallest to largest)", r.Checked, r.Reps)
	_, err := io.WriteString(w, b.String())
	return err
}

// plain is a name from a driver or a file without what a terminal would obey.
func plain(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	if name == "" {
		return "without a name"
	}
	return usage.Cut(name, usage.ArgLen)
}

func milli(r bench.Range) bench.Range {
	return bench.Range{Median: r.Median * 1000, Min: r.Min * 1000, Max: r.Max * 1000}
}

// spread is a median with the extremes.
func spread(r bench.Range) string {
	return fmt.Sprintf("%s (%s to %s)", figure(r.Median), figure(r.Min), figure(r.Max))
}

// figure has three or four digits that count.
func figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func work(e bench.Each) string {
	return fmt.Sprintf("%.4g launches, %.4g submits, %.4g readbacks, %.3g ms encoding, %.3g ms waiting",
		e.Launches, e.Submits, e.Readbacks, e.EncodeSec*1000, e.WaitSec*1000)
}

func share(t bench.Tally) string { return fmt.Sprintf("%d of %d", t.Accepted, t.Proposed) }

// progress is one line that changes, on a terminal only.
type progress struct {
	w    *os.File // nil: not a terminal
	last int      // percent shown
}

func newProgress(w *os.File) *progress {
	if !term.IsTerminal(int(w.Fd())) {
		return &progress{}
	}
	return &progress{w: w}
}

func (p *progress) say(text string) {
	if p.w != nil {
		_, _ = fmt.Fprintf(p.w, "\r\x1b[K%s", text)
	}
}

func (p *progress) percent(what string, done, total int64) {
	if n := int(float64(done) / float64(max(total, 1)) * 100); n != p.last {
		p.last = n
		p.say(fmt.Sprintf("%s %d%%", what, n))
	}
}

// end clears the line.
func (p *progress) end() { p.say("") }
