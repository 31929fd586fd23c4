package signal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func splitComma(s string) iter.Seq[string] { return strings.SplitSeq(s, ",") }

const sigAddr = "sig.example:80"

// world is one hub and a fake clock.
func world(t *testing.T, o HubOptions, f func(t *testing.T, n *memNet, servers []Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		stop := n.serveHub(t, sigAddr, o)
		defer stop()
		synctest.Wait()
		f(t, n, []Server{at(t, "ws://"+sigAddr+o.Path)})
	})
}

func wantUp(t *testing.T, e Event, host string) {
	t.Helper()
	if u, ok := e.(Up); !ok || u.Server.Host != host {
		t.Fatalf("got %#v, want Up at %s", e, host)
	}
}

func TestRegisterAndForward(t *testing.T) {
	for _, path := range []string{"", "/pooled/deep"} {
		world(t, HubOptions{Path: path}, func(t *testing.T, n *memNet, servers []Server) {
			a := startClient(t, Options{Servers: servers, Dial: n.dial})
			defer a.stop()
			b := startClient(t, Options{Servers: servers, ID: "pooled-room-4TKG9P", Dial: n.dial})
			defer b.stop()
			if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(a.ID()) {
				t.Errorf("given id %q is no UUID", a.ID())
			}
			wantUp(t, a.next(t, time.Second), "sig.example")
			wantUp(t, b.next(t, time.Second), "sig.example")
			for i := range 20 {
				m := Message{Type: []Type{TypeOffer, TypeAnswer, TypeCandidate}[i%3], Dst: b.ID(), Src: "forged",
					Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))}
				if err := a.Send(m); err != nil {
					t.Fatal(err)
				}
				got, ok := b.next(t, time.Second).(Message)
				if m.Src = a.ID(); !ok || fmt.Sprint(got) != fmt.Sprint(m) {
					t.Fatalf("got %v, want %v", got, m)
				}
			}
		})
	}
}

func TestKeepsRegistrationForHours(t *testing.T) {
	world(t, HubOptions{}, func(t *testing.T, n *memNet, servers []Server) {
		a := startClient(t, Options{Servers: servers, Dial: n.dial})
		defer a.stop()
		wantUp(t, a.next(t, time.Second), "sig.example")
		a.none(t, 3*time.Hour)
	})
}

func TestSilentClientIsDropped(t *testing.T) {
	world(t, HubOptions{}, func(t *testing.T, n *memNet, _ []Server) {
		start := time.Now()
		conn := rawSocket(t, n, "ws://"+sigAddr+"/peerjs?key=peerjs&id=mute&token=t")
		defer conn.CloseNow()
		if m := rawRead(t, conn); m.Type != TypeOpen {
			t.Fatalf("got %v, want OPEN", m)
		}
		if _, _, err := conn.Read(t.Context()); err == nil {
			t.Fatal("got a message, want the socket closed")
		}
		if took := time.Since(start); took < 90*time.Second || took > 91*time.Second {
			t.Errorf("dropped after %v, want 90 s", took)
		}
	})
}

func TestUnknownPeerExpires(t *testing.T) {
	world(t, HubOptions{}, func(t *testing.T, n *memNet, servers []Server) {
		a := startClient(t, Options{Servers: servers, Dial: n.dial})
		defer a.stop()
		a.next(t, time.Second)
		start := time.Now()
		for range 5 {
			if err := a.Send(Message{Type: TypeCandidate, Dst: "nobody"}); err != nil {
				t.Fatal(err)
			}
		}
		m, ok := a.next(t, 10*time.Second).(Message)
		if !ok || m.Type != TypeExpire || m.Src != "nobody" || !errors.Is(m.Err(), ErrNoPeer) {
			t.Fatalf("got %v, want EXPIRE of nobody", m)
		}
		if took := time.Since(start); took < 5*time.Second || took > 6500*time.Millisecond {
			t.Errorf("EXPIRE after %v, want 5 to 6.5 s", took)
		}
		a.none(t, time.Minute) // once for all five
	})
}

