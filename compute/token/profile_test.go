package token

import "testing"

// The tests of a template, in the words that the families use.
const (
	tailQwen3  = "{%- if add_generation_prompt %}\n{{- '<|im_start|>assistant\\n' }}\n{%- if enable_thinking is false %}\n{{- '<think>\\n\\n</think>\\n\\n' }}\n{%- endif %}\n{%- endif %}"
	tailQwen35 = "{%- if add_generation_prompt %}\n{{- '<|im_start|>assistant\\n' }}\n{%- if enable_thinking is false %}\n{{- '<think>\\n\\n</think>\\n\\n' }}\n{%- else %}\n{{- '<think>\\n' }}\n{%- endif %}\n{%- endif %}"
	trims      = "{%- set content = render_content(message.content, true)|trim %}\n"
	xmlCalls   = "'<tool_call>\\n<function=' + name"
)

func TestProfileOf(t *testing.T) {
	tests := []struct {
		name, template string
		want           Profile
	}{
		{"none", "", Profile{Style: StyleJSON, Tools: true, Known: true, ThinkRule: ThinkAfterQueryNonEmpty}},
		{"qwen3", "<tool_call>{\"name\": {%- if loop.index0 > ns.last_query_index %}{%- if loop.last or (not loop.last and reasoning_content) %}" + tailQwen3,
			Profile{Style: StyleJSON, Tools: true, Known: true, ThinkRule: ThinkAfterQueryNonEmpty}},
		{"qwen3.5", trims + xmlCalls + "{%- if loop.index0 > ns.last_query_index %}" + tailQwen35,
			Profile{Style: StyleXML, Tools: true, ThinkInPrompt: true, Trim: true, Known: true, ThinkRule: ThinkAfterQuery}},
		{"qwen3.6", trims + xmlCalls + "{%- if (preserve_thinking is defined and preserve_thinking is true) or (loop.index0 > ns.last_query_index) %}" + tailQwen35,
			Profile{Style: StyleXML, Tools: true, ThinkInPrompt: true, Trim: true, Known: true, ThinkRule: ThinkAfterQuery}},
		{"qwen3.8", trims + xmlCalls + "'Reasoning effort is set to xhigh.'{%- if preserve_thinking is undefined or preserve_thinking is true or loop.index0 > ns.last_query_index %}" + tailQwen35,
			Profile{Style: StyleXML, Tools: true, EffortLine: true, ThinkInPrompt: true, Trim: true, Known: true, ThinkRule: ThinkAll}},
		{"something else", "{% for m in messages %}{{ m.content | trim }}{% endfor %}", Profile{Style: StyleJSON, ThinkRule: ThinkAfterQuery}},
		{"think block elsewhere", "'<think>\\n' }}{% endif %}" + tailQwen3, Profile{Style: StyleJSON, ThinkRule: ThinkAfterQuery}},
		{"parameters alone are XML", "<tool_call><parameter=", Profile{Style: StyleXML, Tools: true, ThinkRule: ThinkAfterQuery}},
	}
	tok := small(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := ProfileOf(test.template, tok); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestProfileOfVocabularyWithoutTags(t *testing.T) {
	tok := without(t, "<tool_call>", "</think>")
	want := Profile{Style: StyleJSON, Known: true, ThinkRule: ThinkAfterQueryNonEmpty, NoThink: true}
	if got := ProfileOf("", tok); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// without is the small tokenizer with some special tokens turned into unused ones.
func without(t *testing.T, names ...string) *Tokenizer {
	t.Helper()
	v := smallVocab()
	for i, text := range v.Tokens {
		for _, name := range names {
			if text == name {
				v.Types[i] = 5
			}
		}
	}
	tok, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}
