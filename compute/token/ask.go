package token

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Tool is a function that the model may call.
type Tool struct {
	Name        string
	Description string          // "" for none
	Parameters  json.RawMessage // JSON schema; nothing or null for no parameters
}

// Call is a call that an answer made.
type Call struct {
	Name string
	Args json.RawMessage // a JSON object; nothing for an empty one
}

// Replay is an answer exactly as it was sampled.
type Replay struct {
	IDs      []int32 // from behind "assistant\n" on, the think block of the header included
	ThinkEnd int     // how many of them belong to the think block, 0 for none
	Reasoned bool    // there was something in the block
}

// Message is one message of a client's conversation.
type Message struct {
	Role      string // "user", "assistant" or "tool"
	Text      string
	Aside     bool    // user: sent along with tool results, not a new question
	Reasoning string  // assistant: what stood in its think block
	Calls     []Call  // assistant
	Exact     *Replay // assistant: known from before; then its text and calls aren't looked at
}

// Ask is a whole conversation as a client sends it (spec room.md 6.3).
type Ask struct {
	System     string // "" for none
	Tools      []Tool
	ToolChoice string // "none" leaves the tools out of the prompt
	Messages   []Message
	Think      bool
	Effort     string // "low", "medium", anything else for the most
}

// RenderAsk writes a client's conversation up to where the model goes on (spec room.md 6.7). The first
// system segments are the system turn. The error wraps ErrAsk.
//
// What comes from the client is text whatever it spells; the tags are written here.
func (p Profile) RenderAsk(a Ask) (segs []Segment, system int, err error) {
	r := asking{p: p, ask: a, lastQuery: -1}
	if err := r.systemTurn(); err != nil {
		return nil, 0, err
	}
	system = len(r.w.done())
	for i, m := range a.Messages {
		if m.Role == roleUser && !m.Aside {
			r.lastQuery = i
		}
	}
	for i, m := range a.Messages {
		switch m.Role {
		case roleUser:
			r.w.special(tagStart)
			r.w.text("user\n" + p.trim(m.Text))
			r.w.endTurn()
		case roleTool:
			r.result(i)
		case roleAssistant:
			if err := r.answer(i); err != nil {
				return nil, 0, err
			}
		default:
			return nil, 0, fmt.Errorf("%w: message %d has role %.40q", ErrAsk, i, m.Role)
		}
	}
	r.w.header()
	switch {
	case p.NoThink:
	case !a.Think:
		r.w.emptyThink()
	case p.ThinkInPrompt:
		r.w.special(tagThink)
		r.w.text("\n")
	}
	return r.w.done(), system, nil
}

// asking is a request being rendered.
type asking struct {
	p         Profile
	ask       Ask
	w         writer
	lastQuery int // index of the last question that is no aside, -1 for none
}

// trim is a text as this model's template takes it.
func (p Profile) trim(s string) string {
	if p.Trim {
		return strings.TrimSpace(s)
	}
	return s
}

// systemTurn writes the system text, the tools and how hard to think, if there is any of it.
func (r *asking) systemTurn() error {
	system, effort := r.p.trim(r.ask.System), r.effort()
	tools := r.ask.Tools
	if r.ask.ToolChoice == "none" {
		tools = nil
	}
	if system == "" && effort == "" && len(tools) == 0 {
		return nil
	}
	form := toolForms[StyleJSON]
	if r.p.Style == StyleXML {
		form = toolForms[StyleXML]
	}
	r.w.special(tagStart)
	r.w.more("system\n" + effort)
	switch {
	case len(tools) == 0:
		r.w.more(gap(effort, system) + system)
	case form.systemFirst:
		r.w.more(gap(effort, system) + system + gap(effort+system, "tools"))
		if err := r.tools(form, tools); err != nil {
			return err
		}
	default:
		r.w.more(gap(effort, "tools"))
		if err := r.tools(form, tools); err != nil {
			return err
		}
		r.w.more(gap("tools", system) + system)
	}
	r.w.endTurn()
	return nil
}

// gap is the blank line between two texts, if both are there.
func gap(a, b string) string {
	if a == "" || b == "" {
		return ""
	}
	return "\n\n"
}

// effort is the sentence that says how hard to think, "" for none.
func (r *asking) effort() string {
	if !r.p.EffortLine || !r.ask.Think || r.ask.Effort == "medium" {
		return ""
	}
	if r.ask.Effort == "low" {
		return effortLow
	}
	return effortMost
}

