package token

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestVectorsAskTemplate renders API requests with every profile.
func TestVectorsAskTemplate(t *testing.T) {
	type hit struct {
		IDs      []int32
		ThinkEnd int
		Reasoned bool
	}
	var file struct {
		Profiles map[string]vectorProfile
		API      struct {
			Cases []struct {
				Note string
				In   struct {
					Profile string
					Req     struct {
						System   string
						Tools    []Tool
						Messages []Message
						Params   struct {
							Thinking   bool
							Effort     string
							ToolChoice any
						}
					}
					Hits map[string]hit
				}
				Out struct {
					SystemSegs int
					Segs       []vectorSegment
				}
			}
		}
	}
	readJSON(t, testFile(t, "POOLED_VECTORS", vectorFolder, "chat_template.json"), &file)
	needCases(t, "POOLED_VECTORS", len(file.API.Cases))
	for _, c := range file.API.Cases {
		t.Run(c.In.Profile+"/"+c.Note, func(t *testing.T) {
			p, ok := file.Profiles[c.In.Profile]
			if !ok {
				t.Fatalf("no profile %q", c.In.Profile)
			}
			req := c.In.Req
			choice, _ := req.Params.ToolChoice.(string)
			ask := Ask{System: req.System, Tools: req.Tools, ToolChoice: choice, Messages: req.Messages,
				Think: req.Params.Thinking, Effort: req.Params.Effort}
			for at, h := range c.In.Hits {
				i, err := strconv.Atoi(at)
				if err != nil {
					t.Fatal(err)
				}
				ask.Messages[i].Exact = &Replay{IDs: h.IDs, ThinkEnd: h.ThinkEnd, Reasoned: h.Reasoned}
			}
			got, system, err := p.profile().RenderAsk(ask)
			if err != nil {
				t.Fatal(err)
			}
			if want := segmentsOf(c.Out.Segs); !reflect.DeepEqual(got, want) {
				t.Errorf("\n got %+v\nwant %+v", got, want)
			}
			if system != c.Out.SystemSegs {
				t.Errorf("%d system segments, want %d", system, c.Out.SystemSegs)
			}
		})
	}
}

// TestVectorsToolText writes JSON and past calls.
func TestVectorsToolText(t *testing.T) {
	var file struct {
		JSON struct {
			Cases []struct {
				In  json.RawMessage
				Out string
			}
		} `json:"py_json"`
		Body struct {
			Cases []struct {
				In struct {
					Call  Call
					Style string
				}
				Out string
			}
		} `json:"call_body"`
		Separator struct {
			Cases []struct {
				In struct {
					I              int
					Content, Style string
				}
				Out string
			}
		} `json:"call_separator"`
	}
	readJSON(t, testFile(t, "POOLED_VECTORS", vectorFolder, "tool_text.json"), &file)
	needCases(t, "POOLED_VECTORS", len(file.JSON.Cases)+len(file.Body.Cases)+len(file.Separator.Cases))
	for _, c := range file.JSON.Cases {
		if got, err := appendJSON(nil, c.In); err != nil || string(got) != c.Out {
			t.Errorf("%s: %s %v, want %s", c.In, got, err, c.Out)
		}
	}
	for _, c := range file.Body.Cases {
		if got, err := callBody(c.In.Call, c.In.Style); err != nil || got != c.Out {
			t.Errorf("%+v: %q %v, want %q", c.In, got, err, c.Out)
		}
	}
	for _, c := range file.Separator.Cases {
		if got := callSeparator(c.In.I, c.In.Content, c.In.Style); got != c.Out {
			t.Errorf("%+v: %q, want %q", c.In, got, c.Out)
		}
	}
}

// spelled is a rendered conversation as one text, ids as their number.
func spelled(segs []Segment) string {
	var b strings.Builder
	for _, s := range segs {
		b.WriteString(s.Special + s.Text)
		if s.IDs != nil {
			b.WriteString("(" + strconv.Itoa(len(s.IDs)) + " ids)")
		}
	}
	return b.String()
}

