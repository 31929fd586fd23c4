package screens_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"

	"pooled/screens"
	"pooled/screens/screenstest"
	"pooled/session"
	"pooled/widgets"
)

const gb = 1 << 30

// room is an online room of two devices, seen by the host.
func room() session.State {
	return session.State{
		Role: session.Host, Phase: session.Online, Code: "FEA-Q38", Server: "127.0.0.1:9000", SignalUp: true,
		Self: "h1", SelfName: "spark-host", HostName: "spark-host",
		Model:  session.Model{Key: "qwen3-1.7b", Label: "Qwen3 1.7B · Q8", Layers: 28},
		Device: session.Device{GPU: "NVIDIA GB10", Backend: "Vulkan", PledgeBytes: 2 * gb, UsedBytes: gb / 2},
		Peers: []session.Peer{
			{ID: "h1", Name: "spark-host", Kind: session.KindComputer, GPU: "NVIDIA GB10", PledgeBytes: 2 * gb, Self: true,
				Host: true, Lo: 0, Hi: 6, Ready: true},
			{ID: "j2", Name: "spark-join2", Kind: session.KindComputer, GPU: "RTX 5070", PledgeBytes: 6 * gb, Lo: 6, Hi: 28,
				Ready: true, RTTms: 8, Path: "direct"},
		},
		Deal: &session.Deal{Epoch: 1, Ctx: 16384, Shares: []session.Share{
			{Peer: "h1", Name: "spark-host", Lo: 0, Hi: 6, Held: 400 << 20},
			{Peer: "j2", Name: "spark-join2", Lo: 6, Hi: 28, Held: 1300 << 20}}},
		Log: []session.LogLine{
			{At: screenstest.At, Level: session.Info, Text: "spark-join2 is in the room"},
			{At: screenstest.At.Add(3e9), Level: session.Info, Text: "spark-join2 holds layers 6-27 (1.3 GB in 3.5 s)"}},
		TokPerSec: 56.4, Lap: &session.Lap{TotalMs: 10.4, HostMs: 9.5, Hops: 2},
		Context:  session.Context{Used: 1204, Max: 16384},
		OpenedAt: screenstest.At.Add(-800e9), OnlineAt: screenstest.At.Add(-723e9),
		Chat: []session.Exchange{{ID: 1, Asker: "h1", Name: "spark-host",
			Question: "Name the largest planet in our solar system. One sentence.",
			Text:     "The largest planet in our solar system is Jupiter.", Done: true, Reason: session.DoneStop,
			Stats: session.Stats{Tokens: 10, PromptTokens: 24, FirstSec: 0.21, PerSec: 56.7}}},
	}
}

// running gives the room an answer that is being written.
func running(text, thinking string) func(*session.State) {
	return func(st *session.State) {
		st.Answering = true
		st.Answer = &session.Exchange{ID: 2, Asker: st.Self, Name: st.SelfName, Question: "Why?", Text: text,
			Thinking: thinking}
	}
}

// done finishes the running answer.
func done(reason session.DoneReason, stats session.Stats) func(*session.State) {
	return func(st *session.State) {
		e := *st.Answer
		e.Done, e.Reason, e.Stats = true, reason, stats
		st.Chat = append(slices.Clone(st.Chat), e)
		st.Answer, st.Answering = nil, false
	}
}

func wantCalls(t *testing.T, d *screenstest.Driver, want ...string) {
	t.Helper()
	if got := d.Fake.Calls(); !slices.Equal(got, want) {
		t.Errorf("commands %q, want %q", got, want)
	}
}

func wantEnd(t *testing.T, d *screenstest.Driver, want int) {
	t.Helper()
	if exit, err := d.Ended(); exit != want || err != nil {
		t.Errorf("exit %d, error %v, want %d and none", exit, err, want)
	}
}

