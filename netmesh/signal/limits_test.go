package signal

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"pooled/netmesh/relay"
)

func TestPerAddress(t *testing.T) {
	now := time.Now()
	p := perAddress{most: 3, rate: 2, burst: 4}
	take := func(from string, want bool) {
		t.Helper()
		if got := p.take(from, now); got != want {
			t.Errorf("%s: got %v, want %v", from, got, want)
		}
	}
	for range 3 {
		take("a", true)
	}
	take("a", false) // three at a time
	take("b", true)  // another address is another matter
	p.leave("a")
	take("a", true)
	p.leave("a")
	take("a", false) // four at once
	now = now.Add(time.Second / 2)
	take("a", true)
	take("a", false)
	p.forget(now)
	if p.seen["a"] == nil || p.seen["b"] == nil {
		t.Error("forgot an address that has sockets")
	}
	p.leave("a")
	p.leave("a")
	p.leave("a")
	p.leave("b")
	if p.forget(now); p.seen["a"] == nil {
		t.Error("forgot an address that has used its allowance: it would have a new one")
	}
	if p.forget(now.Add(time.Minute)); len(p.seen) != 0 {
		t.Errorf("still known: %v", p.seen)
	}
	off := perAddress{most: -1}
	for range 1000 {
		if !off.take("a", now) {
			t.Fatal("counts though it is off")
		}
	}
}

func TestAddressOf(t *testing.T) {
	for _, c := range []struct{ remote, want string }{
		{"192.0.2.7:1234", "192.0.2.7"},
		{"[::ffff:192.0.2.7]:1", "192.0.2.7"},
		{"[2001:db8:1:2:3:4:5:6]:99", "2001:db8:1:2::/64"},
		{"[fe80::1%eth0]:99", "fe80::/64"},
		{"pipe", "pipe"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.remote
		r.Header.Set("X-Forwarded-For", "10.0.0.1")
		if got := addressOf(r); got != c.want {
			t.Errorf("%s: got %s, want %s", c.remote, got, c.want)
		}
	}
}

// TestSocketsOfAnAddress: the third socket is turned away, and let in once another one ended.
func TestSocketsOfAnAddress(t *testing.T) {
	world(t, HubOptions{PerAddress: 2}, func(t *testing.T, n *memNet, _ []Server) {
		dial := func(id string) (*websocket.Conn, int) {
			conn, res, err := websocket.Dial(t.Context(), "ws://"+sigAddr+"/peerjs?key=peerjs&token=t&id="+id,
				&websocket.DialOptions{HTTPClient: n.client()})
			if err != nil && res == nil {
				t.Fatal(err)
			}
			return conn, res.StatusCode
		}
		a, _ := dial("a")
		b, _ := dial("b")
		defer b.CloseNow()
		if _, status := dial("c"); status != http.StatusTooManyRequests {
			t.Fatalf("third: status %d, want 429", status)
		}
		a.CloseNow()
		time.Sleep(time.Second)
		c, status := dial("c")
		if status != http.StatusSwitchingProtocols {
			t.Fatalf("after one left: status %d", status)
		}
		c.CloseNow()
	})
}

func TestRateAndSizeOptions(t *testing.T) {
	for _, c := range []struct {
		name string
		o    HubOptions
		send []string
		ends bool
	}{
		{"rate kept", HubOptions{Rate: 2}, []string{strings.Repeat("x", 8)}, false},
		{"rate", HubOptions{Rate: 2}, slicesOf("x", 2*burstSeconds+1), true},
		{"size kept", HubOptions{MaxMessage: 5000}, []string{strings.Repeat("x", 5000)}, false},
		{"size", HubOptions{MaxMessage: 5000}, []string{strings.Repeat("x", 5002)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			world(t, c.o, func(t *testing.T, n *memNet, _ []Server) {
				conn := rawSocket(t, n, "ws://"+sigAddr+"/peerjs?key=peerjs&id=a&token=t")
				defer conn.CloseNow()
				rawRead(t, conn)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for {
						if _, err := readMessage(t.Context(), conn); err != nil {
							return
						}
					}
				}()
				for _, text := range c.send {
					_ = conn.Write(t.Context(), websocket.MessageText, []byte(text)) // may break half-way
				}
				synctest.Wait()
				select {
				case <-ended:
					if !c.ends {
						t.Error("the socket was closed")
					}
				default:
					if c.ends {
						t.Error("the socket stays open")
					}
				}
				conn.CloseNow()
				<-ended
			})
		})
	}
}

