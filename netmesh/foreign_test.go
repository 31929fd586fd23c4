package netmesh

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/pion/webrtc/v4"

	"pooled/netmesh/pack"
	"pooled/netmesh/signal"
)

// foreign is a peer made of the bare library, which does what it is told: also what it must not.
type foreign struct {
	t       *testing.T
	ctx     context.Context
	sig     *signal.Client
	inbox   chan signal.Message
	pc      *webrtc.PeerConnection
	ctl     *webrtc.DataChannel
	wire    *webrtc.DataChannel
	ka      *webrtc.DataChannel
	got     chan any    // messages unpacked
	slices  chan []byte // on the wire channel
	beats   chan byte
	ctlOpen chan struct{}
	closed  chan struct{} // the control channel
	off     func()        // leaves the signaling server
	local   chan webrtc.ICECandidateInit
}

// foreign registers a bare peer.
func (n *testNet) foreign(id string) *foreign {
	n.t.Helper()
	f := &foreign{
		t: n.t, ctx: n.ctx, inbox: make(chan signal.Message, 1000), got: make(chan any, 1000), slices: make(chan []byte, 1000),
		beats: make(chan byte, 1000), ctlOpen: make(chan struct{}), closed: make(chan struct{}), local: make(chan webrtc.ICECandidateInit, 100),
	}
	var err error
	f.sig, err = signal.Open(n.ctx, signal.Options{Servers: []signal.Server{n.server}, ID: id, Deliver: func(e signal.Event) {
		if m, ok := e.(signal.Message); ok {
			f.inbox <- m
		}
	}})
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(n.ctx)
	done := make(chan struct{})
	go func() { _ = f.sig.Run(ctx); close(done) }()
	var se webrtc.SettingEngine
	se.SetIncludeLoopbackCandidate(true)
	se.LoggerFactory = logFactory{func(string) {}}
	if f.pc, err = webrtc.NewAPI(webrtc.WithSettingEngine(se)).NewPeerConnection(webrtc.Configuration{}); err != nil {
		n.t.Fatal(err)
	}
	f.off = func() { cancel(); <-done }
	n.t.Cleanup(func() {
		_ = f.pc.GracefulClose()
		f.off()
	})
	f.pc.OnICECandidate(func(c *webrtc.ICECandidate) {
		if c != nil {
			f.local <- c.ToJSON()
		}
	})
	f.wire = f.channel("swarm-wire", 77, true)
	f.ka = f.channel("swarm-ka", 78, false)
	f.wire.OnMessage(func(m webrtc.DataChannelMessage) { f.slices <- m.Data })
	f.ka.OnMessage(func(m webrtc.DataChannelMessage) { f.beats <- m.Data[0] })
	return f
}

func (f *foreign) channel(label string, id uint16, reliable bool) *webrtc.DataChannel {
	f.t.Helper()
	yes, none := true, uint16(0)
	init := &webrtc.DataChannelInit{Negotiated: &yes, ID: &id, Ordered: &reliable}
	if !reliable {
		init.MaxRetransmits = &none
	}
	dc, err := f.pc.CreateDataChannel(label, init)
	if err != nil {
		f.t.Fatal(err)
	}
	return dc
}

// control watches the in-band channel.
func (f *foreign) control(dc *webrtc.DataChannel) {
	f.ctl = dc
	var once sync.Once
	dc.OnMessage(func(m webrtc.DataChannelMessage) {
		if v, err := pack.Unmarshal(m.Data, pack.Limits{}); err == nil && !m.IsString {
			f.got <- v
		} else {
			f.got <- err
		}
	})
	dc.OnClose(func() { once.Do(func() { close(f.closed) }) })
	dc.OnOpen(func() { close(f.ctlOpen) })
}

func (f *foreign) wait(c <-chan struct{}, what string) {
	f.t.Helper()
	select {
	case <-c:
	case <-f.ctx.Done():
		f.t.Fatalf("%s: did not happen", what)
	}
}