func TestLatePeerGetsWhatWaited(t *testing.T) {
	world(t, HubOptions{}, func(t *testing.T, n *memNet, servers []Server) {
		a := startClient(t, Options{Servers: servers, Dial: n.dial})
		defer a.stop()
		a.next(t, time.Second)
		for i := range 3 {
			if err := a.Send(Message{Type: TypeCandidate, Dst: "late", Payload: json.RawMessage(fmt.Sprint(i))}); err != nil {
				t.Fatal(err)
			}
		}
		a.none(t, 4*time.Second)
		b := startClient(t, Options{Servers: servers, ID: "late", Dial: n.dial})
		defer b.stop()
		b.next(t, time.Second)
		for i := range 3 {
			if m, ok := b.next(t, time.Second).(Message); !ok || string(m.Payload) != fmt.Sprint(i) || m.Src != a.ID() {
				t.Fatalf("got %v, want message %d", m, i)
			}
		}
		a.none(t, time.Minute)
	})
}

func TestRefusals(t *testing.T) {
	cases := []struct {
		name, query string
		want        Type
		note        string
	}{
		{"no id", "key=peerjs&token=t", TypeError, "No id, token, or key"},
		{"no token", "key=peerjs&id=a", TypeError, "No id, token, or key"},
		{"no key", "id=a&token=t", TypeError, "No id, token, or key"},
		{"wrong key", "key=other&id=a&token=t", TypeError, "Invalid key"},
		{"bad id", "key=peerjs&id=a--b&token=t", TypeError, "Invalid id"},
		{"long id", "key=peerjs&id=" + strings.Repeat("a", 129) + "&token=t", TypeError, "Invalid id"},
		{"long token", "key=peerjs&id=a&token=" + strings.Repeat("a", 129), TypeError, "Invalid token"},
		{"taken", "key=peerjs&id=held&token=t", TypeIDTaken, "ID is taken"},
		{"full", "key=peerjs&id=third&token=t", TypeError, "concurrent user limit"},
	}
	world(t, HubOptions{MaxClients: 2}, func(t *testing.T, n *memNet, servers []Server) {
		for _, id := range []string{"held", "second"} {
			c := startClient(t, Options{Servers: servers, ID: id, Dial: n.dial})
			defer c.stop()
		}
		for _, c := range cases {
			conn := rawSocket(t, n, "ws://"+sigAddr+"/peerjs?"+c.query)
			m := rawRead(t, conn)
			if m.Type != c.want || !strings.Contains(m.note(), c.note) {
				t.Errorf("%s: got %v %s, want %s %q", c.name, m.Type, m.note(), c.want, c.note)
			}
			if _, _, err := conn.Read(t.Context()); err == nil {
				t.Errorf("%s: the socket stays open", c.name)
			}
		}
	})
}

