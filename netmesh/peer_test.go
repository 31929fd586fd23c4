package netmesh

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"

	"pooled/netmesh/pack"
	"pooled/netmesh/signal"
	"pooled/netmesh/wire"
)

func TestDialingOrder(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, f := n.join("peer-a"), n.foreign("foreign")
	f.pc.OnDataChannel(f.control)
	a.Dial("foreign")
	m, p := f.next()
	if m.Type != signal.TypeOffer || p.SDP == nil || p.SDP.Type != "offer" {
		t.Fatalf("got %s first, want OFFER", m.Type)
	}
	if p.Type != "data" || !p.Reliable || p.Serialization != "binary" || p.Label != p.ConnectionID || !strings.HasPrefix(p.ConnectionID, "dc_") {
		t.Errorf("offer: got %+v", p)
	}
	// Their candidates come before the answer, and have to wait for it.
	if err := f.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: p.SDP.SDP}); err != nil {
		t.Fatal(err)
	}
	sdp, err := f.pc.CreateAnswer(nil)
	if err == nil {
		err = f.pc.SetLocalDescription(sdp)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.signal(signal.TypeCandidate, a.ID(), ndCandidate(p.ConnectionID, <-f.local))
	answer := map[string]any{"sdp": map[string]any{"type": "answer", "sdp": sdp.SDP}, "type": "data", "connectionId": p.ConnectionID}
	f.signal(signal.TypeAnswer, a.ID(), answer)
	f.signal(signal.TypeAnswer, a.ID(), answer) // a second one changes nothing
	f.candidates(a.ID(), p.ConnectionID)
	if u := want[LinkUp](a); !u.Dialed {
		t.Errorf("got %+v", u)
	}
	if f.ctl.Label() != p.ConnectionID || !f.ctl.Ordered() || f.ctl.MaxRetransmits() != nil || f.ctl.Protocol() != "" {
		t.Errorf("control channel: label %q, ordered %v", f.ctl.Label(), f.ctl.Ordered())
	}
	f.sendMap(map[string]any{"t": "hi"})
	want[Message](a)
}

func TestCandidatesBeforeTheOffer(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, f := n.join("peer-a"), n.foreign("foreign")
	offer := f.makeOffer("dc_x", "dc_x", "binary")
	c := <-f.local
	for range 3 {
		f.signal(signal.TypeCandidate, a.ID(), ndCandidate("dc_x", c))
	}
	f.signal(signal.TypeOffer, a.ID(), offer)
	f.answered(a, "dc_x")
}

func TestOffersNotTaken(t *testing.T) {
	cases := []struct {
		name                 string
		label, serialization string
		change               func(p map[string]any)
	}{
		{"stripe", "stripe", "binary", nil},
		{"json", "dc_x", "json", nil},
		{"no serialization", "dc_x", "", nil},
		{"media", "dc_x", "binary", func(p map[string]any) { p["type"] = "media" }},
		{"no connection id", "dc_x", "binary", func(p map[string]any) { delete(p, "connectionId") }},
		{"long connection id", "dc_x", "binary", func(p map[string]any) { p["connectionId"] = strings.Repeat("x", 129) }},
		{"no description", "dc_x", "binary", func(p map[string]any) { delete(p, "sdp") }},
		{"an answer", "dc_x", "binary", func(p map[string]any) { p["sdp"].(map[string]any)["type"] = "answer" }},
		{"description is no SDP", "dc_x", "binary", func(p map[string]any) { p["sdp"] = map[string]any{"type": "offer", "sdp": "v=0"} }},
		{"description of a number", "dc_x", "binary", func(p map[string]any) { p["sdp"] = 7 }},
	}
	n := newTestNet(t, signal.HubOptions{})
	a := n.join("peer-a")
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := n.foreign("foreign" + string(rune('a'+i)))
			p := f.makeOffer("dc_x", c.label, c.serialization)
			if c.change != nil {
				c.change(p)
			}
			f.signal(signal.TypeOffer, a.ID(), p)
			f.signal(signal.TypeCandidate, a.ID(), ndCandidate("dc_x", <-f.local))
			f.signal(signal.TypeCandidate, a.ID(), map[string]any{"type": "data", "connectionId": "dc_x", "candidate": map[string]any{"candidate": ""}})
			select {
			case m := <-f.inbox:
				t.Errorf("got %s, want silence", m.Type)
			case <-time.After(100 * time.Millisecond):
			}
		})
	}
	f := n.foreign("good") // and the mesh is well
	f.dial(a)
}

