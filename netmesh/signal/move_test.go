package signal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestAdvance: a joiner finds no room on the first server, and the host on the last one.
func TestAdvance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		defer n.serveHub(t, sigAddr, HubOptions{})()
		n.setHole("hole.example:80", true)
		defer n.serveHub(t, "other.example:80", HubOptions{})()
		synctest.Wait()
		last := at(t, "ws://other.example")
		host := startClient(t, Options{Servers: []Server{last}, ID: "host", Dial: n.dial})
		defer host.stop()
		host.next(t, time.Second)
		a := startClient(t, Options{Servers: []Server{at(t, "ws://"+sigAddr), at(t, "ws://hole.example"), last}, Dial: n.dial})
		defer a.stop()
		id := a.ID()
		wantUp(t, a.next(t, time.Second), "sig.example")
		if err := a.Send(Message{Type: TypeOffer, Dst: "host"}); err != nil {
			t.Fatal(err)
		}
		if m, ok := a.next(t, 7*time.Second).(Message); !ok || m.Type != TypeExpire {
			t.Fatalf("got %v, want EXPIRE", m)
		}
		moved := make(chan error, 1)
		go func() { moved <- a.Advance(t.Context()) }()
		wantUp(t, a.next(t, 9*time.Second), "other.example") // no Down: it was registered all the time
		if err := <-moved; err != nil {
			t.Fatal(err)
		}
		if err := a.Send(Message{Type: TypeOffer, Dst: "host"}); err != nil {
			t.Fatal(err)
		}
		if m, ok := host.next(t, time.Second).(Message); !ok || m.Src != id {
			t.Errorf("got %v, want the offer of %s", m, id)
		}
		if err := a.Advance(t.Context()); !errors.Is(err, ErrNoServer) {
			t.Errorf("at the end of the list: got %v, want ErrNoServer", err)
		}
		if err := a.Send(Message{Type: TypeOffer, Dst: "host"}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		host.next(t, time.Second)
	})
}

// TestAdvanceStops: an answer, a context and the end of Run end it, and the client stays where it is.
func TestAdvanceStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		defer n.serveHub(t, sigAddr, HubOptions{})()
		defer n.serveHub(t, "other.example:80", HubOptions{})()
		synctest.Wait()
		next := at(t, "ws://other.example")
		thief := startClient(t, Options{Servers: []Server{next}, ID: "a", Dial: n.dial})
		defer thief.stop()
		a := startClient(t, Options{Servers: []Server{at(t, "ws://"+sigAddr), next}, ID: "a", Dial: n.dial})
		defer a.stop()
		a.next(t, time.Second)
		if err := a.Advance(t.Context()); !errors.Is(err, ErrIDTaken) {
			t.Errorf("id taken there: got %v", err)
		}
		n.setHole("other.example:80", true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Advance(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ctx: got %v", err)
		}
		if got := a.Server().Host; got != "sig.example" {
			t.Errorf("server: got %s", got)
		}
		a.none(t, time.Second)
		thief.stop()
		n.setHole("other.example:80", false)
		time.Sleep(time.Second)
		a.stop()
		if err := a.Advance(t.Context()); !errors.Is(err, ErrDisconnected) {
			t.Errorf("after Run: got %v, want ErrDisconnected", err)
		}
	})
}

// TestHurry: the next attempt comes at once, and only while there is one to wait for.
func TestHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		stop := n.serveHub(t, sigAddr, HubOptions{})
		synctest.Wait()
		a := startClient(t, Options{Servers: []Server{at(t, "ws://"+sigAddr)}, Dial: n.dial})
		defer a.stop()
		wantUp(t, a.next(t, time.Second), "sig.example")
		a.Hurry() // registered: nothing to do
		stop()
		a.next(t, time.Second)
		a.none(t, 40*time.Second) // attempts at 2, 6, 14, 30 s; the next one is due at 60 s
		defer n.serveHub(t, sigAddr, HubOptions{})()
		synctest.Wait()
		asked := time.Now()
		a.Hurry()
		wantUp(t, a.next(t, time.Second), "sig.example")
		if took := time.Since(asked); took != 0 {
			t.Errorf("back after %v", took)
		}
	})
}

// TestBackAfterAnOutage: after 60 s without the server, the client is back under its id, and says so once.
func TestBackAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		stop := n.serveHub(t, sigAddr, HubOptions{})
		synctest.Wait()
		a := startClient(t, Options{Servers: []Server{at(t, "ws://"+sigAddr)}, Dial: n.dial})
		defer a.stop()
		id := a.ID()
		wantUp(t, a.next(t, time.Second), "sig.example")
		stop()
		dropped := time.Now()
		a.next(t, time.Second)
		a.none(t, 60*time.Second-time.Millisecond)
		defer n.serveHub(t, sigAddr, HubOptions{})()
		wantUp(t, a.next(t, time.Minute), "sig.example")
		if took := time.Since(dropped); took > (2+4+8+16+30)*time.Second {
			t.Errorf("back after %v", took)
		}
		if a.ID() != id {
			t.Errorf("id: got %s, want %s", a.ID(), id)
		}
		a.none(t, time.Minute)
	})
}