// tools writes the list of tools and how to call them.
func (r *asking) tools(form toolForm, tools []Tool) error {
	list := []byte(form.before)
	var err error
	for i, t := range tools {
		list = append(list, `{"type": "function", "function": {"name": `...)
		list = appendQuoted(list, t.Name)
		if t.Description != "" {
			list = append(list, `, "description": `...)
			list = appendQuoted(list, t.Description)
		}
		list = append(list, `, "parameters": `...)
		if len(t.Parameters) == 0 || string(t.Parameters) == "null" {
			list = append(list, `{"type": "object", "properties": {}}`...)
		} else if list, err = appendJSON(list, t.Parameters); err != nil {
			return fmt.Errorf("tool %d: parameters: %w", i, err)
		}
		list = append(list, "}}\n"...)
	}
	r.w.more(string(list))
	r.tagged(form.after)
	return nil
}

// tagged writes a text of ours in which call tags are special tokens.
func (r *asking) tagged(s string) {
	for {
		at, tag := len(s), ""
		for _, t := range [...]string{tagCall, tagCallEnd} {
			if i := strings.Index(s, t); i >= 0 && i < at {
				at, tag = i, t
			}
		}
		r.w.more(s[:at])
		if tag == "" {
			return
		}
		r.w.special(tag)
		s = s[at+len(tag):]
	}
}

// result writes a tool's result. Results in a row are one turn.
func (r *asking) result(i int) {
	follows := func(i int) bool { return i >= 0 && i < len(r.ask.Messages) && r.ask.Messages[i].Role == roleTool }
	if !follows(i - 1) {
		r.w.special(tagStart)
		r.w.more("user")
	}
	r.w.more("\n")
	r.w.special(tagResult)
	r.w.more("\n" + r.p.trim(r.ask.Messages[i].Text) + "\n")
	r.w.special(tagResultEnd)
	if !follows(i + 1) {
		r.w.endTurn()
	}
}

// answer writes an answer of the past.
func (r *asking) answer(i int) error {
	m := r.ask.Messages[i]
	block := r.keepsThink(i)
	r.w.header()
	if m.Exact != nil {
		ids := m.Exact.IDs
		if !block {
			ids = ids[min(max(m.Exact.ThinkEnd, 0), len(ids)):]
		}
		r.w.ids(ids)
		r.w.endTurn()
		return nil
	}
	text := r.p.trim(m.Text)
	if block {
		reasoning := r.p.trim(m.Reasoning)
		if !r.p.Trim {
			reasoning = strings.Trim(reasoning, "\n")
			if r.p.Style != StyleXML {
				text = strings.TrimLeft(text, "\n")
			}
		}
		r.think(reasoning)
	}
	r.w.more(text)
	for n, c := range m.Calls {
		body, err := callBody(c, r.p.Style)
		if err != nil {
			return fmt.Errorf("message %d: call %d: %w", i, n, err)
		}
		r.w.more(callSeparator(n, text, r.p.Style))
		r.w.special(tagCall)
		r.w.more(body)
		r.w.special(tagCallEnd)
	}
	r.w.endTurn()
	return nil
}

// keepsThink tells whether an answer of the past is written with its think block. With thinking off
// one that was sampled behind the empty block keeps it, so that the prompt goes on where the last one
// ended; else the template's rule decides.
func (r *asking) keepsThink(i int) bool {
	m := r.ask.Messages[i]
	reasoned := strings.TrimSpace(m.Reasoning) != "" || m.Exact != nil && m.Exact.Reasoned
	if !r.ask.Think && !reasoned || r.p.ThinkRule == ThinkAll {
		return true
	}
	return i > r.lastQuery &&
		(r.p.ThinkRule == ThinkAfterQuery || reasoned || m.Exact != nil && m.Exact.ThinkEnd > 0)
}

// think writes a think block. A model without the tags gets none.
func (r *asking) think(reasoning string) {
	switch {
	case r.p.NoThink:
	case reasoning == "":
		r.w.emptyThink()
	default:
		r.w.special(tagThink)
		r.w.more("\n" + reasoning + "\n")
		r.w.special(tagThinkEnd)
		r.w.more("\n\n")
	}
}
