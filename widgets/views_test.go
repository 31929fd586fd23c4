package widgets

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"
)

func key(k tcell.Key) *tcell.EventKey { return tcell.NewEventKey(k, 0, tcell.ModNone) }

func TestFitHints(t *testing.T) {
	cases := []struct {
		w    int
		want string
	}{
		{80, "Enter c Tab z ? q"}, {58, "Enter c Tab z ? q"}, {57, "Enter c Tab z q"}, {50, "Enter c Tab z q"},
		{49, "Enter c Tab q"}, {41, "Enter c q"}, {26, "Enter q"}, {19, "Enter q"}, {18, "Enter"}, {1, "Enter"},
	}
	for _, c := range cases {
		var keys []string
		hints := FitHints(hintSample(), c.w)
		for _, h := range hints {
			keys = append(keys, string(h.Key))
		}
		if got := strings.Join(keys, " "); got != c.want {
			t.Errorf("%d cells: %q, want %q", c.w, got, c.want)
		}
		if n := hintsWidth(hints); n > c.w && len(hints) > 1 {
			t.Errorf("%d cells: the hints take %d", c.w, n)
		}
	}
}

func TestFitParts(t *testing.T) {
	parts := []Part{{Text: "pooled host"}, {Text: ""}, {Text: "FEA-Q38"}, {Text: "Qwen3", Drop: 2}, {Text: "online"},
		{Text: "up 12:03", Drop: 5}}
	cases := []struct {
		w, rows int
		want    []string
	}{
		{80, 1, []string{"pooled host   FEA-Q38   Qwen3   online   up 12:03"}},
		{40, 1, []string{"pooled host   FEA-Q38   Qwen3   online"}},
		{36, 1, []string{"pooled host   FEA-Q38   online"}},
		{36, 2, []string{"pooled host   FEA-Q38   Qwen3", "online   up 12:03"}},
		{10, 1, []string{"pooled host"}},
	}
	for _, c := range cases {
		var got []string
		for _, l := range FitParts(parts, c.w, c.rows) {
			got = append(got, l.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d cells, %d rows: %q, want %q", c.w, c.rows, got, c.want)
		}
	}
}

func TestMapWidths(t *testing.T) {
	runs := func(ends ...int) []Run {
		var out []Run
		lo := 0
		for _, hi := range ends {
			out = append(out, Run{Lo: lo, Hi: hi})
			lo = hi
		}
		return out
	}
	cases := []struct {
		name      string
		runs      []Run
		layers, w int
		want      []int
	}{
		{"a cell a layer", runs(6, 28), 28, 50, []int{6, 22}},
		{"two at most", runs(6, 28), 28, 500, []int{12, 44}},
		{"in proportion", runs(12, 48), 48, 24, []int{6, 18}},
		{"one each at least", runs(1, 48), 48, 20, []int{1, 19}},
		{"less room than runs", runs(1, 2, 3, 4), 4, 2, []int{1, 1, 1, 1}},
		{"nothing", nil, 28, 20, []int{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := mapWidths(c.runs, c.layers, c.w)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestLayerMapRow(t *testing.T) {
	two := []Run{{Lo: 0, Hi: 6, Letter: "a"}, {Lo: 6, Hi: 28, Letter: "b"}}
	with := func(change func(r []Run)) []Run {
		r := slices.Clone(two)
		change(r)
		return r
	}
	cases := []struct {
		name   string
		layers int
		runs   []Run
		want   string
	}{
		{"ready", 28, two, "E▐aaaaaa▐bbbbbbbbbbbbbbbbbbbbbb▐H"},
		{"loading", 28, with(func(r []Run) { r[1].State, r[1].Percent = RunLoading, 50 }), "E▐aaaaaa▐bbbbbbbbbbb...........▐H"},
		{"lost", 28, with(func(r []Run) { r[0].State = RunLost }), "E▐!!!!!!▐bbbbbbbbbbbbbbbbbbbbbb▐H"},
		{"nobody", 28, nil, "E▐····························▐H"},
		{"a gap", 28, two[1:], "E▐······▐bbbbbbbbbbbbbbbbbbbbbb▐H"},
		{"runs past the model's end", 10, two, "E▐aaaaaaaaaaaa▐bbbbbbbb▐H"},
		{"overlapping runs", 28, []Run{{Lo: 0, Hi: 20, Letter: "a"}, {Lo: 10, Hi: 28, Letter: "b"}},
			"E▐aaaaaaaaaaaaaaaaaaaa▐bbbbbbbb▐H"},
		{"no model", 0, nil, "no model yet"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := NewLayerMap(&Look{})
			l.SetModel(LayerMapModel{Layers: c.layers, Runs: c.runs})
			if got := strings.TrimSpace(draw(t, l, 36, 1).text); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLayerMapWorkingIsBrightAndDimIsDim(t *testing.T) {
	l := NewLayerMap(&Look{})
	l.SetModel(LayerMapModel{Layers: 4, Runs: []Run{{Lo: 0, Hi: 2, Letter: "a", Dim: true}, {Lo: 2, Hi: 4, Letter: "b", Working: true}}})
	d := draw(t, l, 20, 1)
	for x, want := range map[int]tcell.AttrMask{2: tcell.AttrDim, 7: tcell.AttrBold} {
		if _, _, got := d.styles[[2]int{x, 0}].Decompose(); got != want {
			t.Errorf("cell %d: attributes %v, want %v in %q", x, got, want, d.text)
		}
	}
}

func TestLogKeepsItsPlaceAndItsCap(t *testing.T) {
	lines := func(from, to int) (out []LogLine) {
		for i := from; i < to; i++ {
			out = append(out, LogLine{ID: int64(i), When: "13:06:52", Text: Text(fmt.Sprintf("line %d", i))})
		}
		return out
	}
	l := NewLog(&Look{})
	l.SetModel(LogModel{Lines: lines(0, MaxLogLines+100)})
	if n := len(l.m.Lines); n != MaxLogLines {
		t.Errorf("%d lines kept, want %d", n, MaxLogLines)
	}
	if got := draw(t, l, 40, 5).text; !strings.HasSuffix(got, "line 599\n") {
		t.Errorf("the end is not shown:\n%s", got)
	}
	l.Scroll(key(tcell.KeyPgUp))
	first := strings.SplitN(draw(t, l, 40, 5).text, "\n", 2)[0]
	l.SetModel(LogModel{Lines: lines(200, 700)})
	got := draw(t, l, 40, 5).text
	if !strings.HasPrefix(got, first) || !strings.Contains(got, "↓ 104 lines below") {
		t.Errorf("after new lines:\n%s\nwant it to start with %q and to say what is below", got, first)
	}
	l.Scroll(key(tcell.KeyHome))
	l.SetModel(LogModel{Lines: lines(400, 900)})
	if got := draw(t, l, 40, 5).text; !strings.HasPrefix(got, "13:06:52 line 400") {
		t.Errorf("after the lines being read were dropped:\n%s", got)
	}
	l.Scroll(key(tcell.KeyEnd))
	l.SetModel(LogModel{Lines: lines(401, 901)})
	if got := draw(t, l, 40, 5).text; !strings.HasSuffix(got, "line 900\n") {
		t.Errorf("at the end again, it does not follow:\n%s", got)
	}
}

func TestTranscriptKeepsItsPlaceOverResizeAndCap(t *testing.T) {
	tr := NewTranscript(&Look{})
	entries := chatSample(3 * MaxEntries / 4)
	tr.SetModel(TranscriptModel{Entries: entries})
	if n := len(tr.m.Entries); n != MaxEntries {
		t.Errorf("%d entries kept, want %d", n, MaxEntries)
	}
	draw(t, tr, 60, 10)
	for range 30 {
		tr.Scroll(key(tcell.KeyUp))
	}
	at := tr.v.rows[tr.v.top()].key
	draw(t, tr, 40, 10)
	if got := tr.v.rows[tr.v.top()].key; got != at {
		t.Errorf("entry %d is at the top after a resize, was %d", got, at)
	}
	tr.Follow()
	if got := draw(t, tr, 60, 10).text; !strings.Contains(got, "tok/s") || strings.Contains(got, "below") {
		t.Errorf("the end is not shown:\n%s", got)
	}
	if n := len(tr.cache); n != MaxEntries {
		t.Errorf("%d entries laid out, want %d", n, MaxEntries)
	}
}

func TestRosterDropsColumnsWhole(t *testing.T) {
	r := NewRoster(&Look{})
	r.SetModel(rosterSample())
	for w, want := range map[int]string{70: "DEVICE GPU LENDS HOLDS STATE", 50: "DEVICE LENDS HOLDS STATE",
		40: "DEVICE HOLDS STATE", 34: "DEVICE STATE", 12: "DEVICE"} {
		head := strings.Join(strings.Fields(strings.SplitN(draw(t, r, w, 6).text, "\n", 2)[0]), " ")
		if got := strings.TrimRight(head, "…"); !strings.HasPrefix(want, strings.TrimSpace(got)) || (w > 12 && got != want) {
			t.Errorf("%d cells: %q, want %q", w, got, want)
		}
	}
}

func BenchmarkTranscriptStreaming(b *testing.B) {
	tr := NewTranscript(&Look{})
	sim := tcell.NewSimulationScreen("UTF-8")
	if err := sim.Init(); err != nil {
		b.Fatal(err)
	}
	defer sim.Fini()
	sim.SetSize(120, 32)
	tr.SetRect(0, 0, 120, 30)
	answer := strings.Repeat("Jupiter is the largest planet in our solar system, a gas giant.\n", 640) // 40 KB
	n := 0
	for b.Loop() {
		n++
		entries := chatSample(50)
		entries = append(entries, Entry{ID: 1000, Who: "Qwen3", Text: SafeLines(answer+strings.Repeat("word ", n%50), MaxAnswer)})
		tr.SetModel(TranscriptModel{Entries: entries})
		tr.Draw(sim)
	}
}