func slicesOf(s string, n int) []string { return strings.Split(strings.Repeat(s+",", n-1)+s, ",") }

func TestRelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := NewHub(HubOptions{Path: "sig", Relays: &Relays{
			URLs: []string{"turn:r.example"}, Secret: "north", TTL: time.Hour, Origins: []string{"https://pooled.example"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(method, origin, from string) *http.Response {
			r := httptest.NewRequest(method, "http://signal.example:9000/sig/api/turn", nil)
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
			r.RemoteAddr = from + ":5000"
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Result()
		}
		for _, c := range []struct {
			method, origin string
			want           int
		}{
			{"GET", "", 405},
			{"DELETE", "", 405},
			{"OPTIONS", "https://pooled.example", 204},
			{"POST", "", 200},
			{"POST", "https://pooled.example", 200},
			{"POST", "http://signal.example:9000", 200},
			{"POST", "https://pooled.example.evil", 403},
			{"POST", "http://signal.example", 403},
			{"POST", "null", 403},
		} {
			if got := ask(c.method, c.origin, "192.0.2.1").StatusCode; got != c.want {
				t.Errorf("%s from %q: got %d, want %d", c.method, c.origin, got, c.want)
			}
		}
		res := ask("POST", "", "192.0.2.2")
		var a relay.Answer
		if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
			t.Fatal(err)
		}
		user, credential := relay.Mint("north", time.Hour, time.Now())
		servers := a.Servers()
		if len(servers) != 1 || servers[0].User != user || servers[0].Credential != credential || servers[0].String() != "turn:r.example" {
			t.Errorf("got %+v", a)
		}
		if a.TTL != 3600 || a.ExpiresAt != time.Now().Add(time.Hour).UnixMilli() || a.Lifetime() != time.Hour {
			t.Errorf("lifetime: %+v", a)
		}
		if res.Header.Get("Cache-Control") != "no-store" {
			t.Error("may be cached")
		}
		for i := range relaysPerMinute {
			if got := ask("POST", "", "192.0.2.3").StatusCode; got != 200 {
				t.Fatalf("request %d: got %d", i, got)
			}
		}
		if got := ask("POST", "", "192.0.2.3").StatusCode; got != 429 {
			t.Errorf("an eleventh: got %d, want 429", got)
		}
		time.Sleep(6 * time.Second)
		if got := ask("POST", "", "192.0.2.3").StatusCode; got != 200 {
			t.Errorf("six seconds later: got %d", got)
		}
	})
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		l, err := NewListener(n.bind(sigAddr), HubOptions{})
		if err != nil {
			t.Fatal(err)
		}
		before := l.Stats()
		done := make(chan error, 1)
		stopped, stop := context.WithCancel(t.Context())
		go func() { done <- l.Run(stopped) }()
		conn := rawSocket(t, n, "ws://"+sigAddr+"/peerjs?key=peerjs&id=a&token=t")
		rawRead(t, conn)
		sendText(`{"type":"OFFER","dst":"b"}`)(t, conn)
		thief := rawSocket(t, n, "ws://"+sigAddr+"/peerjs?key=peerjs&id=a&token=u")
		rawRead(t, thief)
		thief.CloseNow()
		time.Sleep(2 * time.Second)
		now := l.Stats()
		const want = "clients 1, sockets 1, 0.5 messages/s, 0.0 kB/s, waiting 1, refused 1, up 2s"
		if got := now.Line(before); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if !now.Changed(before) {
			t.Error("unchanged, though a client came")
		}
		time.Sleep(time.Second)
		if l.Stats().Changed(now) {
			t.Error("changed, though only time passed")
		}
		conn.CloseNow()
		stop()
		<-done
	})
}
