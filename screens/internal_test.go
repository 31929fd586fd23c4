package screens

import (
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2/terminfo"

	"pooled/session"
	"pooled/widgets"
)

func TestLookFrom(t *testing.T) {
	utf := map[string]string{"TERM": "xterm-256color", "LANG": "en_US.UTF-8"}
	cases := []struct {
		name string
		env  map[string]string
		goos string
		want widgets.Look
	}{
		{"plain", nil, "linux", widgets.Look{Color: true}},
		{"NO_COLOR", map[string]string{"NO_COLOR": "1"}, "linux", widgets.Look{}},
		{"NO_COLOR empty does not count", map[string]string{"NO_COLOR": ""}, "linux", widgets.Look{Color: true}},
		{"NO_COLOR wins over FORCE_COLOR", map[string]string{"NO_COLOR": "1", "FORCE_COLOR": "1"}, "linux", widgets.Look{}},
		{"FORCE_COLOR=0", map[string]string{"FORCE_COLOR": "0"}, "linux", widgets.Look{}},
		{"CLICOLOR=0", map[string]string{"CLICOLOR": "0"}, "linux", widgets.Look{}},
		{"a dumb terminal", map[string]string{"TERM": "dumb"}, "linux", widgets.Look{}},
		{"a dumb terminal, forced", map[string]string{"TERM": "dumb", "CLICOLOR_FORCE": "1"}, "linux", widgets.Look{Color: true}},
		{"truecolor", map[string]string{"COLORTERM": "truecolor"}, "linux", widgets.Look{Color: true, True: true}},
		{"24bit", map[string]string{"COLORTERM": "24bit"}, "linux", widgets.Look{Color: true, True: true}},
		{"theme", map[string]string{"POOLED_THEME": "light"}, "linux", widgets.Look{Color: true, Light: true}},
		{"theme wins over COLORFGBG", map[string]string{"POOLED_THEME": "dark", "COLORFGBG": "0;15"}, "linux", widgets.Look{Color: true}},
		{"COLORFGBG light", map[string]string{"COLORFGBG": "0;default;15"}, "linux", widgets.Look{Color: true, Light: true}},
		{"COLORFGBG dark", map[string]string{"COLORFGBG": "15;0"}, "linux", widgets.Look{Color: true}},
		{"the Linux console", map[string]string{"TERM": "linux"}, "linux", widgets.Look{Color: true, ASCII: true}},
		{"no locale", map[string]string{"LANG": ""}, "linux", widgets.Look{Color: true, ASCII: true}},
		{"LC_ALL wins", map[string]string{"LC_ALL": "C", "LANG": "en_US.UTF-8"}, "linux", widgets.Look{Color: true, ASCII: true}},
		{"no locale on a Mac", map[string]string{"LANG": ""}, "darwin", widgets.Look{Color: true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := LookFrom(func(name string) string {
				if v, ok := c.env[name]; ok {
					return v
				}
				return utf[name]
			}, c.goos)
			if *got != c.want {
				t.Errorf("got %+v, want %+v", *got, c.want)
			}
		})
	}
}

func TestNoPausesInTerminalDescriptions(t *testing.T) {
	info, err := terminfo.LookupTerminfo("vt100")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(info.SetCursor, "$<") {
		t.Fatalf("vt100 moves the cursor with %q, the test expects a pause in it", info.SetCursor)
	}
	got := unpadded(info)
	if strings.Contains(got.SetCursor+got.Clear, "$<") || !strings.HasPrefix(info.SetCursor, got.SetCursor) || got.Name != "vt100" {
		t.Errorf("without pauses %q and %q", got.SetCursor, got.Clear)
	}
}

func TestChatCommand(t *testing.T) {
	for in, want := range map[string][2]string{
		"/clear": {"clear", ""}, "/Think  on ": {"think", "on"}, "/?": {"?", ""}, "/foo bar": {"foo", "bar"},
		"/etc/hosts?": {}, "/2": {}, "/": {}, "hello /clear": {}, "/é": {}, "": {},
	} {
		if word, arg := chatCommand(in); word != want[0] || arg != want[1] {
			t.Errorf("%q: %q and %q, want %q", in, word, arg, want)
		}
	}
}

func TestFormats(t *testing.T) {
	for in, want := range map[int]string{0: "0", 999: "999", 1204: "1,204", 1234567: "1,234,567"} {
		if got := thousands(in); got != want {
			t.Errorf("%d: %q, want %q", in, got, want)
		}
	}
}

// two is a room of two devices and a chat client.
func two(phase session.Phase) *session.State {
	return &session.State{Role: session.Host, Phase: phase, Code: "FEA-Q38", Self: "h", SignalUp: true,
		Model: session.Model{Key: "m", Label: "Model 1B", Layers: 10},
		Peers: []session.Peer{{ID: "h", Name: "host", Kind: session.KindComputer, Self: true, Host: true, Lo: 0, Hi: 4, Ready: true},
			{ID: "c", Name: "talks", Kind: session.KindAPI},
			{ID: "j", Name: "joiner", Kind: session.KindPhone, Lo: 4, Hi: 10, LoadPct: 30, RTTms: 7.6}},
		Deal: &session.Deal{Shares: []session.Share{{Peer: "h", Lo: 0, Hi: 4}, {Peer: "j", Name: "joiner", Lo: 4, Hi: 10}}}}
}