func asker() session.State {
	st := room()
	st.Role, st.Self, st.SelfName, st.HostName = session.Asker, "a3", "pooled chat k3xz", "spark-host"
	st.Peers = append(st.Peers, session.Peer{ID: "a3", Name: "pooled chat k3xz", Kind: session.KindAPI, Self: true})
	st.Peers[0].Self = false
	st.Chat, st.Log, st.Deal, st.Device = nil, nil, nil, session.Device{}
	return st
}

func worker() session.State {
	st := room()
	st.Role, st.Self, st.SelfName = session.Worker, "j2", "spark-join2"
	st.Peers[0].Self, st.Peers[0].RTTms, st.Peers[0].Path = false, 8, "direct"
	st.Peers[1].Self, st.Peers[1].RTTms, st.Peers[1].Path = true, 0, ""
	st.Device = session.Device{GPU: "RTX 5070", Backend: "Vulkan", PledgeBytes: 6 * gb, UsedBytes: 1300 << 20,
		PledgeWhy: "11.3 GB free, less 1.5 GB, rounded down"}
	st.Chat, st.Passes, st.Lap = nil, 390, nil
	return st
}

func TestLayouts(t *testing.T) {
	waiting := room()
	waiting.Phase, waiting.Deal, waiting.Chat, waiting.TokPerSec, waiting.Lap = session.Waiting, nil, nil, 0, nil
	waiting.Context = session.Context{}
	for i := range waiting.Peers {
		waiting.Peers[i].Lo, waiting.Peers[i].Hi, waiting.Peers[i].Ready = 0, 0, false
	}
	loads := room()
	loads.Phase, loads.Chat, loads.LoadPct, loads.LoadingAt = session.Loading, nil, 100, screenstest.At.Add(-7e9)
	loads.Peers[1].Ready, loads.Peers[1].LoadPct = false, 42
	joins := worker()
	joins.Phase, joins.LoadPct, joins.Peers[1].Ready = session.Loading, 61, false
	chats := asker()
	chats.Chat = room().Chat
	chats.Chat[0].Asker = "a3"
	cases := []struct {
		name string
		st   session.State
		w, h int
		keys []tcell.Key
	}{
		{"host-120x32", room(), 120, 32, nil},
		{"host-80x24", room(), 80, 24, nil},
		{"host-60x16", room(), 60, 16, nil},
		{"host-60x16-chat", room(), 60, 16, []tcell.Key{tcell.KeyTab, tcell.KeyTab, tcell.KeyTab}},
		{"host-help-100x30", room(), 100, 30, []tcell.Key{tcell.KeyF1}},
		{"host-waiting-80x24", waiting, 80, 24, nil},
		{"host-loading-120x32", loads, 120, 32, nil},
		{"join-82x20", worker(), 82, 20, nil},
		{"join-loading-80x24", joins, 80, 24, nil},
		{"join-60x16", worker(), 60, 16, nil},
		{"chat-80x24", chats, 80, 24, nil},
		{"chat-60x16", chats, 60, 16, nil},
		{"tiny-58x16", room(), 58, 16, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := screenstest.NewSize(t, c.st, screens.RunOptions{Invite: "pooled join FEA-Q38"}, c.w, c.h)
			d.Press(c.keys...)
			d.Golden(c.name)
		})
	}
}

func TestAskAndStream(t *testing.T) {
	d := screenstest.New(t, room(), screens.RunOptions{})
	d.Type("cWhy?")
	d.Shows(">>> Why?")
	d.Type("\n")
	wantCalls(t, d, "ask Why?")
	d.Shows("waiting for the room", "(answering)")
	d.Hides(">>>")
	d.Emit(running("", ""), session.AnswerStarted{ID: 2, Asker: "h1", Text: "Why?"})
	d.Shows("reading the conversation")
	d.Hides("waiting for the room")
	d.Emit(running("Bec", ""), session.AnswerText{ID: 2, Text: "Bec"})
	d.Emit(running("Because 😀.", ""), session.AnswerText{ID: 2, Text: "ause 😀."})
	d.Shows("Qwen3     Because 😀.", "answering")
	d.Hides("\uFFFD", "reading")
	d.Emit(done(session.DoneStop, session.Stats{Tokens: 10, PromptTokens: 60, ReusedTokens: 34, PerSec: 61.5}),
		session.AnswerDone{ID: 2, Reason: session.DoneStop})
	d.Shows("10 tokens · 61.5 tok/s · 34 of 60", "prompt tokens reused", ">>>")
}

