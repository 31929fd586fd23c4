package token

import (
	"regexp"
	"strings"
)

// Which past turns keep their think block (spec room.md 6.7).
const (
	ThinkAll                = "all"                // every one
	ThinkAfterQuery         = "afterQuery"         // those after the last real question, even if empty
	ThinkAfterQueryNonEmpty = "afterQueryNonEmpty" // those after it with something in the block
)

// How a model writes tool calls.
const (
	StyleJSON = "json" // one JSON object between the call tags
	StyleXML  = "xml"  // function and parameter tags between the call tags
)

// Profile is what a model's chat template says about writing conversations (spec room.md 6.6).
type Profile struct {
	Style         string // StyleJSON or StyleXML
	Tools         bool   // the model has a form for tool calls
	EffortLine    bool   // a sentence in the system turn says how hard to think
	ThinkInPrompt bool   // the header of an answer opens the think block
	Trim          bool   // white space around texts is dropped
	Known         bool   // the rule for past think blocks was recognised
	ThinkRule     string // ThinkAll, ThinkAfterQuery or ThinkAfterQueryNonEmpty
	NoThink       bool   // the vocabulary has no think tags, so none are written
}

// The marks in template text that a profile is read from.
var (
	opensThink   = regexp.MustCompile(`['"]<think>\\n['"]\s*-?\}\}\s*\{%-?\s*endif`)
	keepsAll     = regexp.MustCompile(`preserve_thinking\s+is\s+(undefined|not\s+defined)\s+or\s+preserve_thinking\b`)
	keepsFilled  = regexp.MustCompile(`not\s+loop\.last\s+and\s+reasoning_content`)
	afterQuery   = regexp.MustCompile(`loop\.index0\s*>\s*ns\.last_query_index`)
	trimsContent = regexp.MustCompile(`render_content\([^)]*\)\s*\|\s*trim`)
)

// ProfileOf reads a chat template, and from the tokenizer which tags there are. A model without a
// template is taken for one of the Qwen3 kind, with tools when it has their tag.
func ProfileOf(template string, t *Tokenizer) Profile {
	has := func(text string) bool {
		_, ok := t.Special(text)
		return ok
	}
	p := Profile{Style: StyleJSON, NoThink: !has("<think>") || !has("</think>")}
	if template == "" {
		p.Tools, p.Known, p.ThinkRule = has("<tool_call>"), true, ThinkAfterQueryNonEmpty
		return p
	}
	p.Tools = strings.Contains(template, "<tool_call>")
	if strings.Contains(template, "<function=") || strings.Contains(template, "<parameter=") {
		p.Style = StyleXML
	}
	p.EffortLine = strings.Contains(template, "Reasoning effort is set to")
	if at := strings.LastIndex(template, "add_generation_prompt"); at >= 0 {
		p.ThinkInPrompt = opensThink.MatchString(template[at:])
	}
	p.Trim = trimsContent.MatchString(template)
	p.ThinkRule = ThinkAfterQuery
	switch {
	case keepsAll.MatchString(template):
		p.ThinkRule, p.Known = ThinkAll, true
	case keepsFilled.MatchString(template):
		p.ThinkRule, p.Known = ThinkAfterQueryNonEmpty, true
	default:
		p.Known = afterQuery.MatchString(template)
	}
	return p
}