func TestRosterRows(t *testing.T) {
	cases := []struct {
		name   string
		change func(st *session.State)
		want   string // letter, holds, state of each row
	}{
		{"online", nil, "a 0-3 +E+H here| chat only|b 4-9 8 ms"},
		{"loading", func(st *session.State) { st.Phase = session.Loading }, "a 0-3 +E+H loaded| chat only|b 4-9 loading 30%"},
		{"relayed", func(st *session.State) { st.Peers[2].Path = "relay" }, "a 0-3 +E+H here| chat only|b 4-9 8 ms, relay"},
		{"left out", func(st *session.State) { st.Peers[2].Lo, st.Peers[2].Hi, st.Peers[2].Out = 0, 0, session.OutLate },
			"a 0-3 +E+H here| chat only|b next re-deal"},
		{"not needed", func(st *session.State) { st.Peers[2].Lo, st.Peers[2].Hi, st.Peers[2].Out = 0, 0, session.OutUnneeded },
			"a 0-3 +E+H here| chat only|b not needed"},
		{"no time yet", func(st *session.State) { st.Peers[2].RTTms = 0 }, "a 0-3 +E+H here| chat only|b 4-9 joined"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			st := two(session.Online)
			if c.change != nil {
				c.change(st)
			}
			var rows []string
			for _, r := range rosterModel(st).Rows {
				var cells []string
				for _, i := range []int{0, 4, 5} {
					if r.Cells[i] != "" || i == 0 {
						cells = append(cells, string(r.Cells[i]))
					}
				}
				rows = append(rows, strings.Join(cells, " "))
			}
			if got := strings.Join(rows, "|"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLayerRuns(t *testing.T) {
	st := two(session.Loading)
	got := layerRuns(st, false)
	if len(got) != 2 || got[0].State != widgets.RunHeld || got[1].State != widgets.RunLoading || got[1].Percent != 30 ||
		got[1].Letter != "b" {
		t.Errorf("loading: %+v", got)
	}
	st = two(session.Online)
	st.Answering = true
	if got := layerRuns(st, true); got[0].Letter != "A" || !got[0].Working || got[0].Dim || !got[1].Dim || got[1].Working {
		t.Errorf("own and working: %+v", got)
	}
	st.Peers = st.Peers[:2]
	if got := layerRuns(st, false); got[1].State != widgets.RunLost || got[1].Working {
		t.Errorf("lost: %+v", got)
	}
	st = two(session.Online)
	st.Deal = nil
	if got := layerRuns(st, false); len(got) != 2 || got[1].Lo != 4 || got[1].Hi != 10 {
		t.Errorf("without a deal: %+v", got)
	}
}

func TestJournal(t *testing.T) {
	st := two(session.Online)
	j := &journal{}
	up, down := session.SignalChanged{Up: true, Server: "s"}, session.SignalChanged{Why: "w"}
	j.take([]session.Event{up, down, up, up}, st, time.Time{})
	if n := len(j.lines); n != 2 {
		t.Errorf("%d lines for a loss and a return, want 2", n)
	}
	for range 2 * widgets.MaxLogLines {
		j.take([]session.Event{session.RoomOnline{}}, st, time.Time{})
	}
	if n := len(j.lines); n != widgets.MaxLogLines {
		t.Errorf("%d lines kept, want %d", n, widgets.MaxLogLines)
	}
}

func TestAnswerFoot(t *testing.T) {
	st := two(session.Online)
	cases := []struct {
		name string
		e    session.Exchange
		want widgets.Text
	}{
		{"of the seed", session.Exchange{Reason: session.DoneStop, Stats: session.Stats{Tokens: 10, PerSec: 61.5, ReusedTokens: 34,
			PromptTokens: 60}}, "room FEA-Q38 · Model 1B · 10 tokens · 61.5 tok/s · 34 of 60 prompt tokens reused"},
		{"nothing reused", session.Exchange{Reason: session.DoneStop, Stats: session.Stats{Tokens: 1, PerSec: 56.7,
			PromptTokens: 24}}, "room FEA-Q38 · Model 1B · 1 token · 56.7 tok/s · 24 prompt tokens"},
		{"stopped", session.Exchange{Reason: session.DoneStopped, Stats: session.Stats{Tokens: 3}},
			"room FEA-Q38 · Model 1B · 3 tokens (stopped)"},
		{"cut", session.Exchange{Reason: session.DoneLength, Stats: session.Stats{Tokens: 3}},
			"room FEA-Q38 · Model 1B · 3 tokens (cut at --max-tokens)"},
		{"full", session.Exchange{Reason: session.DoneContext, Stats: session.Stats{Tokens: 3}},
			"room FEA-Q38 · Model 1B · 3 tokens (the room's context is full)"},
		{"failed", session.Exchange{Reason: session.DoneFailed, Err: "joiner left"}, "the answer failed: joiner left"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got, _ := answerFoot(st, &c.e); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestChatEntriesPutNotesInTheirPlace(t *testing.T) {
	st := two(session.Online)
	st.Chat = []session.Exchange{{ID: 3, Asker: "h", Question: "one", Text: "1", Done: true},
		{ID: 5, Asker: "c", Name: "talks", Question: "", Text: "2", Done: true}}
	v := &chatView{}
	v.say(&session.State{}, false, "at first")
	v.say(&session.State{Chat: st.Chat[:1]}, true, "after one")
	v.say(st, false, "after two")
	v.asked = "three"
	var got []string
	ids := map[int64]bool{}
	for _, e := range chatEntries(st, v) {
		got = append(got, string(e.Who+":"+e.Text))
		ids[e.ID] = true
	}
	want := ":at first|you:one|Model:1|:after one|talks:(this screen may not see the question)|Model:2|:after two|you:three"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("got %q, want %q", s, want)
	}
	if len(ids) != len(got) {
		t.Errorf("%d ids for %d entries", len(ids), len(got))
	}
	for range 3 * maxNotes {
		v.say(st, false, "more")
	}
	if len(v.notes) != maxNotes {
		t.Errorf("%d notes kept, want %d", len(v.notes), maxNotes)
	}
}

func TestLogMergesNativeLinesByTime(t *testing.T) {
	at := time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)
	st := &session.State{Log: []session.LogLine{{At: at, Text: "one"}, {At: at.Add(2 * time.Second), Level: session.Error, Text: "three"}}}
	j := &journal{}
	j.take([]session.Event{native{session.Notice{Text: "two"}, at.Add(time.Second)}, session.RoomOnline{}, session.Lap{}}, st,
		at.Add(3*time.Second))
	m := logModel(st, j.lines, time.UTC)
	var got []string
	for i, l := range m.Lines {
		got = append(got, string(l.When+" "+l.Text))
		if i > 0 && l.ID <= m.Lines[i-1].ID {
			t.Errorf("id %d after %d", l.ID, m.Lines[i-1].ID)
		}
	}
	want := "13:00:00 one|13:00:01 two|13:00:02 three|13:00:03 the room is online"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("got %q, want %q", s, want)
	}
	if m.Lines[2].Role != widgets.Bad {
		t.Error("an error has the role of other lines")
	}
}

// Key hints were once cut inside a word on narrow terminals.
func TestKeyHintsAreWholeAndEndWithTheWayOut(t *testing.T) {
	for _, role := range []session.Role{session.Host, session.Worker, session.Asker} {
		p := New(role)
		p.Build(BuildOptions{Look: &widgets.Look{}, Now: time.Now})
		for _, phase := range []session.Phase{session.Waiting, session.Loading, session.Online, session.Degraded} {
			st := two(phase)
			st.Role = role
			p.Apply(st, nil)
			for _, where := range []string{devicesName, layersName, chatName, promptName, logName} {
				all := hints(p.Keys(), where)
				for _, w := range []int{58, 80, 110} {
					got := widgets.FitHints(all, w-2)
					n := -2
					for _, h := range got {
						n += 2 + widgets.Width(h.Key) + 1 + widgets.Width(h.Does)
					}
					if n > w-2 || len(got) < 2 || got[0] != all[0] || got[len(got)-1] != all[len(all)-1] {
						t.Errorf("%s %s %s at %d: %v of %v", role, phase, where, w, got, all)
					}
				}
			}
		}
	}
}

// Bindings that are on the help page have a name, and two that can be on at once don't share a key in one place.
func TestBindingsAreDistinct(t *testing.T) {
	for _, role := range []session.Role{session.Host, session.Worker, session.Asker} {
		p := New(role)
		p.Build(BuildOptions{Look: &widgets.Look{}, Now: time.Now})
		for _, phase := range []session.Phase{session.Waiting, session.Online} {
			st := two(phase)
			st.Role = role
			p.Apply(st, nil)
			for _, where := range []string{devicesName, layersName, chatName, promptName, logName} {
				seen := map[Key]widgets.Text{}
				for _, b := range p.Keys() {
					if b.Name == "" || b.Help == "" && b.Hint == "" {
						t.Errorf("%s: binding %+v has no name or no sentence", role, b.Keys)
					}
					if !b.active(where) {
						continue
					}
					for _, k := range b.Keys {
						if other, ok := seen[k]; ok {
							t.Errorf("%s %s in %s: %s does %q and %q", role, phase, where, b.Name, other, b.Help)
						}
						seen[k] = b.Help
					}
				}
			}
		}
	}
}

func TestAdviceOfAGuestSaysWhyItHasNoLayers(t *testing.T) {
	for out, want := range map[session.Out]widgets.Text{
		session.OutUnneeded: "the others hold all of them",
		session.OutSmall:    "it lends too little for one: see --gb",
		session.OutLate:     "the host re-deals to include this device",
	} {
		st := &session.State{Role: session.Worker, Phase: session.Guest, Peers: []session.Peer{{Self: true, Out: out}}}
		if got := advice(st); got != want {
			t.Errorf("%s: got %q, want %q", out, got, want)
		}
	}
}