func TestTypedDuringAnAnswerIsTheNextLine(t *testing.T) {
	d := screenstest.New(t, room(), screens.RunOptions{})
	d.Type("cWhy?\n")
	d.Emit(running("Because", ""), session.AnswerStarted{ID: 2, Asker: "h1"})
	d.Type("And then?\n")
	wantCalls(t, d, "ask Why?")
	d.Shows("(answering) And then?")
	d.Emit(done(session.DoneStop, session.Stats{Tokens: 1}), session.AnswerDone{ID: 2})
	d.Shows(">>> And then?")
	d.Type("\n")
	wantCalls(t, d, "ask Why?", "ask And then?")
}

// A prompt was once drawn over the answer by a resize or a key.
func TestNoPromptWhileAnAnswerStreams(t *testing.T) {
	d := screenstest.New(t, asker(), screens.RunOptions{})
	d.Type("Why?\n")
	d.Emit(running("One two", ""), session.AnswerStarted{ID: 2, Asker: "a3"})
	for _, size := range [][2]int{{110, 30}, {60, 16}, {80, 24}} {
		d.Resize(size[0], size[1])
		d.Press(tcell.KeyDown)
		d.Shows("Qwen3     One two")
		d.Hides(">>>")
	}
	d.Emit(running("One two three", ""), session.AnswerText{ID: 2, Text: " three"})
	d.Shows("One two three")
}

func TestCtrlCStopsClearsAsks(t *testing.T) {
	d := screenstest.New(t, room(), screens.RunOptions{})
	d.Type("c")
	d.Emit(running("Because", ""), session.AnswerStarted{ID: 2, Asker: "h1"})
	d.Type("half a line")
	d.Press(tcell.KeyCtrlC)
	wantCalls(t, d, "stop")
	d.Shows("half a line")
	d.Emit(done(session.DoneStopped, session.Stats{Tokens: 3}), session.AnswerDone{ID: 2, Reason: session.DoneStopped})
	d.Shows("3 tokens (stopped)")
	d.Press(tcell.KeyCtrlC)
	d.Hides("half a line")
	d.Press(tcell.KeyCtrlC)
	d.Shows("close the room for 1 device? y/n")
	d.Type("n")
	d.Hides("y/n")
	wantCalls(t, d, "stop")
	d.Press(tcell.KeyCtrlC)
	d.Type("y")
	wantEnd(t, d, 0)
	wantCalls(t, d, "stop", "close")
}

func TestCtrlCTwiceExitsAtOnce(t *testing.T) {
	alone := room()
	alone.Peers = alone.Peers[:1]
	for name, st := range map[string]session.State{"asked about guests": room(), "leaving alone": alone, "chat": asker(),
		"join": worker()} {
		t.Run(name, func(t *testing.T) {
			d := screenstest.New(t, st, screens.RunOptions{})
			d.Fake.On("close", func(string) {}) // the room takes its time
			d.Press(tcell.KeyCtrlC, tcell.KeyCtrlC)
			wantEnd(t, d, session.ExitInterrupted)
		})
	}
}

