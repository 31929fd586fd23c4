package widgets

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sizes are those of the widget goldens.
var sizes = [][2]int{{40, 12}, {80, 24}, {200, 60}}

// drawn is a widget drawn into a simulated screen.
type drawn struct {
	text   string // lines without spaces at their ends
	styles map[[2]int]tcell.Style
	sim    tcell.SimulationScreen
}

// draw draws p at w x h, no event loop, no goroutine.
func draw(t *testing.T, p tview.Primitive, w, h int) drawn {
	t.Helper()
	sim := tcell.NewSimulationScreen("UTF-8")
	if err := sim.Init(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Fini)
	sim.SetSize(w, h)
	p.SetRect(0, 0, w, h)
	p.Draw(sim)
	d := drawn{styles: map[[2]int]tcell.Style{}, sim: sim}
	var b strings.Builder
	for y := range h {
		var line strings.Builder
		for x := 0; x < w; {
			s, st, cells := sim.Get(x, y)
			d.styles[[2]int{x, y}] = st
			line.WriteString(s)
			x += cells
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	d.text = b.String()
	return d
}

// golden compares with testdata/<name>.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// samples are the widgets of the goldens, each made anew.
func samples(look *Look) map[string]tview.Primitive {
	pane := NewPane(look)
	pane.SetModel(PaneModel{Title: "layers 0-27", Bright: true})
	header := NewHeader(look)
	header.SetModel(HeaderModel{Parts: []Part{{Text: "pooled host", Role: Strong}, {Text: "FEA-Q38", Role: Accent},
		{Text: "Qwen3 1.7B · Q8", Drop: 2}, {Text: "online"}, {Text: "2 devices", Drop: 3}, {Text: "56.4 tok/s", Drop: 4},
		{Text: "up 12:03", Drop: 5}}, Below: Plain("invite  pooled join FEA-Q38")})
	roster := NewRoster(look)
	roster.SetModel(rosterSample())
	layers := NewLayerMap(look)
	layers.SetModel(LayerMapModel{Layers: 28, Runs: []Run{{Lo: 0, Hi: 6, Letter: "a", Hue: Hue(0)},
		{Lo: 6, Hi: 14, Letter: "b", Hue: Hue(1), State: RunLoading, Percent: 40},
		{Lo: 14, Hi: 20, Letter: "c", Hue: Hue(2), State: RunLost}},
		Lines: []Line{Plain("a  6 layers"), Plain("b  8 layers")}})
	transcript := NewTranscript(look)
	transcript.SetModel(TranscriptModel{Entries: chatSample(6)})
	log := NewLog(look)
	var lines []LogLine
	for i := range 30 {
		lines = append(lines, LogLine{ID: int64(i), When: "13:06:52", Text: Text(fmt.Sprintf("line %d of the log, with 日本語 and words", i))})
	}
	log.SetModel(LogModel{Lines: lines})
	prompt := NewPrompt(look)
	prompt.ed.set("a first line\n日本語 e\u0301e\u0301 👩‍👩‍👧‍👦 and a line that is longer than forty cells for sure")
	gauge := NewGauge(look)
	gauge.SetModel(GaugeModel{Label: "loading", Percent: 37, Text: "layers 6-27"})
	keys := NewKeyline(look)
	keys.SetModel(KeylineModel{Hints: hintSample()})
	list := NewLines(look)
	list.SetModel(LinesModel{Lines: []Line{{{"node      ", Dim}, {Text: "linux-kqd"}},
		{{"lends     ", Dim}, {Text: "64 GB (121.7 less 42.6 kept for the system, capped at 64)"}}}})
	strip := NewStrip(look)
	strip.SetModel(StripModel{Line: Plain("room HJQ-N44 · online · 2 devices · layers 14-27 of qwen3-1.7b · 390 passes")})
	return map[string]tview.Primitive{"pane": pane, "header": header, "roster": roster, "layermap": layers,
		"transcript": transcript, "log": log, "prompt": prompt, "gauge": gauge, "keyline": keys, "lines": list,
		"strip": strip}
}

func rosterSample() RosterModel {
	return RosterModel{Columns: []Column{{Title: "", Max: 1}, {Title: "DEVICE", Max: 24}, {Title: "GPU", Max: 26, Drop: 3},
		{Title: "LENDS", Right: true, Drop: 2}, {Title: "HOLDS", Drop: 1}, {Title: "STATE"}},
		Rows: []RosterRow{
			{Cells: []Text{"a", "spark-host", "NVIDIA GB10", "2 GB", "0-5 +E+H", "here"}, Hue: Hue(0)},
			{Cells: []Text{"b", "日本のパソコン", "RTX 5070", "64 GB", "6-27", "8 ms"}, Hue: Hue(1)},
			{Cells: []Text{"c", "👩‍👩‍👧‍👦 e\u0301te\u0301", "", "0.5 GB", "", "not needed"}, Hue: Hue(2)}}}
}

func chatSample(n int) []Entry {
	var out []Entry
	for i := range n {
		out = append(out, Entry{ID: int64(2 * i), Who: "you", WhoRole: Strong, Text: "Name the largest planet in our solar system."},
			Entry{ID: int64(2*i + 1), Who: "Qwen3", Thinking: "The planets,\nby size.", WhoRole: Accent,
				Text: "木星は太陽系で最も大きい惑星です。 It is Jupiter, a gas giant 🪐 of great size.\n\n  indented", Foot: "10 tokens · 56.7 tok/s", FootRole: Dim})
	}
	return out
}

func hintSample() []Hint {
	return []Hint{{"Enter", "start"}, {"c", "chat"}, {"Tab", "next pane"}, {"z", "zoom"}, {"?", "keys"}, {"q", "quit"}}
}

func TestGoldensOfWidgets(t *testing.T) {
	for _, size := range sizes {
		for name, p := range samples(&Look{}) {
			golden(t, fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), draw(t, p, size[0], size[1]).text)
		}
	}
	for name, p := range samples(&Look{ASCII: true}) {
		golden(t, name+"-ascii-40x12", draw(t, p, 40, 12).text)
	}
}

// What is drawn must be the same text with and without colour, and nothing may have a colour without.
func TestNoColor(t *testing.T) {
	plain, colour := samples(&Look{}), samples(&Look{Color: true, True: true})
	coloured := 0
	for name := range plain {
		a, b := draw(t, plain[name], 80, 24), draw(t, colour[name], 80, 24)
		if a.text != b.text {
			t.Errorf("%s: with colour\n%s\nwithout\n%s", name, b.text, a.text)
		}
		for at, st := range a.styles {
			if fg, bg, _ := st.Decompose(); fg != tcell.ColorDefault || bg != tcell.ColorDefault {
				t.Errorf("%s: cell %v has a colour without colours", name, at)
			}
		}
		for _, st := range b.styles {
			if fg, _, _ := st.Decompose(); fg != tcell.ColorDefault {
				coloured++
			}
		}
	}
	if coloured == 0 {
		t.Error("no cell has a colour with colours")
	}
}

// The program's own marks are all ASCII on a terminal without UTF-8. Names and answers stay what they are.
func TestASCIIMarks(t *testing.T) {
	for _, name := range []string{"pane", "header", "layermap", "gauge", "keyline", "strip"} {
		for _, r := range draw(t, samples(&Look{ASCII: true})[name], 60, 5).text {
			if r > '~' {
				t.Errorf("%s: %q is drawn", name, r)
			}
		}
	}
}

// Every line fits, whatever the width: no widget draws outside its rectangle.
func TestWidgetsStayInside(t *testing.T) {
	for w := 1; w < 50; w++ {
		for name, p := range samples(&Look{}) {
			sim := tcell.NewSimulationScreen("UTF-8")
			if err := sim.Init(); err != nil {
				t.Fatal(err)
			}
			sim.SetSize(60, 12)
			p.SetRect(3, 2, w, 6)
			p.Draw(sim)
			for y := range 12 {
				for x := range 60 {
					s, _, cells := sim.Get(x, y)
					if in := x >= 3 && x+cells <= 3+w && y >= 2 && y < 8; !in && s != " " {
						t.Fatalf("%s %d wide: %q is drawn at %d,%d", name, w, s, x, y)
					}
				}
			}
			sim.Fini()
		}
	}
}
