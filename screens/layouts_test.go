package screens_test

import (
	"testing"

	"github.com/gdamore/tcell/v2"

	"pooled/screens"
	"pooled/screens/screenstest"
	"pooled/session"
	"pooled/widgets"
)

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