func TestQuit(t *testing.T) {
	t.Run("join leaves at once", func(t *testing.T) {
		d := screenstest.New(t, worker(), screens.RunOptions{})
		d.Type("q")
		wantEnd(t, d, 0)
		wantCalls(t, d, "close")
	})
	t.Run("q in the prompt is a letter", func(t *testing.T) {
		d := screenstest.New(t, asker(), screens.RunOptions{})
		d.Type("q?z")
		d.Shows(">>> q?z")
		wantCalls(t, d)
	})
	t.Run("exit, bye and ctrl-d leave a chat", func(t *testing.T) {
		for _, line := range []string{"/exit\n", "/bye\n", "/QUIT\n"} {
			d := screenstest.New(t, asker(), screens.RunOptions{})
			d.Type(line)
			wantEnd(t, d, 0)
		}
		d := screenstest.New(t, asker(), screens.RunOptions{})
		d.Press(tcell.KeyCtrlD)
		wantEnd(t, d, 0)
	})
	t.Run("exit in a host's chat goes back to the room", func(t *testing.T) {
		d := screenstest.New(t, room(), screens.RunOptions{})
		d.Type("c/exit\n")
		wantCalls(t, d)
		d.Type("r")
		wantCalls(t, d, "redeal")
	})
	t.Run("sigterm", func(t *testing.T) {
		d := screenstest.New(t, room(), screens.RunOptions{})
		d.Stop()
		wantEnd(t, d, 0)
		wantCalls(t, d, "close")
	})
	t.Run("a room that can't be closed", func(t *testing.T) {
		d := screenstest.New(t, worker(), screens.RunOptions{})
		d.Fake.Fail("close", session.ErrClosed)
		d.Type("q")
		wantEnd(t, d, 0)
	})
}

func TestRoomClosed(t *testing.T) {
	problem := &session.Problem{Code: "hostgone", What: "room FEA-Q38 is over", Why: "the host left",
		Exit: session.ExitNoRoom}
	for name, c := range map[string]struct {
		problem *session.Problem
		exit    int
	}{"for a reason": {problem, session.ExitNoRoom}, "wanted": {nil, 0}} {
		t.Run(name, func(t *testing.T) {
			d := screenstest.New(t, worker(), screens.RunOptions{})
			d.Fake.End(c.problem)
			exit, err := d.Ended()
			var got *session.Problem
			errors.As(err, &got)
			if exit != c.exit || got != c.problem {
				t.Errorf("exit %d, problem %v, want %d and %v", exit, err, c.exit, c.problem)
			}
		})
	}
}

func TestChatCommands(t *testing.T) {
	cases := []struct {
		line  string
		shows string
		calls []string
	}{
		{"/foo", "/foo is not a command: /help lists them", nil},
		{"/foo bar", "/foo is not a command", nil},
		{"/etc/hosts?", "/etc/hosts?", []string{"ask /etc/hosts?"}},
		{"/2", "/2", []string{"ask /2"}},
		{"/think", "thinking is on", []string{"think on"}},
		{"/think on", "thinking is on", []string{"think on"}},
		{"/think off", "thinking is off", []string{"think off"}},
		{"/think hard", "use /think, /think on or /think off", nil},
		{"/clear", "the conversation starts over", []string{"clear"}},
		{"/reset", "the conversation starts over", []string{"clear"}},
		{"/help", "/exit, /bye", nil},
		{"/?", "/think [on|off]", nil},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			d := screenstest.New(t, asker(), screens.RunOptions{})
			d.Type(c.line + "\n")
			d.Shows(c.shows)
			wantCalls(t, d, c.calls...)
		})
	}
}

func TestRefusals(t *testing.T) {
	d := screenstest.New(t, asker(), screens.RunOptions{})
	d.Fake.Fail("ask", session.ErrNotOnline)
	d.Type("Why?\n")
	d.Shows("not asked: the room is not online yet", ">>> Why?")
	d.Fake.Fail("ask", nil)
	d.Type("\n")
	d.Emit(nil, session.AskRefused{Code: "ctx", Why: "17,000 of 16,384 tokens"})
	d.Shows("not taken: 17,000 of 16,384 tokens; /clear starts over", ">>>")
	d.Hides("waiting for the room")
}

