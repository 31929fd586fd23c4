package signal

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		stop := n.serveHub(t, sigAddr, HubOptions{})
		synctest.Wait()
		a := startClient(t, Options{Servers: []Server{at(t, "ws://"+sigAddr)}, Dial: n.dial})
		defer a.stop()
		id := a.ID()
		wantUp(t, a.next(t, time.Second), "sig.example")
		for range 2 { // the count starts again after a success
			stop()
			if d, ok := a.next(t, time.Second).(Down); !ok || d.Err == nil {
				t.Fatalf("got %#v, want Down with a reason", d)
			}
			if err := a.Send(Message{Type: TypeOffer, Dst: "x"}); !errors.Is(err, ErrDisconnected) {
				t.Errorf("send while down: got %v, want ErrDisconnected", err)
			}
			dropped := time.Now()
			a.none(t, 13*time.Second) // attempts at 2, 6 and 14 s
			stop = n.serveHub(t, sigAddr, HubOptions{})
			wantUp(t, a.next(t, time.Minute), "sig.example")
			if took := time.Since(dropped).Round(time.Second); took != 14*time.Second {
				t.Errorf("back after %v, want 14s", took)
			}
			if a.ID() != id {
				t.Errorf("id changed to %s", a.ID())
			}
		}
		stop()
	})
}

// TestReconnectWithoutOpen: a server that takes the client back under its token says nothing.
func TestReconnectWithoutOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		var sockets int
		defer n.serveHTTP(sigAddr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer conn.CloseNow()
			sockets++
			if sockets == 1 {
				_ = conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"OPEN"}`))
				time.Sleep(10 * time.Second) // then the line drops
				return
			}
			_, _, _ = conn.Read(r.Context())
			_, _, _ = conn.Read(r.Context())
		}))()
		synctest.Wait()
		a := startClient(t, Options{Servers: []Server{at(t, "ws://"+sigAddr)}, ID: "a", Dial: n.dial})
		defer a.stop()
		wantUp(t, a.next(t, time.Second), "sig.example")
		if _, ok := a.next(t, time.Minute).(Down); !ok {
			t.Fatal("want Down")
		}
		dropped := time.Now()
		wantUp(t, a.next(t, time.Minute), "sig.example")
		if took := time.Since(dropped); took != 4*time.Second {
			t.Errorf("up after %v, want 2 s wait and 2 s of silence", took)
		}
	})
}

func TestRefusedReconnectIsNotUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		stop := n.serveHub(t, sigAddr, HubOptions{})
		synctest.Wait()
		servers := []Server{at(t, "ws://"+sigAddr), at(t, "ws://other.example")}
		defer n.serveHub(t, "other.example:80", HubOptions{})()
		a := startClient(t, Options{Servers: servers, ID: "a", Dial: n.dial})
		defer a.stop()
		wantUp(t, a.next(t, time.Second), "sig.example")
		stop()
		if _, ok := a.next(t, time.Second).(Down); !ok {
			t.Fatal("want Down")
		}
		defer n.serveHub(t, sigAddr, HubOptions{})()
		synctest.Wait()
		thief := startClient(t, Options{Servers: servers[:1], ID: "a", Dial: n.dial})
		if r, ok := a.next(t, time.Minute).(Refused); !ok || !errors.Is(r.Err, ErrIDTaken) || r.Server.Host != "sig.example" {
			t.Fatalf("got %#v, want Refused: the id is taken", r)
		}
		a.none(t, 10*time.Minute) // told once; neither up there, nor on to the next one
		thief.stop()
		wantUp(t, a.next(t, time.Minute), "sig.example")
	})
}

func TestWalksTheListWhenServerStaysSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		stop := n.serveHub(t, sigAddr, HubOptions{})
		defer n.serveHub(t, "other.example:80", HubOptions{})()
		synctest.Wait()
		servers := []Server{at(t, "ws://"+sigAddr), at(t, "ws://hole.example"), at(t, "ws://other.example")}
		n.setHole("hole.example:80", true)
		a := startClient(t, Options{Servers: servers, ID: "a", Dial: n.dial})
		defer a.stop()
		wantUp(t, a.next(t, time.Second), "sig.example")
		stop()
		n.setHole(sigAddr, true)
		if _, ok := a.next(t, time.Second).(Down); !ok {
			t.Fatal("want Down")
		}
		dropped := time.Now()
		a.none(t, 90*time.Second) // a whole round for the server we were on
		wantUp(t, a.next(t, 10*time.Minute), "other.example")
		t.Logf("moved after %v", time.Since(dropped))
		if got := a.Server().Host; got != "other.example" {
			t.Errorf("Server: got %s, want other.example", got)
		}
		if err := a.Send(Message{Type: TypeOffer, Dst: "x"}); err != nil {
			t.Errorf("send after the move: %v", err)
		}
	})
}
