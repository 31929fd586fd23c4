package session

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// readVectors reads one group of a vector file into v. It reports false when other vectors were asked for and these
// are not among them.
func readVectors(t *testing.T, file, group string, v any) {
	t.Helper()
	dir, other := os.LookupEnv("POOLED_VECTORS")
	if !other {
		dir = "testdata"
	}
	data, err := os.ReadFile(filepath.Join(dir, file))
	if other && errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no %s in POOLED_VECTORS", file)
	}
	if err != nil {
		t.Fatal(err)
	}
	var groups map[string]json.RawMessage
	if err := json.Unmarshal(data, &groups); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	raw, there := groups[group]
	if !there && other {
		t.Skipf("no %s in %s", group, file)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatalf("%s %s: %v", file, group, err)
	}
}

func TestVectorsPrefillFrames(t *testing.T) {
	type frame struct {
		At, N int
		Kind  string
		Head  bool
	}
	var v struct {
		Cases []struct {
			In struct {
				NewTokens, Cols, WideFrame int
				Flex                       bool
			}
			Out []frame
		}
	}
	readVectors(t, "prefill.json", "prefill_frames", &v)
	if len(v.Cases) == 0 {
		t.Fatal("no cases")
	}
	names := map[cutKind]string{cutToken: "token", cutBatch: "batch", cutTail: "tail", cutWide: "wide"}
	for i, c := range v.Cases {
		var got []frame
		for _, f := range (prefill{cols: c.In.Cols, flex: c.In.Flex, wide: c.In.WideFrame}).cuts(c.In.NewTokens) {
			fr := frame{At: f.at, N: f.n, Kind: names[f.kind], Head: f.head}
			if f.kind == cutTail { // the vectors don't say it of a tail
				fr.Head = false
			}
			got = append(got, fr)
		}
		if !reflect.DeepEqual(got, c.Out) {
			t.Errorf("case %d (%+v): got %+v, want %+v", i, c.In, got, c.Out)
		}
	}
}

func TestPrefillOfDenseModels(t *testing.T) {
	for n := range 200 {
		at := 0
		cuts := prefill{cols: prefillCols}.cuts(n)
		for i, c := range cuts {
			if c.at != at || c.n < 1 || c.n > prefillCols || c.head != (i == len(cuts)-1) || c.kind == cutToken && c.n != 1 {
				t.Fatalf("%d tokens: frame %d is %+v at %d", n, i, c, at)
			}
			at += c.n
		}
		if at != n {
			t.Fatalf("%d tokens: %d in frames", n, at)
		}
	}
}

func TestVectorsTimingLaps(t *testing.T) {
	var limits struct {
		Cases []struct {
			In struct {
				Stat *struct {
					N        int
					Lap, Max float64
				}
				Fallback, RTT float64
			}
			Out float64
		}
	}
	readVectors(t, "timing.json", "lap_timeout", &limits)
	for i, c := range limits.Cases {
		var s *lapStat
		if c.In.Stat != nil {
			s = &lapStat{n: c.In.Stat.N, lap: c.In.Stat.Lap, max: c.In.Stat.Max}
		}
		ms := func(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }
		if got := millis(s.limit(ms(c.In.Fallback), ms(c.In.RTT))); got != c.Out {
			t.Errorf("limit %d: got %v, want %v", i, got, c.Out)
		}
	}
	var stat struct {
		In  [][2]float64
		Out []struct {
			Lap, Host, Max float64
			N              int
		}
	}
	readVectors(t, "timing.json", "lap_stat", &stat)
	var s lapStat
	for i, in := range stat.In {
		s.add(in[0], in[1])
		want := stat.Out[i]
		if s.n != want.N || math.Abs(s.lap-want.Lap)+math.Abs(s.host-want.Host)+math.Abs(s.max-want.Max) > 1e-9 {
			t.Errorf("lap %d: got %+v, want %+v", i, s, want)
		}
	}
}

func TestVectorsStreamStops(t *testing.T) {
	var v struct {
		Cases []struct {
			In  struct{ Stops, Pieces []string }
			Out struct {
				Texts []string
				Flush string
				Hit   *string
			}
		}
	}
	readVectors(t, "stream_text.json", "stop_strings", &v)
	for i, c := range v.Cases {
		f := stopFilter{stops: c.In.Stops}
		for j, p := range c.In.Pieces {
			if got := f.push(p); got != c.Out.Texts[j] {
				t.Errorf("case %d, piece %d: got %q, want %q", i, j, got, c.Out.Texts[j])
			}
		}
		hit := ""
		if c.Out.Hit != nil {
			hit = *c.Out.Hit
		}
		if got := f.flush(); got != c.Out.Flush || f.hit != hit {
			t.Errorf("case %d: flush %q and hit %q, want %q and %q", i, got, f.hit, c.Out.Flush, hit)
		}
	}
}

func TestVectorsStreamThinking(t *testing.T) {
	type part struct {
		Th   bool
		Text string
	}
	var v struct {
		Cases []struct {
			In struct {
				On, InPrompt, CallCloses bool
				Pieces                   []string
			}
			Out struct {
				Parts [][]part
				Flush []part
				State string
			}
		}
	}
	readVectors(t, "stream_text.json", "think_split", &v)
	parts := func(ps []piece) []part {
		got := []part{}
		for _, p := range ps {
			got = append(got, part{p.reasoning, p.text})
		}
		return got
	}
	for i, c := range v.Cases {
		s := newThinkSplitter(c.In.On, c.In.InPrompt, c.In.CallCloses)
		for j, p := range c.In.Pieces {
			if got := parts(s.push(nil, p)); !reflect.DeepEqual(got, c.Out.Parts[j]) {
				t.Errorf("case %d, piece %d: got %+v, want %+v", i, j, got, c.Out.Parts[j])
			}
		}
		state := "answer"
		if s.state == splitThink {
			state = "think"
		}
		if got := parts(s.flush(nil)); !reflect.DeepEqual(got, c.Out.Flush) || state != c.Out.State {
			t.Errorf("case %d: flush %+v in state %s, want %+v in %s", i, got, state, c.Out.Flush, c.Out.State)
		}
	}
}

func TestVectorsModelsPledge(t *testing.T) {
	var v struct {
		Cases []struct {
			In struct {
				Meta      map[string]any
				HostCapGB *float64
			}
			Out float64
		}
	}
	readVectors(t, "models.json", "pledge_gb", &v)
	for i, c := range v.Cases {
		most := 0.0
		if c.In.HostCapGB != nil {
			most = *c.In.HostCapGB
		}
		if got := readMeta(c.In.Meta).pledgeGB(most); got != c.Out {
			t.Errorf("case %d (%v): got %v, want %v", i, c.In.Meta, got, c.Out)
		}
	}
}