func TestPasteIsText(t *testing.T) {
	d := screenstest.New(t, asker(), screens.RunOptions{})
	d.Paste("first line\nsecond [red]line\n")
	d.Shows(">>> first line", "    second [red]line")
	wantCalls(t, d)
	d.Type("third\\\nfourth")
	d.PressAlt(tcell.KeyEnter)
	d.Type("fifth\n")
	wantCalls(t, d, "ask first line\nsecond [red]line\nthird\nfourth\nfifth")
}

func TestScrolledUpStaysWhileAnAnswerGrows(t *testing.T) {
	d := screenstest.New(t, asker(), screens.RunOptions{})
	text := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %d.\n", i)
		}
		return b.String()
	}
	d.Type("Why?\n")
	d.Emit(running(text(60), ""), session.AnswerStarted{ID: 2, Asker: "a3"})
	d.Shows("line 59.")
	d.Hides("below")
	d.Press(tcell.KeyPgUp)
	d.Shows("line 41.", "below")
	before := d.Lines()[1]
	d.Emit(running(text(80), ""), session.AnswerText{ID: 2, Text: "…"})
	if got := d.Lines()[1]; got != before {
		t.Errorf("the first line is %q, was %q", got, before)
	}
	d.Hides("line 79.")
	d.Press(tcell.KeyPgDn, tcell.KeyPgDn, tcell.KeyPgDn)
	d.Shows("line 79.")
	d.Hides("below")
}

func TestThinkingFoldsAndAnswerIsCopiedByKeyOnly(t *testing.T) {
	d := screenstest.New(t, asker(), screens.RunOptions{})
	d.Emit(running("It is \x1b]52;c;aGFjaw==\x07blue.", "sky, light"), session.AnswerStarted{ID: 2, Asker: "a3"})
	d.Shows("Qwen3     thinking", "          sky, light", "          It is blue.")
	d.Press(tcell.KeyEsc)
	d.Type("t")
	d.Shows("thinking (1 line hidden)")
	d.Hides("sky, light")
	if got := d.Clipboard(); got != "" {
		t.Errorf("clipboard %q before the key, want nothing", got)
	}
	d.Type("y")
	if got := d.Clipboard(); got != "It is blue." {
		t.Errorf("clipboard %q, want the answer", got)
	}
}

// Terminal escapes in names once reached the terminal.
func TestNothingFromThePeersReachesTheTerminalRaw(t *testing.T) {
	const evil = "\x1b]52;c;aGFjaw==\x07e\x1b[31mvi\u009b2Jl\x00\u202e[red]\r\n"
	st := room()
	st.Peers[1].Name, st.Peers[1].GPU = evil, evil
	st.Model.Label, st.HostName, st.Code = evil, evil, evil
	st.Log[0].Text = evil
	st.Chat[0].Name, st.Chat[0].Asker, st.Chat[0].Question, st.Chat[0].Text = evil, "j2", evil, evil
	st.Chat[0].Reason, st.Chat[0].Err = session.DoneFailed, evil
	for _, role := range []session.Role{session.Host, session.Worker, session.Asker} {
		st.Role = role
		d := screenstest.NewSize(t, st, screens.RunOptions{Invite: evil}, 120, 32)
		d.Emit(nil, session.AskRefused{Code: "bad", Why: evil})
		d.Shows("evil[red]")
		for _, r := range d.Text() {
			if r != '\n' && (r < ' ' || r >= 0x7f && r <= 0x9f || r == 0x202e) {
				t.Errorf("%s: %U is on the screen", role, r)
			}
		}
		if c := d.Clipboard(); c != "" {
			t.Errorf("%s: clipboard %q, want nothing", role, c)
		}
		for _, row := range d.Styles() {
			for _, cell := range row {
				if fg, _, _ := cell.Decompose(); fg != tcell.ColorDefault {
					t.Fatalf("%s: a cell has the colour %v without colours in the look", role, fg)
				}
			}
		}
	}
}

