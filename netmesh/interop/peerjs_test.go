//go:build unix

package interop

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"pooled/netmesh"
	"pooled/netmesh/signal"
	"pooled/netmesh/wire"
)

// TestInteropPeerJS links a mesh and an unmodified PeerJS in Chromium, both ways, over both signaling servers.
func TestInteropPeerJS(t *testing.T) {
	need(t, "peerjs/dist/peerjs.min.js")
	servers := map[string]func(context.Context, *testing.T) signal.Server{"our server": startOurs, "npm server": startPeerServer}
	for name, serve := range servers {
		for _, jsDials := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", page dials", false: ", page is dialed"}[jsDials], func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				t.Cleanup(cancel)
				server := serve(ctx, t)
				n := join(ctx, t, server, "pooled-room-4TKG9P")
				query := "id=js-peer"
				if jsDials {
					query += "&dial=" + string(n.ID())
				}
				p := openPage(ctx, t, server, query)
				if r := p.want("registered"); r.ID != "js-peer" {
					t.Errorf("got %+v", r)
				}
				if !jsDials {
					n.Dial("js-peer")
				}
				if up := want[netmesh.LinkUp](n); up.Peer != "js-peer" || up.Dialed == jsDials {
					t.Errorf("got %+v", up)
				}
				if r := p.want("open"); r.Dialed != jsDials || r.Label != r.ID || r.Serialization != "binary" {
					t.Errorf("got %+v", r)
				}
				checkHello(t, n)
				checkMessages(t, n)
				checkFrames(t, n, p)
				if rtt := want[netmesh.RTT](n); rtt.D <= 0 || rtt.Path != "direct" {
					t.Errorf("got %+v", rtt)
				}
				checkEnd(t, n, p, jsDials)
			})
		}
	}
}

func checkHello(t *testing.T, n *node) {
	t.Helper()
	m := want[netmesh.Message](n).Msg
	list, _ := m["list"].([]any)
	if m["t"] != "hello" || m["v"] != int64(4) || m["half"] != 0.5 || m["neg"] != int64(-7) || m["big"] != int64(1<<40) ||
		m["none"] != nil || len(list) != 4 || list[1] != "zwei" || list[2] != nil || list[3] != true {
		t.Errorf("hello: got %v", m)
	}
}

func checkMessages(t *testing.T, n *node) {
	t.Helper()
	send := func(m map[string]any) {
		t.Helper()
		if err := n.Send("js-peer", m); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []any{"grüße 🎉", int64(0), int64(-1), int64(300), 2.5, true, nil, []any{int64(1), "x"}, strings.Repeat("ab", 20000)} {
		send(map[string]any{"t": "echo", "v": v})
		m := want[netmesh.Message](n).Msg
		got := m["v"]
		if l, ok := v.([]any); ok {
			gl, _ := got.([]any)
			if len(gl) != len(l) || gl[0] != l[0] || gl[1] != l[1] {
				t.Errorf("echo: got %v, want %v", got, v)
			}
		} else if got != v || m["t"] != "echoed" {
			t.Errorf("echo: got %.60v, want %.60v", got, v)
		}
	}
	const size = 200_000 // 13 chunks each way
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i % 251)
	}
	send(map[string]any{"t": "echo", "data": data})
	if m := want[netmesh.Message](n).Msg; m["t"] != "echoed" || !bytes.Equal(binary(m["data"]), data) {
		t.Errorf("long echo: got %v bytes", len(binary(m["data"])))
	}
	send(map[string]any{"t": "make", "n": size})
	if m := want[netmesh.Message](n).Msg; m["t"] != "made" || !bytes.Equal(binary(m["data"]), data) {
		t.Errorf("made: got %v bytes", len(binary(m["data"])))
	}
}

func binary(v any) []byte {
	b, _ := v.([]byte)
	return b
}

// checkFrames sends frames the page sends back slice by slice.
func checkFrames(t *testing.T, n *node, p *page) {
	t.Helper()
	for i, size := range []int{4096, 0, 4568, 4570, 65536} {
		data := make([]byte, size)
		for k := range data {
			data[k] = byte(i + k)
		}
		f := &wire.Frame{Kind: wire.HiddenB, Pos: uint32(100 + i), N: 2, Reset: i == 0, Data: data}
		if err := n.SendFrame("js-peer", f); err != nil {
			t.Fatal(err)
		}
		got := want[netmesh.FrameIn](n)
		if got.Peer != "js-peer" || got.Frame.Pos != f.Pos || got.Frame.N != 2 || got.Frame.Reset != f.Reset || !bytes.Equal(got.Frame.Data, data) {
			t.Errorf("frame of %d bytes: got pos %d and %d bytes", size, got.Frame.Pos, len(got.Frame.Data))
		}
		p.want("slice")
	}
	if r := p.want("keepalive"); r.Bytes != 1 {
		t.Errorf("keep-alive of %d bytes", r.Bytes)
	}
}

// checkEnd closes the link from either side, and links again.
func checkEnd(t *testing.T, n *node, p *page, byPage bool) {
	t.Helper()
	if err := n.Send("js-peer", map[string]any{"t": "dial with label", "label": "stripe"}); err != nil {
		t.Fatal(err)
	}
	if byPage {
		if err := n.Send("js-peer", map[string]any{"t": "close yourself"}); err != nil {
			t.Fatal(err)
		}
		if d := want[netmesh.LinkDown](n); d.Leaving || d.Why != "closed by the peer" {
			t.Errorf("got %+v", d)
		}
	} else {
		n.Hang("js-peer", "done")
		if d := want[netmesh.LinkDown](n); d.Why != "done" {
			t.Errorf("got %+v", d)
		}
		p.want("closed")
	}
	n.Dial("js-peer")
	want[netmesh.LinkUp](n)
	if r := p.want("open"); r.Dialed {
		t.Errorf("got %+v, want the link we dialed and no stripe", r)
	}
	if err := n.Send("js-peer", map[string]any{"t": "vanish"}); err != nil {
		t.Fatal(err)
	}
	if d := want[netmesh.LinkDown](n); d.Peer != "js-peer" {
		t.Errorf("got %+v", d)
	}
}