func TestRenderAsk(t *testing.T) {
	qwen3 := Profile{Style: StyleJSON, ThinkRule: ThinkAfterQueryNonEmpty}
	qwen35 := Profile{Style: StyleXML, ThinkRule: ThinkAfterQuery, ThinkInPrompt: true, Trim: true}
	qwen38 := Profile{Style: StyleXML, ThinkRule: ThinkAll, ThinkInPrompt: true, Trim: true, EffortLine: true}
	user, tool := Message{Role: "user", Text: "q"}, Message{Role: "tool", Text: "r"}
	call := Call{Name: "f", Args: json.RawMessage(`{"k": "v"}`)}
	answer := func(text, reasoning string, calls ...Call) Message {
		return Message{Role: "assistant", Text: text, Reasoning: reasoning, Calls: calls}
	}
	tests := []struct {
		name    string
		profile Profile
		ask     Ask
		want    string // from behind the first question on, up to the header of the answer
	}{
		{"qwen3 keeps reasoning after the question", qwen3, Ask{Think: true, Messages: []Message{user, answer("\na", "\nwhy\n", call), tool}},
			"<think>\nwhy\n</think>\n\na\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"k\": \"v\"}}\n</tool_call>"},
		{"qwen3 drops an empty block", qwen3, Ask{Think: true, Messages: []Message{user, answer("a", "", call), tool}},
			"a\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"k\": \"v\"}}\n</tool_call>"},
		{"qwen3 keeps the block an exact answer had", qwen3, Ask{Think: true, Messages: []Message{user, {Role: "assistant", Exact: &Replay{IDs: []int32{1, 2, 3}, ThinkEnd: 2}}, tool}},
			"(3 ids)"},
		{"qwen3.5 keeps an empty block", qwen35, Ask{Think: true, Messages: []Message{user, answer(" a ", " ", call, call), tool}},
			"<think>\n\n</think>\n\na\n\n<tool_call>\n<function=f>\n<parameter=k>\nv\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=f>\n<parameter=k>\nv\n</parameter>\n</function>\n</tool_call>"},
		{"qwen3.8 keeps every block", qwen38, Ask{Think: true, Effort: "medium", Messages: []Message{user, answer("a", "why"), user}},
			"<think>\nwhy\n</think>\n\na"},
		{"thinking off drops reasoning of before", qwen35, Ask{Messages: []Message{user, answer("a", "why"), user}}, "a"},
		{"a broken count is no panic", qwen3, Ask{Think: true, Messages: []Message{user, {Role: "assistant", Exact: &Replay{IDs: []int32{1}, ThinkEnd: 9, Reasoned: true}}, user}}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			segs, _, err := test.profile.RenderAsk(test.ask)
			if err != nil {
				t.Fatal(err)
			}
			got := spelled(segs)
			_, got, _ = strings.Cut(got, "<|im_end|>\n<|im_start|>assistant\n")
			got, _, _ = strings.Cut(got, "<|im_end|>")
			if got != test.want {
				t.Errorf("\n got %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestRenderAskSystemTurn(t *testing.T) {
	json38 := Profile{Style: StyleJSON, EffortLine: true, Trim: true}
	xml38 := Profile{Style: StyleXML, EffortLine: true, Trim: true}
	tools := []Tool{{Name: "f"}}
	tests := []struct {
		name       string
		profile    Profile
		system     string
		tools      []Tool
		start, end string
	}{
		{"effort and text", xml38, " S ", nil, effortMost + "\n\nS", "answer.\n\nS"},
		{"XML: effort, tools, text", xml38, "S", tools, effortMost + "\n\n# Tools\n\nYou have", "</IMPORTANT>\n\nS"},
		{"XML: effort, tools", xml38, " ", tools, effortMost + "\n\n# Tools\n\nYou have", "</IMPORTANT>"},
		{"JSON: effort, text, tools", json38, "S", tools, effortMost + "\n\nS\n\n# Tools\n\nYou may", "</tool_call>"},
		{"JSON: effort, tools", json38, "", tools, effortMost + "\n\n# Tools\n\nYou may", "</tool_call>"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			segs, n, err := test.profile.RenderAsk(Ask{System: test.system, Tools: test.tools, Think: true, Messages: []Message{{Role: "user"}}})
			if err != nil {
				t.Fatal(err)
			}
			got := spelled(segs[:n])
			if want := "<|im_start|>system\n" + test.start; !strings.HasPrefix(got, want) {
				t.Errorf("%q doesn't start with %q", got, want)
			}
			if want := test.end + "<|im_end|>\n"; !strings.HasSuffix(got, want) {
				t.Errorf("%q doesn't end with %q", got, want)
			}
		})
	}
	if segs, n, err := xml38.RenderAsk(Ask{Messages: []Message{{Role: "user", Text: "q"}}}); err != nil || n != 0 || segs[1].Text != "user\nq" {
		t.Errorf("nothing to say: %d system segments, %+v, %v", n, segs, err)
	}
}

func TestRenderAskWithoutThinkTags(t *testing.T) {
	p := Profile{Style: StyleXML, ThinkRule: ThinkAll, ThinkInPrompt: true, NoThink: true}
	for _, think := range []bool{false, true} {
		segs, _, err := p.RenderAsk(Ask{Think: think, Messages: []Message{{Role: "user"}, {Role: "assistant", Text: "a", Reasoning: "why"}, {Role: "user"}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := spelled(segs); strings.Contains(got, "think") || strings.Contains(got, "why") {
			t.Errorf("thinking %v: %q has a block", think, got)
		}
	}
}

func TestRenderAskRefuses(t *testing.T) {
	withArgs := func(args string) Ask {
		return Ask{Messages: []Message{{Role: "assistant", Calls: []Call{{Name: "f", Args: json.RawMessage(args)}}}}}
	}
	tests := []struct {
		name string
		ask  Ask
	}{
		{"role", Ask{Messages: []Message{{Role: "system"}}}},
		{"broken schema", Ask{Tools: []Tool{{Name: "f", Parameters: json.RawMessage(`{"a":`)}}}},
		{"two values as a schema", Ask{Tools: []Tool{{Name: "f", Parameters: json.RawMessage(`{} {}`)}}}},
		{"endless nesting", Ask{Tools: []Tool{{Name: "f", Parameters: json.RawMessage(strings.Repeat("[", 1<<20))}}}},
		{"number too large", Ask{Tools: []Tool{{Name: "f", Parameters: json.RawMessage(`{"a":1e999}`)}}}},
		{"arguments no object", withArgs(`[1]`)},
		{"broken arguments", withArgs(`{"a":1`)},
		{"number too large in arguments", withArgs(`{"a":1e999}`)},
	}
	for _, test := range tests {
		for _, style := range []string{StyleJSON, StyleXML} {
			t.Run(test.name+"/"+style, func(t *testing.T) {
				if _, _, err := (Profile{Style: style}).RenderAsk(test.ask); !errors.Is(err, ErrAsk) {
					t.Errorf("error %v, want ErrAsk", err)
				}
			})
		}
	}
}

func TestAppendJSON(t *testing.T) {
	for in, want := range map[string]string{
		` { "b" : [ ] , "a" : { } } `:            `{"b": [], "a": {}}`,
		`[[1,[2]],{"x":[{}]}]`:                   `[[1, [2]], {"x": [{}]}]`,
		`"\u0000\b\f\r\t\u001f\u007f\/é\u2028<"`: "\"\\u0000\\b\\f\\r\\t\\u001f\u007f/é\u2028<\"",
		`9007199254740993`:                       `9007199254740993`,
		`-0`:                                     `0`,
		`[1.0,2.50,1E3,-0.0]`:                    `[1, 2.5, 1000, 0]`,
		`[1e20,1e21,1.5e-6,1e-7,-1.25e-10]`:      `[100000000000000000000, 1e+21, 0.0000015, 1e-7, -1.25e-10]`,
		`null`:                                   `null`,
		`[true,false]`:                           `[true, false]`,
	} {
		if got, err := appendJSON(nil, []byte(in)); err != nil || string(got) != want {
			t.Errorf("%s: %s %v, want %s", in, got, err, want)
		}
	}
}

func TestXMLCallValues(t *testing.T) {
	got, err := callBody(Call{Name: "f", Args: json.RawMessage(` { "a" : "x\ny" , "b" : [1,{"c":null}], "d": "" } `)}, StyleXML)
	want := "\n<function=f>\n<parameter=a>\nx\ny\n</parameter>\n<parameter=b>\n[1, {\"c\": null}]\n</parameter>\n<parameter=d>\n\n</parameter>\n</function>\n"
	if err != nil || got != want {
		t.Errorf("%q %v, want %q", got, err, want)
	}
	for _, style := range []string{StyleJSON, StyleXML} {
		if got, err := callBody(Call{Name: "f"}, style); err != nil || strings.Contains(got, "parameter") {
			t.Errorf("%s without arguments: %q %v", style, got, err)
		}
	}
}

// The tags of the tool instructions are special tokens, those in a tool's own texts are not.
func TestToolTextsAreText(t *testing.T) {
	tok := small(t)
	for _, style := range []string{StyleJSON, StyleXML} {
		p := Profile{Style: style}
		count := func(text string) int {
			segs, _, err := p.RenderAsk(Ask{Tools: []Tool{{Name: text, Description: text}}, Messages: []Message{
				{Role: "user", Text: text}, {Role: "assistant", Text: text, Calls: []Call{{Name: text, Args: json.RawMessage(`{"k": ` + strconv.Quote(text) + `}`)}}}, {Role: "tool", Text: text}}})
			if err != nil {
				t.Fatal(err)
			}
			ids, err := tok.Segments(nil, segs)
			if err != nil {
				t.Fatal(err)
			}
			return len(slices.DeleteFunc(ids, func(id int32) bool { return tok.Text(id) == "" }))
		}
		if got, want := count("</tool_call><|im_end|>"), count("x"); got != want {
			t.Errorf("%s: %d special tokens, want %d", style, got, want)
		}
	}
}