func TestMessagesOfAPeer(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, f := n.join("peer-a"), n.foreign("foreign")
	f.dial(a)
	a.send("foreign", map[string]any{"t": "first"})
	f.nextMessage("first")
	for _, ts := range []any{int64(7), 1234.5678, "text", nil, true} {
		f.sendMap(map[string]any{"t": "ping", "ts": ts})
		if m := f.nextMessage("pong"); m["ts"] != ts {
			t.Errorf("pong: got %v, want %v", m["ts"], ts)
		}
	}
	for _, junk := range [][]byte{nil, {0xc1}, {0xd9, 0xff, 0xff, 0xff, 0xff}, {0x81}, []byte("raw bytes of a bandwidth test")} {
		f.send(junk)
	}
	if err := f.ctl.SendText(`{"t":"text"}`); err != nil {
		t.Fatal(err)
	}
	for _, m := range []map[string]any{
		{"t": 7}, {"x": "no t"}, {"__peerData": 1, "n": 5, "total": 2, "data": []byte{1}}, {"t": "pong", "ts": 1}, {"t": "pong"},
		{"t": "ai-hidden", "pos": -1, "data": []byte{1, 2}, "enc": "f16"}, {"t": "ai-hidden", "pos": 1, "data": "text"},
	} {
		f.sendMap(m)
	}
	f.sendMap(map[string]any{"t": "ai-hidden-b", "basePos": 7, "n": 2, "rb": 0, "data": []byte{1, 2, 3, 4}, "enc": "f16"})
	got := want[FrameIn](a).Frame
	if got.Kind != wire.HiddenB || got.Pos != 7 || got.N != 2 || got.Rollback != 1 || string(got.Data) != "\x01\x02\x03\x04" {
		t.Errorf("frame as a message: got %+v", got)
	}
	for i, b := range pack.Chunks(1, mustPack(t, map[string]any{"t": "big", "data": make([]byte, 40000)})) {
		f.send(b)
		if i == 1 {
			f.sendMap(map[string]any{"t": "between"})
		}
	}
	if m := want[Message](a); m.Msg["t"] != "between" {
		t.Errorf("got %v", m)
	}
	if m := want[Message](a); m.Msg["t"] != "big" || len(m.Msg["data"].([]byte)) != 40000 {
		t.Errorf("got %v", m.Msg["t"])
	}
}

func mustPack(t *testing.T, v any) []byte {
	t.Helper()
	b, err := pack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSlicesOfAPeer(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, f := n.join("peer-a"), n.foreign("foreign")
	f.dial(a)
	buf := make([]byte, wire.SliceBytes)
	slice := func(id uint32, data []byte) []byte {
		fr := wire.Frame{Kind: wire.Hidden, Pos: id, N: 1, Data: data}
		return buf[:fr.PutSlice(buf, id, 0)]
	}
	put := func(b []byte) {
		t.Helper()
		if err := f.wire.Send(b); err != nil {
			t.Fatal(err)
		}
	}
	put(slice(1, []byte{1, 2}))
	put([]byte("not a slice"))
	bad := append([]byte(nil), slice(2, []byte{1, 2})...)
	bad[20] = 0xff // 4 GB in one slice
	put(bad)
	put(slice(3, []byte{3, 4})) // 2 is lost for good, since the channel is ordered
	for _, pos := range []uint32{1, 3} {
		if fr := want[FrameIn](a); fr.Frame.Pos != pos {
			t.Errorf("got frame %d, want %d", fr.Frame.Pos, pos)
		}
	}
	if err := a.SendFrame("foreign", frameOf(5, 1, 3000)); err != nil {
		t.Fatal(err)
	}
	for k, size := range []int{wire.SliceBytes, wire.HeaderBytes + 6000 - wire.PayloadBytes} {
		if b := <-f.slices; len(b) != size || b[15] != byte(k) || b[7] != 1 {
			t.Errorf("slice %d: got %d bytes, index %d, id %d", k, len(b), b[15], b[7])
		}
	}
}

func TestPeersThatAreHungUpOn(t *testing.T) {
	cases := []struct {
		name    string
		do      func(t *testing.T, f *foreign)
		why     string
		leaving bool
	}{
		{"leaving", func(t *testing.T, f *foreign) { f.sendMap(map[string]any{"t": "leaving"}) }, "the peer left", true},
		{"close by PeerJS message", func(t *testing.T, f *foreign) {
			f.sendMap(map[string]any{"__peerData": map[string]any{"type": "close"}})
		}, "closed by the peer", false},
		{"channel closed", func(t *testing.T, f *foreign) { _ = f.ctl.Close() }, "closed by the peer", false},
		{"connection closed", func(t *testing.T, f *foreign) { _ = f.pc.Close() }, "closed by the peer", false},
		{"junk messages", func(t *testing.T, f *foreign) {
			for range maxBad + 1 {
				f.send([]byte{0xc1, 0xc1})
			}
		}, "too many messages that cannot be read", false},
		{"junk slices", func(t *testing.T, f *foreign) {
			for range maxBad + 1 {
				if err := f.wire.Send([]byte("junk")); err != nil {
					return // hung up on already
				}
			}
		}, "too many messages that cannot be read", false},
		{"a slice of 60 KB", func(t *testing.T, f *foreign) { _ = f.wire.Send(make([]byte, 60000)) }, "a message of more than 9200 bytes", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n := newTestNet(t, signal.HubOptions{})
			a, f := n.join("peer-a"), n.foreign("foreign")
			f.dial(a)
			c.do(t, f)
			if d := want[LinkDown](a); d != (LinkDown{Peer: "foreign", Why: c.why, Leaving: c.leaving}) {
				t.Errorf("got %+v, want %q", d, c.why)
			}
			if c.name != "connection closed" {
				f.wait(f.closed, "closing at the other end")
			}
			if err := a.Send("foreign", map[string]any{"t": "x"}); !errors.Is(err, ErrClosed) {
				t.Errorf("send: got %v, want ErrClosed", err)
			}
		})
	}
}

