package token

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// How hard to think, as the system turn says it (spec engine.md 2.4).
const (
	effortMost = "Reasoning effort is set to xhigh. Please think carefully through the task, validate key assumptions, consider plausible alternatives, and prioritize correctness, consistency, and clarity in the final answer."
	effortLow  = "Reasoning effort is set to low. Keep your thinking brief and focused, moving directly to the conclusion without unnecessary elaboration."
)

// toolForm is the text around the list of tools, word for word what the models were trained on.
type toolForm struct {
	systemFirst   bool // the system text stands before the tools, else behind them
	before, after string
}

var toolForms = map[string]toolForm{
	StyleJSON: {
		systemFirst: true,
		before: `# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
`,
		after: `</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>`,
	},
	StyleXML: {
		before: `# Tools

You have access to the following functions:

<tools>
`,
		after: `</tools>

If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge and do not tell the user about function calls
</IMPORTANT>`,
	},
}

// callSeparator is the text before call i of an answer with this text.
func callSeparator(i int, text, style string) string {
	switch {
	case i > 0 || style != StyleXML && text != "":
		return "\n"
	case style == StyleXML && strings.TrimSpace(text) != "":
		return "\n\n"
	}
	return ""
}

// callBody is the text between the call tags.
func callBody(c Call, style string) (string, error) {
	args := bytes.TrimSpace(c.Args)
	if len(args) == 0 {
		args = []byte("{}")
	}
	if args[0] != '{' || !json.Valid(args) {
		return "", fmt.Errorf("%w: arguments are no JSON object", ErrAsk)
	}
	if style == StyleXML {
		return xmlCall(c.Name, args)
	}
	body := append(appendQuoted([]byte("\n{\"name\": "), c.Name), `, "arguments": `...)
	body, err := appendJSON(body, args)
	return string(body) + "}\n", err
}

// xmlCall is a call in tags. Arguments that are strings stand there as they are, others as JSON.
func xmlCall(name string, args []byte) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(args))
	if _, err := dec.Token(); err != nil { // the opening brace
		return "", fmt.Errorf("%w: %w", ErrAsk, err)
	}
	body := []byte("\n<function=" + name + ">\n")
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrAsk, err)
		}
		body = fmt.Appendf(body, "<parameter=%v>\n", key)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return "", fmt.Errorf("%w: %w", ErrAsk, err)
		}
		var text string
		if value[0] == '"' && json.Unmarshal(value, &text) == nil {
			body = append(body, text...)
		} else if body, err = appendJSON(body, value); err != nil {
			return "", err
		}
		body = append(body, "\n</parameter>\n"...)
	}
	return string(append(body, "</function>\n"...)), nil
}
