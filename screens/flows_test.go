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
)

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

// The count was the one of the moment at which it was asked: a client that left since was still in it.
func TestQuestionAboutGuestsFollowsTheRoom(t *testing.T) {
	st := room()
	client := session.Peer{ID: "c", Name: "pooled chat", Kind: session.KindAPI}
	st.Peers = append(st.Peers, client)
	d := screenstest.New(t, st, screens.RunOptions{})
	d.Type("q")
	d.Shows("close the room for 2 devices? y/n")
	d.Emit(func(st *session.State) { st.Peers = st.Peers[:2] }, session.PeerLeft{Peer: client.ID, Name: client.Name})
	d.Shows("close the room for 1 device? y/n")
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
		d := screenstest.New(t, worker(), screens.RunOptions{Closed: func(reason string) {
			t.Errorf("told %q after leaving", reason)
		}})
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
			said := ""
			d := screenstest.New(t, worker(), screens.RunOptions{Closed: func(reason string) { said = reason }})
			d.Fake.End(c.problem)
			exit, err := d.Ended()
			if said != "closed" {
				t.Errorf("told %q, want the room's reason", said)
			}
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
