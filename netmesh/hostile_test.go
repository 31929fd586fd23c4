package netmesh

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"pooled/netmesh/signal"
	"pooled/netmesh/wire"
)

func TestPongIsTakenOnce(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, f := n.join("peer-a"), n.foreign("foreign")
	f.dial(a)
	ts := f.nextMessage("ping")["ts"]
	for range 1000 {
		f.sendMap(map[string]any{"t": "pong", "ts": ts})
	}
	f.sendMap(map[string]any{"t": "last"})
	trips := 0
	for {
		e := <-a.events
		if _, is := e.(RTT); is {
			trips++
		}
		if m, is := e.(Message); is && m.Msg["t"] == "last" {
			break
		}
	}
	if trips > 2 {
		t.Errorf("%d round trips were told for 1000 pongs to one or two pings", trips)
	}
}

func TestChannelsWithoutEnd(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, f := n.join("peer-a"), n.foreign("foreign")
	f.dial(a)
	for i := range 200 {
		if _, err := f.pc.CreateDataChannel(fmt.Sprint("more ", i), nil); err != nil {
			break // hung up already
		}
	}
	if d := want[LinkDown](a); !strings.Contains(d.Why, "channels") {
		t.Errorf("got %+v", d)
	}
}

// TestFramesThatNeverEnd: a peer begins one frame after the other and ends none. Few of them are kept.
func TestFramesThatNeverEnd(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, f := n.join("peer-a"), n.foreign("foreign")
	f.dial(a)
	frame := wire.Frame{Kind: wire.HiddenB, N: 1, Data: make([]byte, 2*wire.PayloadBytes)}
	slice := make([]byte, wire.SliceBytes)
	for id := range uint32(maxFrames + maxBad + 10) {
		if err := f.wire.Send(slice[:frame.PutSlice(slice, id+1, 0)]); err != nil {
			break // hung up already
		}
	}
	if d := want[LinkDown](a); !strings.Contains(d.Why, "cannot be read") {
		t.Errorf("got %+v", d)
	}
}

func TestServerThatLiesAboutWhoSpeaks(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, f := n.join("peer-a"), n.foreign("foreign")
	raw, err := json.Marshal(f.makeOffer("dc_x", "dc_x", "binary"))
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range []string{"", "a\x1b[2J", "a b  c", "../x", strings.Repeat("x", 128) + "-", "\u009b31m", string(a.ID())} {
		a.post(func() { a.signalMessage(signal.Message{Type: signal.TypeOffer, Src: src, Payload: raw}) })
	}
	links := make(chan int)
	a.post(func() { links <- len(a.conns) })
	if got := <-links; got != 0 {
		t.Errorf("%d links begun", got)
	}
	if text := a.logs.String(); strings.ContainsAny(text, "\x1b\u009b") {
		t.Errorf("the log has control characters: %q", text)
	}
}

// TestOffersOfEveryKind: descriptions that were damaged in many ways never do more than fail.
func TestOffersOfEveryKind(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	a, f := n.join("peer-a"), n.foreign("foreign")
	good := f.makeOffer("dc_x", "dc_x", "binary")["sdp"].(map[string]any)["sdp"].(string)
	lines := strings.Split(strings.TrimSpace(good), "\r\n")
	var bad []string
	for i, l := range lines {
		without := append(append([]string(nil), lines[:i]...), lines[i+1:]...)
		bad = append(bad, strings.Join(without, "\r\n")+"\r\n")
		for _, to := range []string{l + l, l[:2], strings.ReplaceAll(l, "0", "-1"), strings.ReplaceAll(l, "5000", "99999999999999999999"), l[:len(l)/2], strings.Repeat(l+"\r\n", 50) + l} {
			changed := append([]string(nil), lines...)
			changed[i] = to
			bad = append(bad, strings.Join(changed, "\r\n")+"\r\n")
		}
	}
	bad = append(bad, "", "v=0\r\n", strings.Repeat("m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n", 1000), good+good,
		strings.Replace(good, "webrtc-datachannel", "x", 1), strings.Replace(good, "m=application", "m=video", 1),
		good+"a=max-message-size:0\r\n", good+"a=max-message-size:-5\r\n", good+"a=sctp-port:0\r\n", good+"\x1b[2J\r\n")
	for i, sdp := range bad {
		p := map[string]any{"sdp": map[string]any{"type": "offer", "sdp": sdp}, "type": "data", "connectionId": fmt.Sprint("dc_", i),
			"label": "x", "reliable": true, "serialization": "binary"}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		a.post(func() {
			a.signalMessage(signal.Message{Type: signal.TypeOffer, Src: "somebody", Payload: raw})
			close(done)
		})
		<-done
	}
	most := make(chan int)
	a.post(func() { most <- len(a.conns) })
	if got := <-most; got > maxPendingPerPeer {
		t.Errorf("%d links are held for one peer", got)
	}
	if text := a.logs.String(); strings.ContainsAny(text, "\x1b") {
		t.Error("the log has control characters")
	}
	f2 := n.foreign("good") // and the mesh is well
	f2.dial(a)
}

func TestSendingFailsInPlainWords(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"the library's error", io.ErrClosedPipe, "connection lost"},
		{"too much waits", errOverflow, errOverflow.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newTestNet(t, signal.HubOptions{})
			a, f := n.join("peer-a"), n.foreign("foreign")
			f.dial(a)
			l, err := a.linkTo("foreign")
			if err != nil {
				t.Fatal(err)
			}
			_ = l.sendFailed(c.err) // its result is for the caller of Send
			if d := want[LinkDown](a); d.Why != c.want {
				t.Errorf("got %q, want %q", d.Why, c.want)
			}
		})
	}
}
