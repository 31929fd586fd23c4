package usage

import (
	"strings"
	"testing"

	"pooled/session"
)

func TestGB(t *testing.T) {
	for in, want := range map[int64]string{124 << 30 / 10: "12 GB", 625 << 30 / 100: "6.3 GB", 2 << 30: "2 GB",
		997 << 30 / 100: "10 GB", 0: "0 GB", 64 << 30: "64 GB"} {
		if got := GB(in); got != want {
			t.Errorf("GB(%d) = %q, want %q", in, got, want)
		}
	}
	if a, b := LayerRange(5, 6), LayerRange(6, 28); a != "5" || b != "6-27" {
		t.Errorf("ranges %q and %q, want 5 and 6-27", a, b)
	}
}

func TestEventLine(t *testing.T) {
	st := &session.State{Role: session.Host, Self: "h", Peers: []session.Peer{
		{ID: "h", Name: "host", Self: true, Host: true, Hi: 4}, {ID: "c", Name: "talks", Kind: session.KindAPI},
		{ID: "j", Name: "joiner", Lo: 4, Hi: 10},
	}}
	for _, c := range []struct {
		ev    session.Event
		want  string
		level session.Level
	}{
		{session.RoomOpened{Code: "FEA-Q38", Server: "127.0.0.1:9000"}, "room FEA-Q38 is open at 127.0.0.1:9000", session.Info},
		{session.RoomOnline{}, "the room is online", session.Info},
		{session.PeerJoined{Peer: "h", Name: "host"}, "", session.Info},
		{session.PeerJoined{Peer: "c", Name: "talks", Kind: session.KindAPI}, "talks is in the room to chat", session.Info},
		{session.PeerJoined{Peer: "j", Name: "joiner", Kind: session.KindPhone, PledgeBytes: 2 << 30},
			"joiner is in the room (phone, lends 2 GB)", session.Info},
		{session.PeerJoined{Peer: "j", Name: "joiner", GPU: "RTX 5070", PledgeBytes: 2 << 30},
			"joiner is in the room (RTX 5070, lends 2 GB)", session.Info},
		{session.PeerLeft{Name: "joiner", Reason: "left"}, "joiner left", session.Info},
		{session.PeerLeft{Name: "joiner", Reason: "no answer"}, "joiner left: no answer", session.Info},
		{session.PeerRefused{Why: "protocol 5"}, "a device was turned away: protocol 5", session.Info},
		{session.PeerReady{Peer: "j"}, "joiner holds layers 4-9", session.Info},
		{session.PeerReady{Peer: "c"}, "", session.Info},
		{session.DealMade{Shares: []session.Share{{Name: "host", Lo: 0, Hi: 4}, {Name: "joiner", Lo: 4, Hi: 10}},
			LeftOut: map[session.PeerID]session.Out{"x": session.OutSmall}},
			"layers dealt: host 0-3, joiner 4-9 (1 device left out)", session.Info},
		{session.SignalChanged{Up: true, Server: "s"}, "signaling is up at s", session.Info},
		{session.SignalChanged{Why: "gone"}, "signaling is down (links stay up): gone", session.Error},
		{session.Lap{}, "", session.Info},
		{session.Notice{Level: session.Hint, Text: "x"}, "x", session.Hint},
	} {
		if got, level := EventLine(c.ev, st); got != c.want || level != c.level {
			t.Errorf("%T: %q (%s), want %q (%s)", c.ev, got, level, c.want, c.level)
		}
	}
	st.Role, st.SelfName = session.Worker, "linux-abc"
	if got, _ := EventLine(session.RoomOpened{Code: "FEA-Q38", Host: "anna"}, st); got != "reached room FEA-Q38 of anna as linux-abc" {
		t.Errorf("worker: %q", got)
	}
}

func TestTrustSaysWhoSeesWhat(t *testing.T) {
	for _, role := range []session.Role{session.Host, session.Worker} {
		if !strings.Contains(strings.Join(Trust(role), " "), "hidden states") {
			t.Errorf("%s: %q", role, Trust(role))
		}
	}
}

func TestStatusOfAState(t *testing.T) {
	st := &session.State{Role: session.Host, Phase: session.Online, Code: "4TK-G9P", SignalUp: true, TokPerSec: 18, Passes: 830,
		Model: session.Model{Key: "qwen3-1.7b"}, Peers: []session.Peer{
			{Self: true, Host: true, Hi: 9}, {Lo: 9, Hi: 28}, {Kind: session.KindAPI},
		}}
	const want = "room 4TK-G9P · online · 2 devices · layers 0-8 + embed/head of qwen3-1.7b · 18.0 tok/s · 830 passes"
	if got := StatusLine(Of(st)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
