package session

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFieldsAreTotal(t *testing.T) {
	values := []any{nil, true, false, int64(-1), int64(3), uint64(1 << 63), 2.5, math.NaN(), math.Inf(1), "3", "x\x00\x1b[31m\u0085y\xff",
		strings.Repeat("é", 5000), []byte{1}, []any{int64(1)}, map[string]any{"a": 1}}
	for _, v := range values {
		f := fields{"k": v}
		if s := f.line("k", 40); utf8.RuneCountInString(s) > 40 || !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\x1b\u0085") {
			t.Errorf("line of %v: %q", v, s)
		}
		if s := f.raw("k", 40); utf8.RuneCountInString(s) > 40 || !utf8.ValidString(s) {
			t.Errorf("raw of %v: %q", v, s)
		}
		if n, ok := f.num("k"); ok && (math.IsNaN(n) || math.IsInf(n, 0)) {
			t.Errorf("num of %v: %v", v, n)
		}
		if n, ok := f.whole("k", 0, 10); ok && (n < 0 || n > 10) {
			t.Errorf("whole of %v: %v", v, n)
		}
		if s := f.id("k"); len(s) > maxID || strings.ContainsAny(s, " \x00\x1b") {
			t.Errorf("id of %v: %q", v, s)
		}
		_, _, _ = f.flag("k"), f.object("k"), f.list("k", 3)
	}
}

func TestCleanText(t *testing.T) {
	for _, c := range []struct{ in, line, text string }{
		{"a\r\nb\tc", "abc", "a\nb\tc"},
		{"\x1b[2Jx\u009b31m", "[2Jx31m", "[2Jx31m"},
		{"  x  ", "x", "  x  "},
		{"\u2028x", "x", "\u2028x"},
	} {
		if got := cleanLine(c.in, 100); got != c.line {
			t.Errorf("line of %q: %q, want %q", c.in, got, c.line)
		}
		if got := cleanText(c.in); got != c.text {
			t.Errorf("text of %q: %q, want %q", c.in, got, c.text)
		}
	}
}

func TestErrorsForOthersNameNoFolders(t *testing.T) {
	for in, want := range map[string]string{
		"no /home/anna/.pooled/models/x/Model-Q8_0.gguf": "no Model-Q8_0.gguf",
		`open "/a/b c": permission denied`:               `open "b c": permission denied`,
		`open C:\Users\anna\m.gguf: gone`:                "open m.gguf: gone",
		"open /a/b: gone, /c/d too":                      "open b: gone, d too",
		"5 tok/s and 3/4 of 12/12 layers":                "5 tok/s and 3/4 of 12/12 layers",
	} {
		c := &core{}
		c.send("x", "ai-error", map[string]any{"message": in})
		if got := c.effects[0].(send).msg["message"]; got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// TestRulesNameTheirSenders pins who may send what: a new message must be put here on purpose.
func TestRulesNameTheirSenders(t *testing.T) {
	want := map[who]string{
		anyone:   "bye hello",
		member:   "ai-ask ai-stop pledge",
		chained:  "ai-error ai-progress ai-ready",
		fromHost: "ai-busy ai-degraded ai-gendone ai-genstart ai-hostprog ai-inv-req ai-layers ai-load ai-out ai-ready-all ai-redeal ai-reset ai-start-failed ai-token ai-wait roster",
	}
	got := make(map[who]map[string]bool)
	for name, r := range rules {
		if got[r.from] == nil {
			got[r.from] = make(map[string]bool)
		}
		got[r.from][name] = true
		if r.from == fromHost && r.to&toHost != 0 {
			t.Errorf("%s: the host takes a host's message", name)
		}
		if r.from == chained && r.to != toHost {
			t.Errorf("%s: only the host knows its chain", name)
		}
	}
	for from, names := range want {
		list := strings.Fields(names)
		for _, n := range list {
			if !got[from][n] {
				t.Errorf("%s is not taken as from %d", n, from)
			}
		}
		if len(got[from]) != len(list) {
			t.Errorf("from %d: %v, want %s", from, got[from], names)
		}
	}
}

func TestVersionWords(t *testing.T) {
	for _, c := range []struct {
		reason string
		v      int
		found  bool
	}{
		{versionBye(Host, "3"), 4, true},
		{versionBye(Worker, "?"), 4, true},
		{"This room speaks protocol 7, this tab 4. Reload.", 7, true},
		{"the host speaks room protocol 5, this device 4", 5, true},
		{"the room is full (64 devices)", 0, false},
		{"protocol 99999999, this device 4", 0, false},
	} {
		if v, found := versionOfBye(c.reason); v != c.v || found != c.found {
			t.Errorf("%q: got %d, %v", c.reason, v, found)
		}
	}
}

// FuzzMessage reads arbitrary control messages: nothing panics, and what comes out holds its limits.
func FuzzMessage(f *testing.F) {
	for name := range rules {
		f.Add(name, []byte(`{"v":4,"name":"x","meta":{"contribGB":3},"by":{"x":"0–3"},"members":[{"id":"a"}],"range":[0,4],"api":1,"rid":"r","messages":[{"role":"user","text":"t"}],"params":{"stop":["a"]}}`))
		f.Add(name, []byte(`{"meta":[],"by":[],"members":{},"range":"x","params":3,"ctx":1e308,"out":{"a":5}}`))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		var m map[string]any
		if json.Unmarshal(data, &m) != nil {
			return
		}
		r, known := rules[name]
		if !known {
			return
		}
		switch msg := r.read(fields(m)).(type) {
		case msgRoster:
			for _, l := range msg.members {
				if l.name == "" && l.id == "" || utf8.RuneCountInString(l.name) > maxName {
					t.Errorf("listed %+v", l)
				}
			}
		case msgLoad:
			if msg.hi < msg.lo || msg.lo < 0 {
				t.Errorf("range %d to %d", msg.lo, msg.hi)
			}
		case msgAsk:
			if msg.api == nil && msg.bad == "" && (msg.text == "" || utf8.RuneCountInString(msg.text) > maxAsk) {
				t.Errorf("asked %d characters", len(msg.text))
			}
			if msg.api != nil && (len(msg.api.messages) == 0 || msg.api.params.maxTokens < 1) {
				t.Errorf("api ask %+v", msg.api)
			}
		case msgHello:
			if b := msg.meta.pledgeBytes(); b < 0 || b > maxPledgeGB<<30 {
				t.Errorf("pledge of %d bytes", b)
			}
		}
		_ = fmt.Sprint(m)
	})
}
