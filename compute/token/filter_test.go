package token

import (
	"slices"
	"strings"
	"testing"
)

type vectorPart struct {
	Th   bool
	Text string
}

func partsOf(list []vectorPart) []Part {
	var out []Part
	for _, p := range list {
		out = append(out, Part{p.Th, p.Text})
	}
	return out
}

func TestVectorsStopStrings(t *testing.T) {
	var file struct {
		Group struct {
			Cases []struct {
				In  struct{ Stops, Pieces []string }
				Out struct {
					Texts []string
					Flush string
					Hit   *string
				}
			}
		} `json:"stop_strings"`
	}
	readJSON(t, testFile(t, "POOLED_VECTORS", vectorFolder, "stream_text.json"), &file)
	needCases(t, "POOLED_VECTORS", len(file.Group.Cases))
	for _, c := range file.Group.Cases {
		s := NewStops(c.In.Stops)
		var texts []string
		for _, p := range c.In.Pieces {
			texts = append(texts, s.Push(p))
		}
		if !slices.Equal(texts, c.Out.Texts) {
			t.Errorf("%q: %q, want %q", c.In, texts, c.Out.Texts)
		}
		if got := s.Flush(); got != c.Out.Flush {
			t.Errorf("%q: flush %q, want %q", c.In, got, c.Out.Flush)
		}
		hit, ok := s.Hit()
		if ok != (c.Out.Hit != nil) || ok && hit != *c.Out.Hit {
			t.Errorf("%q: hit %q %v, want %v", c.In, hit, ok, c.Out.Hit)
		}
	}
}

func TestVectorsThinkSplit(t *testing.T) {
	var file struct {
		Group struct {
			Cases []struct {
				In struct {
					On, InPrompt, CallCloses bool
					Pieces                   []string
				}
				Out struct {
					Parts [][]vectorPart
					Flush []vectorPart
					State string
				}
			}
		} `json:"think_split"`
	}
	readJSON(t, testFile(t, "POOLED_VECTORS", vectorFolder, "stream_text.json"), &file)
	needCases(t, "POOLED_VECTORS", len(file.Group.Cases))
	for _, c := range file.Group.Cases {
		s := NewThinkSplit(c.In.On, c.In.InPrompt, c.In.CallCloses)
		for i, p := range c.In.Pieces {
			if got, want := s.Push(p), partsOf(c.Out.Parts[i]); !slices.Equal(got, want) {
				t.Errorf("%+v: piece %d gives %+v, want %+v", c.In, i, got, want)
			}
		}
		if got, want := s.Flush(), partsOf(c.Out.Flush); !slices.Equal(got, want) {
			t.Errorf("%+v: flush %+v, want %+v", c.In, got, want)
		}
		if got, want := s.Thinking(), c.Out.State == "think"; got != want {
			t.Errorf("%+v: thinking %v, want %v", c.In, got, want)
		}
	}
}

func TestStopStrings(t *testing.T) {
	tests := []struct {
		name          string
		stops, pieces []string
		want, flush   string
		hit           string
	}{
		{"held to the end", []string{"END"}, []string{"x EN"}, "x ", "EN", ""},
		{"false start within", []string{"aab"}, []string{"a", "a", "a", "b", "c"}, "a", "", "aab"},
		{"first in the text", []string{"two", "one"}, []string{"a one two"}, "a ", "", "one"},
		{"empty stop", []string{""}, []string{"x"}, "x", "", ""},
		{"nothing after a hit", []string{"."}, []string{"a.", "b", "."}, "a", "", "."},
		{"characters stay whole", []string{"€€"}, []string{"x€", "y"}, "x€y", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := NewStops(test.stops)
			var got strings.Builder
			for _, p := range test.pieces {
				got.WriteString(s.Push(p))
			}
			if got.String() != test.want {
				t.Errorf("%q, want %q", got.String(), test.want)
			}
			if got := s.Flush(); got != test.flush {
				t.Errorf("flush %q, want %q", got, test.flush)
			}
			if hit, ok := s.Hit(); hit != test.hit || ok != (test.hit != "") {
				t.Errorf("hit %q %v, want %q", hit, ok, test.hit)
			}
		})
	}
}

// However an answer is cut into pieces, its parts are the same.
func TestThinkSplitOfAnyPieces(t *testing.T) {
	tests := []struct {
		name, text, think, answer string
		on, inPrompt, callCloses  bool
	}{
		{"block", " \n<think> a <b> \n\n</think>\n\nyes </think>", "a <b>", "yes </think>", true, false, false},
		{"no block", "\n a <think>", "", "a <think>", true, false, false},
		{"almost a tag", "<thin a", "", "<thin a", true, false, false},
		{"in the prompt", "\n why\n</think>\nyes", "why", "yes", true, true, false},
		{"a call ends it", "why\n<tool_call>\nx", "why", "<tool_call>\nx", true, true, true},
		{"a call doesn't end it", "why\n<tool_call>\nx</think>y", "why\n<tool_call>\nx", "y", true, true, false},
		{"off", " <think>a</think> b", "", " <think>a</think> b", false, false, false},
		{"empty block", "<think>\n\n</think>\n\nb", "", "b", true, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for size := 1; size <= len(test.text); size++ {
				s := NewThinkSplit(test.on, test.inPrompt, test.callCloses)
				var think, answer string
				take := func(parts []Part) {
					for _, p := range parts {
						if p.Think {
							think += p.Text
						} else {
							answer += p.Text
						}
					}
				}
				for piece := range slices.Chunk([]byte(test.text), size) {
					take(s.Push(string(piece)))
				}
				take(s.Flush())
				if think != test.think || answer != test.answer {
					t.Errorf("pieces of %d: %q and %q, want %q and %q", size, think, answer, test.think, test.answer)
				}
			}
		})
	}
}
