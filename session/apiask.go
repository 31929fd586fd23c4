package session

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode/utf16"

	"pooled/compute/op"
)

// Limits of a version 1 API ask (spec room.md 6.2), in JavaScript characters (UTF-16 units) where text is counted.
const (
	apiMessages  = 200
	apiText      = 400_000
	apiMaxTokens = 65536
	apiTokens    = 1024 // when not said
	apiStops     = 4
	apiStopLen   = 64
)

// msgAsk is a question of the room's chat, or an API ask when api is set.
type msgAsk struct {
	text string
	api  *apiAsk
	rid  string // of an API ask, "" when it can't be told
	bad  string // why an API ask can't be taken
}

// apiAsk is a whole conversation to be answered.
type apiAsk struct {
	rid      string
	system   string
	messages []apiMessage
	client   string
	params   askParams
}

type apiMessage struct{ role, text string }

type askParams struct {
	maxTokens   int
	temp        float64 // NaN when not said
	topK        int     // 0 when not said
	stops       []string
	thinking    bool
	thinkBudget int // 0 none
}

var ridShape = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

func readAsk(f fields) any {
	if f["api"] == nil {
		text := strings.TrimSpace(f.raw("text", maxAsk))
		if text == "" {
			return nil
		}
		return msgAsk{text: text}
	}
	rid, _ := f["rid"].(string)
	if !ridShape.MatchString(rid) {
		return msgAsk{bad: "the request has no valid id"}
	}
	a, err := readAPIAsk(f)
	if err != nil {
		return msgAsk{rid: rid, bad: err.Error()}
	}
	a.rid = rid
	return msgAsk{rid: rid, api: a}
}

func readAPIAsk(f fields) (*apiAsk, error) {
	if v, ok := f.whole("api", 1, 1); !ok || v != 1 {
		return nil, fmt.Errorf("this host takes API requests of version 1 only")
	}
	a := &apiAsk{client: f.line("client", maxName)}
	total := 0
	switch s := f["system"].(type) {
	case nil:
	case string:
		a.system = strings.ToValidUTF8(s, "\uFFFD")
		total += units(a.system)
	default:
		return nil, fmt.Errorf("system is not text")
	}
	list, _ := f["messages"].([]any)
	if len(list) < 1 || len(list) > apiMessages {
		return nil, fmt.Errorf("%d messages, 1 to %d allowed", len(list), apiMessages)
	}
	for i, e := range list {
		m, _ := e.(map[string]any)
		role, _ := m["role"].(string)
		text, isText := m["text"].(string)
		if role != "user" && role != "assistant" || !isText {
			return nil, fmt.Errorf("message %d has no role or no text", i+1)
		}
		text = strings.ToValidUTF8(text, "\uFFFD")
		if total += units(text); total > apiText {
			return nil, fmt.Errorf("more than %d characters", apiText)
		}
		a.messages = append(a.messages, apiMessage{role, text})
	}
	if a.messages[len(a.messages)-1].role != "user" {
		return nil, fmt.Errorf("the last message is not the user's")
	}
	return a, a.readParams(f.object("params"))
}

func (a *apiAsk) readParams(f fields) error {
	p := &a.params
	*p = askParams{maxTokens: apiTokens, temp: math.NaN(), thinking: f.flag("thinking")}
	var ok bool
	if f["maxTokens"] != nil {
		if p.maxTokens, ok = f.whole("maxTokens", 1, apiMaxTokens); !ok {
			return fmt.Errorf("maxTokens is not 1 to %d", apiMaxTokens)
		}
	}
	if f["temperature"] != nil {
		if p.temp, ok = f.num("temperature"); !ok || p.temp < 0 || p.temp > 2 {
			return fmt.Errorf("temperature is not 0 to 2")
		}
	}
	if f["topK"] != nil {
		k, isNum := f.num("topK")
		if !isNum || k < 1 {
			return fmt.Errorf("topK is not 1 or more")
		}
		p.topK = int(min(math.Round(k), op.MaxTopK))
	}
	if f["thinkBudget"] != nil {
		if p.thinkBudget, ok = f.whole("thinkBudget", 1, apiMaxTokens); !ok {
			return fmt.Errorf("thinkBudget is not 1 to %d", apiMaxTokens)
		}
	}
	if c := f.line("client", maxName); c != "" {
		a.client = c
	}
	if a.client == "" {
		a.client = "API"
	}
	return p.readStops(f["stop"])
}

func (p *askParams) readStops(v any) error {
	list, isList := v.([]any)
	if v != nil && !isList || len(list) > apiStops {
		return fmt.Errorf("stop is not a list of up to %d texts", apiStops)
	}
	for _, e := range list {
		s, isText := e.(string)
		if n := units(s); !isText || n < 1 || n > apiStopLen {
			return fmt.Errorf("a stop text is not 1 to %d characters", apiStopLen)
		}
		p.stops = append(p.stops, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return nil
}

// units counts UTF-16 units.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}