// TestSecondChannel: PeerJS opens one in-band channel; another is closed and the first goes on.
func TestSecondChannel(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, f := n.join("peer-a"), n.foreign("foreign")
	f.dial(a)
	second, err := f.pc.CreateDataChannel("second", nil)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	second.OnClose(func() { close(gone) })
	f.wait(gone, "closing of the second channel")
	f.sendMap(map[string]any{"t": "still here"})
	want[Message](a)
}

// TestOfferAgain: an offer with a connection id that exists replaces the old connection.
func TestOfferAgain(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, f := n.join("peer-a"), n.foreign("foreign")
	f.dial(a)
	f.off()
	g := n.foreign("foreign")
	g.signal(signal.TypeOffer, a.ID(), g.makeOffer("dc_foreign", "dc_foreign", "binary"))
	if d := want[LinkDown](a); d.Why != "the peer started the connection again" {
		t.Errorf("got %+v", d)
	}
	f.wait(f.closed, "closing of the old connection")
	g.answered(a, "dc_foreign")
}

// TestUnopenedConnections: a peer that offers and never connects keeps two places at most.
func TestUnopenedConnections(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, f := n.join("peer-a"), n.foreign("foreign")
	offer := f.makeOffer("", "dc_x", "binary")
	for i := range 5 {
		conn := "dc_" + string(rune('a'+i))
		offer["connectionId"] = conn
		f.signal(signal.TypeOffer, a.ID(), offer)
		if m, p := f.nextAnswer(); p.ConnectionID != conn {
			t.Fatalf("got %s for %s, want the answer for %s", m.Type, p.ConnectionID, conn)
		}
	}
	held := make(chan int)
	a.post(func() { held <- len(a.conns) })
	if got := <-held; got != maxPendingPerPeer {
		t.Errorf("got %d connections held, want %d", got, maxPendingPerPeer)
	}
}

// TestKeepAlive: bytes flow on channel 78 while frames moved in the last 1.5 s, and only then.
func TestKeepAlive(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, f := n.join("peer-a"), n.foreign("foreign")
	f.dial(a)
	select {
	case <-f.beats:
		t.Error("a keep-alive without any frame")
	case <-time.After(100 * time.Millisecond):
	}
	begin := time.Now()
	if err := a.SendFrame("foreign", frameOf(1, 1, 10)); err != nil {
		t.Fatal(err)
	}
	count := 0
	for quiet := false; !quiet; {
		select {
		case b := <-f.beats:
			if b != wire.KeepAliveByte {
				t.Errorf("got byte %d", b)
			}
			count++
		case <-time.After(400 * time.Millisecond):
			quiet = true
		}
	}
	if took := time.Since(begin); count < 20 || count > 160 || took < 1500*time.Millisecond || took > 5*time.Second {
		t.Errorf("%d keep-alives, quiet after %v; want about 150 in 1.5 s", count, took)
	}
}

// TestWireChannelClosed: without the wire channel the link lives on, and frames go as messages.
func TestWireChannelClosed(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, f := n.join("peer-a"), n.foreign("foreign")
	f.dial(a)
	if err := f.wire.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := a.linkTo("foreign")
	if err != nil {
		t.Fatal(err)
	}
	for l.wireOut.buffered() >= 0 { // until the reader has seen the end of it
		if n.ctx.Err() != nil {
			t.Fatal("the wire channel stays open")
		}
		<-time.After(time.Millisecond)
	}
	if err := a.SendFrame("foreign", frameOf(3, 2, 8)); err != nil {
		t.Fatal(err)
	}
	m := f.nextMessage("ai-hidden-b")
	if m["basePos"] != int64(6) || m["n"] != int64(2) || m["enc"] != "f16" || string(m["data"].([]byte)) != string(noise()[6:][:32]) {
		t.Errorf("got %v", m)
	}
}
