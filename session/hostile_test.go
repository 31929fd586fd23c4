package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pooled/netmesh"
	"pooled/session"
	"pooled/session/sessiontest"
)

// played links a device of the test to a host and greets it.
func (p *party) played(id session.PeerID, gb float64) *sessiontest.Peer {
	p.t.Helper()
	x := sessiontest.NewPeer(p.net, id)
	x.Dial(hostID)
	synctest.Wait()
	p.must(x.Hello(hostID, string(id), gb))
	synctest.Wait()
	return x
}

// count is how many events of a type a recorder saw.
func count[E session.Event](r *sessiontest.Recorder) int {
	n := 0
	for _, e := range r.Seen() {
		if _, is := e.Event.(E); is {
			n++
		}
	}
	return n
}

// lateHang makes hanging up take as long as it does on a network: what the peer sent meanwhile still comes.
type lateHang struct{ *sessiontest.Mesh }

// Hang closes the link a little later.
func (m lateHang) Hang(peer session.PeerID, why string) {
	go func() {
		time.Sleep(100 * time.Millisecond)
		m.Mesh.Hang(peer, why)
	}()
}

func TestPeerThatIsHungUpOnIsHeardNoMore(t *testing.T) {
	cases := []struct {
		name string
		msg  map[string]any
	}{
		{"another protocol", map[string]any{"t": "hello", "v": 3}},
		{"bye", map[string]any{"t": "bye", "reason": "no"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				p.late = true
				h := p.host(20)
				x := sessiontest.NewPeer(p.net, "x")
				x.Dial(hostID)
				for range 500 {
					p.must(x.Send(hostID, c.msg))
				}
				p.must(x.Hello(hostID, "x", 1))
				synctest.Wait()
				if refused, notices := count[session.PeerRefused](h.rec), count[session.Notice](h.rec); refused > 1 || notices > 1 {
					t.Errorf("%d refusals and %d lines, want one", refused, notices)
				}
				if n := len(x.Messages("bye")); n > 1 {
					t.Errorf("%d answers, want one", n)
				}
				if n := count[session.PeerJoined](h.rec); n != 0 {
					t.Error("it joined afterwards")
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if n := len(heard[netmesh.LinkDown](x)); n != 1 {
					t.Errorf("%d links closed, want one", n)
				}
			})
		})
	}
}

// heard returns what a played peer heard of one type.
func heard[E netmesh.Event](x *sessiontest.Peer) []E {
	var es []E
	for _, ev := range x.Heard() {
		if e, is := ev.(E); is {
			es = append(es, e)
		}
	}
	return es
}

func TestStrangerAtAWorkerIsHungUpOn(t *testing.T) {
	bubble(t, func(p *party) {
		p.host(20)
		w := p.worker("w", 5)
		member := p.played("m", 1)
		for _, x := range []*sessiontest.Peer{member, sessiontest.NewPeer(p.net, "x")} {
			x.Dial("w")
			p.must(x.Hello("w", "some name", 1))
			for range 20 {
				time.Sleep(time.Second)
				_ = x.Send("w", map[string]any{"t": "hello", "v": 4}) // saying it again doesn't help
			}
			synctest.Wait()
			downs := 0
			for _, d := range heard[netmesh.LinkDown](x) {
				if d.Peer == "w" {
					downs++
				}
			}
			if want := map[bool]int{true: 0, false: 1}[x == member]; downs != want {
				t.Errorf("%s: %d links closed, want %d", x.ID(), downs, want)
			}
		}
		if n := count[session.PeerRefused](w.rec); n != 1 {
			t.Errorf("%d refused, want the stranger", n)
		}
	})
}