func (f *foreign) signal(t signal.Type, to PeerID, p map[string]any) {
	f.t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.sig.Send(signal.Message{Type: t, Dst: string(to), Payload: raw}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *foreign) next() (signal.Message, payload) {
	f.t.Helper()
	select {
	case m := <-f.inbox:
		var p payload
		if err := json.Unmarshal(m.Payload, &p); err != nil {
			f.t.Fatalf("%s: %v", m.Type, err)
		}
		return m, p
	case <-f.ctx.Done():
		f.t.Fatal("no signaling message came")
		return signal.Message{}, payload{}
	}
}

// candidates passes our candidates on in the form of a node-datachannel peer, and theirs to the library, until the control
// channel is open.
func (f *foreign) candidates(to PeerID, conn string) {
	f.t.Helper()
	for {
		select {
		case c := <-f.local:
			f.signal(signal.TypeCandidate, to, ndCandidate(conn, c))
		case m := <-f.inbox:
			var p payload
			if m.Type != signal.TypeCandidate || json.Unmarshal(m.Payload, &p) != nil || p.ConnectionID != conn {
				f.t.Fatalf("got %s %s, want a candidate", m.Type, m.Payload)
			}
			if err := f.pc.AddICECandidate(*p.Candidate); err != nil {
				f.t.Errorf("candidate: %v", err)
			}
		case <-f.ctlOpen:
			return
		case <-f.ctx.Done():
			f.t.Fatal("the control channel did not open")
		}
	}
}

func ndCandidate(conn string, c webrtc.ICECandidateInit) map[string]any {
	return map[string]any{"type": "data", "connectionId": conn, "candidate": map[string]any{
		"candidate": "a=" + c.Candidate, "sdpMid": "0", "sdpMLineIndex": nil, "usernameFragment": nil,
	}}
}

// makeOffer is the payload of an OFFER.
func (f *foreign) makeOffer(conn, label, serialization string) map[string]any {
	f.t.Helper()
	if f.ctl == nil {
		dc, err := f.pc.CreateDataChannel(label, nil)
		if err != nil {
			f.t.Fatal(err)
		}
		f.control(dc)
	}
	sdp, err := f.pc.CreateOffer(nil)
	if err == nil {
		err = f.pc.SetLocalDescription(sdp)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return map[string]any{"sdp": map[string]any{"type": "offer", "sdp": sdp.SDP}, "type": "data", "connectionId": conn,
		"label": label, "reliable": true, "serialization": serialization}
}

// dial opens a link as PeerJS does, candidates after the offer.
func (f *foreign) dial(to *node) {
	f.t.Helper()
	const conn = "dc_foreign"
	f.signal(signal.TypeOffer, to.ID(), f.makeOffer(conn, conn, "binary"))
	f.answered(to, conn)
}

func (f *foreign) answered(to *node, conn string) {
	f.t.Helper()
	m, p := f.next()
	if m.Type != signal.TypeAnswer || p.SDP == nil || p.SDP.Type != "answer" || p.ConnectionID != conn || p.Type != "data" {
		f.t.Fatalf("got %s %s, want the answer before anything else", m.Type, m.Payload)
	}
	if err := f.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: p.SDP.SDP}); err != nil {
		f.t.Fatal(err)
	}
	f.candidates(to.ID(), conn)
	if u := want[LinkUp](to); u.Dialed || string(u.Peer) != f.sig.ID() {
		f.t.Errorf("got %+v", u)
	}
}

func (f *foreign) send(b []byte) {
	f.t.Helper()
	if err := f.ctl.Send(b); err != nil {
		f.t.Fatal(err)
	}
}

func (f *foreign) sendMap(m map[string]any) {
	f.t.Helper()
	b, err := pack.Marshal(m)
	if err != nil {
		f.t.Fatal(err)
	}
	f.send(b)
}

// nextMessage waits for a message with this t.
func (f *foreign) nextMessage(t string) map[string]any {
	f.t.Helper()
	for {
		select {
		case v := <-f.got:
			m, ok := v.(map[string]any)
			if !ok {
				f.t.Fatalf("got %v on the control channel, want a map", v)
			}
			if m["t"] == t {
				return m
			}
		case <-f.ctx.Done():
			f.t.Fatalf("no %q came", t)
		}
	}
}

func (f *foreign) nextAnswer() (signal.Message, payload) {
	f.t.Helper()
	for {
		if m, p := f.next(); m.Type == signal.TypeAnswer {
			return m, p
		}
	}
}
