package token

import (
	"errors"
	"reflect"
	"slices"
	"testing"
)

// vectorSegment is a segment as the vectors write it.
type vectorSegment struct {
	Sp  string  `json:"sp"`
	T   string  `json:"t"`
	IDs []int32 `json:"ids"`
}

type vectorProfile struct {
	Style, ThinkRule                       string
	Tools, EffortLine, ThinkInPrompt, Trim bool
}

func (p vectorProfile) profile() Profile {
	return Profile{Style: p.Style, ThinkRule: p.ThinkRule, Tools: p.Tools, EffortLine: p.EffortLine,
		ThinkInPrompt: p.ThinkInPrompt, Trim: p.Trim, Known: true}
}

func segmentsOf(list []vectorSegment) []Segment {
	var out []Segment
	for _, s := range list {
		out = append(out, Segment{Special: s.Sp, Text: s.T, IDs: s.IDs})
	}
	return out
}

const vectorFolder = "testdata/vectors"

// TestVectorsChatTemplate renders the room's own chat, which is the same for every profile.
func TestVectorsChatTemplate(t *testing.T) {
	var file struct {
		Profiles map[string]vectorProfile
		Chat     struct {
			Cases []struct {
				Note string
				In   struct {
					System   string
					Thinking bool
					Turns    []Turn
				}
				Out struct{ Segs []vectorSegment }
			}
		}
	}
	readJSON(t, testFile(t, "POOLED_VECTORS", vectorFolder, "chat_template.json"), &file)
	needCases(t, "POOLED_VECTORS", min(len(file.Profiles), len(file.Chat.Cases)))
	for name, p := range file.Profiles {
		for _, c := range file.Chat.Cases {
			t.Run(name+"/"+c.Note, func(t *testing.T) {
				got := p.profile().Render(Chat{System: c.In.System, Turns: c.In.Turns, Think: c.In.Thinking})
				if want := segmentsOf(c.Out.Segs); !reflect.DeepEqual(got, want) {
					t.Errorf("\n got %+v\nwant %+v", got, want)
				}
			})
		}
	}
}

func TestRender(t *testing.T) {
	user := []Turn{{Role: "user", Text: "q"}}
	header := []Segment{{Special: "<|im_start|>"}, {Text: "user\nq"}, {Special: "<|im_end|>"}, {Text: "\n"}, {Special: "<|im_start|>"}, {Text: "assistant\n"}}
	tests := []struct {
		name    string
		profile Profile
		chat    Chat
		want    []Segment // behind the header
	}{
		{"no think tags", Profile{NoThink: true}, Chat{Turns: user}, nil},
		{"header doesn't open the block", Profile{ThinkInPrompt: true}, Chat{Turns: user, Think: true}, nil},
		{"answer by its text", Profile{}, Chat{Turns: append(slices.Clone(user), Turn{Role: "assistant", Text: "a"}), Think: true},
			[]Segment{{Text: "a"}, {Special: "<|im_end|>"}, {Text: "\n"}}},
		{"open answer without ids yet", Profile{}, Chat{Turns: append(slices.Clone(user), Turn{Role: "assistant", Open: true}), Think: true}, nil},
		{"ids before text", Profile{}, Chat{Turns: append(slices.Clone(user), Turn{Role: "assistant", Text: "a", IDs: []int32{5}, Open: true}), Think: true},
			[]Segment{{IDs: []int32{5}}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := test.profile.Render(test.chat)
			if want := slices.Concat(header, test.want); !reflect.DeepEqual(got, want) {
				t.Errorf("\n got %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestSegments(t *testing.T) {
	tok := small(t)
	got, err := tok.Segments([]int32{1}, []Segment{{Special: "<|im_start|>"}, {Text: "hello<think>"}, {IDs: []int32{9, 8}}, {}})
	if err != nil {
		t.Fatal(err)
	}
	start, _ := tok.Special("<|im_start|>")
	want := slices.Concat([]int32{1, start}, tok.Encode(nil, "hello<think>"), []int32{9, 8})
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestSegmentsRefuses(t *testing.T) {
	size := int32(small(t).Size())
	tests := []struct {
		name    string
		missing string
		segs    []Segment
		want    error
	}{
		{"no start token", "<|im_start|>", []Segment{{Special: "<|im_start|>"}}, ErrNoChat},
		{"no end token", "<|im_end|>", []Segment{{Text: "x"}, {Special: "<|im_end|>"}}, ErrNoChat},
		{"id too high", "", []Segment{{IDs: []int32{0, size}}}, ErrID},
		{"id negative", "", []Segment{{IDs: []int32{-1}}}, ErrID},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := without(t, test.missing).Segments(nil, test.segs); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

// A tag that a vocabulary doesn't have is written out.
func TestSegmentsWithoutToolTags(t *testing.T) {
	tok := without(t, "<tool_call>")
	got, err := tok.Segments(nil, []Segment{{Special: "<tool_call>"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := tok.Encode(nil, "<tool_call>"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