func TestColourOnlyRepeatsWords(t *testing.T) {
	for _, st := range []session.State{room(), worker(), asker()} {
		plain := screenstest.New(t, st, screens.RunOptions{})
		colour := screenstest.New(t, st, screens.RunOptions{Look: &widgets.Look{Color: true}})
		if plain.Text() != colour.Text() {
			t.Errorf("%s: with colour\n%s\nwithout\n%s", st.Role, colour.Text(), plain.Text())
		}
		n := 0
		for _, row := range colour.Styles() {
			for _, cell := range row {
				if fg, _, _ := cell.Decompose(); fg != tcell.ColorDefault {
					n++
				}
			}
		}
		if n == 0 {
			t.Errorf("%s: no cell has a colour", st.Role)
		}
	}
}

func TestHostWaitsAndStarts(t *testing.T) {
	st := room()
	st.Phase, st.Deal, st.Chat = session.Waiting, nil, nil
	d := screenstest.New(t, st, screens.RunOptions{Chat: true})
	d.Fake.Fail("start", &session.Problem{What: "this room is 1.8 GB short for Qwen3 1.7B",
		Why: "2 devices lend 2.2 GB"})
	d.Shows("2 devices lend 8 GB", "pooled join FEA-Q38", "Enter start")
	d.Hides(">>>")
	d.Press(tcell.KeyEnter)
	d.Shows("not started: this room is 1.8 GB short for Qwen3 1.7B: 2 devices lend 2.2 GB")
	d.Fake.Fail("start", nil)
	d.Press(tcell.KeyEnter)
	d.Hides("not started")
	wantCalls(t, d, "start", "start")
	d.Emit(func(s *session.State) { s.Phase = session.Online }, session.RoomOnline{Epoch: 1})
	d.Type("hello")
	d.Shows(">>> hello") // Chat: the prompt was offered
}

func TestPanesNeverTakeTheKeyboardFromTypedText(t *testing.T) {
	d := screenstest.New(t, room(), screens.RunOptions{})
	d.Type("chalf a question")
	d.Emit(func(s *session.State) { s.Phase = session.Degraded }, session.RoomDegraded{Peer: "j2", Why: "it left"})
	d.Emit(func(s *session.State) { s.Phase = session.Online }, session.RoomOnline{Epoch: 2})
	d.Type("?")
	d.Shows(">>> half a question?")
}

func TestLostDevice(t *testing.T) {
	d := screenstest.NewSize(t, room(), screens.RunOptions{}, 120, 32)
	d.Emit(func(s *session.State) {
		s.Phase, s.Peers = session.Degraded, s.Peers[:1]
	}, session.PeerLeft{Peer: "j2"}, session.RoomDegraded{Peer: "j2"})
	d.Shows("E▐aaaaaa▐!!!!!!!!!!!!!!!!!!!!!!▐H", "! spark-join2 is gone: layers 6-27", "a device left", "Enter re-deal")
}

func TestZoomTabsAndHelp(t *testing.T) {
	d := screenstest.New(t, room(), screens.RunOptions{})
	d.Type("z")
	d.Shows("DEVICE")
	d.Hides("┌", "Jupiter")
	d.Type("z")
	d.Shows("┌ devices 2", "Jupiter")
	d.Press(tcell.KeyBacktab)
	d.Type("z")
	d.Shows("spark-join2 is in the room")
	d.Hides("DEVICE")
	d.Type("z?")
	d.Shows("┌ keys", "Alt-Enter", "any key back")
	d.Type(" ")
	d.Shows("┌ log")
	d.Resize(60, 16)
	d.Shows("1 devices  2 layers  3 chat  4 log")
	d.Type("2")
	d.Shows("E▐aa")
	d.Hides("zoom")
	d.Resize(59, 16)
	d.Shows("pooled needs at least 60 x 16 cells")
	d.Resize(60, 16)
	d.Shows("E▐aa")
}