func TestOpenErrors(t *testing.T) {
	world(t, HubOptions{Key: "secret"}, func(t *testing.T, n *memNet, servers []Server) {
		_, err := Open(t.Context(), Options{Servers: servers, ID: "a", Dial: n.dial})
		if !errors.Is(err, ErrDown) || !strings.Contains(err.Error(), "Invalid key provided") {
			t.Errorf("wrong key: got %v, want ErrDown with the server's words", err)
		}
		_, err = Open(t.Context(), Options{Servers: servers, ID: "a..b", Dial: n.dial})
		if !errors.Is(err, ErrInvalidID) {
			t.Errorf("bad id: got %v, want ErrInvalidID", err)
		}
		servers[0].Key = "secret"
		c := startClient(t, Options{Servers: servers, ID: "a", Dial: n.dial})
		defer c.stop()
		if _, err = Open(t.Context(), Options{Servers: servers, ID: "a", Dial: n.dial}); !errors.Is(err, ErrIDTaken) {
			t.Errorf("second client: got %v, want ErrIDTaken", err)
		}
		_, err = Open(t.Context(), Options{Servers: []Server{at(t, "ws://gone.example")}, ID: "a", Dial: n.dial})
		if !errors.Is(err, ErrDown) || strings.Contains(err.Error(), "token") {
			t.Errorf("no server: got %v, want ErrDown without the token", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		n.setHole("hole.example:80", true)
		time.AfterFunc(time.Second, cancel)
		_, err = Open(ctx, Options{Servers: []Server{at(t, "ws://hole.example")}, ID: "a", Dial: n.dial})
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrDown) {
			t.Errorf("cancelled: got %v, want context.Canceled", err)
		}
	})
}

func TestInvalidKeyStopsTheSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		defer n.serveHTTP("old.example:80", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			_ = conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"INVALID-KEY","payload":{"msg":"no"}}`))
			_ = conn.Close(websocket.StatusNormalClosure, "")
		}))()
		defer n.serveHub(t, sigAddr, HubOptions{})()
		synctest.Wait()
		_, err := Open(t.Context(), Options{Servers: []Server{at(t, "ws://old.example"), at(t, "ws://"+sigAddr)}, ID: "a", Dial: n.dial})
		if !errors.Is(err, ErrInvalidKey) {
			t.Errorf("got %v, want ErrInvalidKey", err)
		}
	})
}

func TestTakeOverWithToken(t *testing.T) {
	world(t, HubOptions{}, func(t *testing.T, n *memNet, servers []Server) {
		a := startClient(t, Options{Servers: servers, Dial: n.dial})
		defer a.stop()
		const u = "ws://" + sigAddr + "/peerjs?key=peerjs&id=x&token=t"
		first := rawSocket(t, n, u)
		defer first.CloseNow()
		if m := rawRead(t, first); m.Type != TypeOpen {
			t.Fatalf("got %v, want OPEN", m)
		}
		second := rawSocket(t, n, u)
		defer second.CloseNow()
		if m := rawRead(t, second); m.Type != TypeOpen {
			t.Errorf("second socket: got %v, want OPEN", m)
		}
		if err := a.Send(Message{Type: TypeOffer, Dst: "x"}); err != nil {
			t.Fatal(err)
		}
		if m := rawRead(t, second); m.Type != TypeOffer {
			t.Errorf("second socket: got %v, want the offer", m)
		}
		if _, _, err := first.Read(t.Context()); err == nil {
			t.Error("first socket still gets messages")
		}
		third := rawSocket(t, n, strings.Replace(u, "token=t", "token=u", 1))
		if m := rawRead(t, third); m.Type != TypeIDTaken {
			t.Errorf("another token: got %v, want ID-TAKEN", m)
		}
		third.CloseNow()
	})
}

func TestSendLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		defer n.serveHTTP(sigAddr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // never reads
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer conn.CloseNow()
			_ = conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"OPEN"}`))
			<-t.Context().Done()
		}))()
		synctest.Wait()
		a := startClient(t, Options{Servers: []Server{at(t, "ws://"+sigAddr)}, ID: "a", Dial: n.dial})
		defer a.stop()
		a.next(t, time.Second)
		big, _ := json.Marshal(strings.Repeat("x", MaxMessage))
		if err := a.Send(Message{Type: TypeOffer, Dst: "x", Payload: big}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v, want ErrTooLarge", err)
		}
		if err := a.Send(Message{Type: TypeOffer, Dst: "x", Payload: json.RawMessage("{")}); err == nil {
			t.Error("broken payload: got no error")
		}
		a.none(t, time.Second) // still up
		var err error
		for range 10 * backlog {
			if err = a.Send(Message{Type: TypeCandidate, Dst: a.ID()}); err != nil {
				break
			}
		}
		if !errors.Is(err, ErrBacklog) {
			t.Errorf("got %v, want ErrBacklog", err)
		}
	})
}

func FuzzParseServer(f *testing.F) {
	for _, s := range []string{"cloud", "a:1/b", "wss://[::1]:9/x", "ws://", ":", "[", "a:/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		for _, bare := range []Bare{BareTLS, BarePlain, BareFlag} {
			s, err := ParseServer(spec, bare)
			if err != nil {
				continue
			}
			again, err := ParseServer(s.String(), bare)
			if err != nil || again.Host != s.Host || again.Port != s.Port || again.Path != s.Path {
				t.Errorf("%q gives %q, which gives %+v, %v", spec, s, again, err)
			}
			if _, err := http.NewRequest(http.MethodGet, s.idURL("1"), nil); err != nil {
				t.Errorf("%q: %v", spec, err)
			}
		}
	})
}
