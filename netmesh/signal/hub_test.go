package signal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

func TestHostileClients(t *testing.T) {
	cases := []struct {
		name string
		do   func(t *testing.T, conn *websocket.Conn)
		ends bool
	}{
		{"not json", sendText("{{{"), false},
		{"json, not an object", sendText(`[1,2]`), false},
		{"null", sendText(`null`), false},
		{"no type", sendText(`{"dst":"b"}`), false},
		{"unknown type", sendText(`{"type":"SHUTDOWN","dst":"b"}`), false},
		{"forged EXPIRE", sendText(`{"type":"EXPIRE","dst":"b"}`), false},
		{"forged OPEN", sendText(`{"type":"OPEN","dst":"b"}`), false},
		{"bad destination", sendText(`{"type":"OFFER","dst":"../x"}`), false},
		{"type of a number", sendText(`{"type":7}`), false},
		{"binary", func(t *testing.T, c *websocket.Conn) {
			if err := c.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"OFFER","dst":"b"}`)); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"too large", func(t *testing.T, c *websocket.Conn) {
			_ = c.Write(t.Context(), websocket.MessageText, []byte(strings.Repeat("x", MaxMessage+2))) // may break half-way
		}, true},
		{"flood", func(t *testing.T, c *websocket.Conn) {
			for range 2 * burstSeconds * defaultRate {
				if c.Write(t.Context(), websocket.MessageText, []byte(`{"type":"HEARTBEAT"}`)) != nil {
					return
				}
			}
		}, true},
		{"goodbye", sendText(`{"type":"LEAVE"}`), true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			world(t, HubOptions{}, func(t *testing.T, n *memNet, servers []Server) {
				b := startClient(t, Options{Servers: servers, ID: "b", Dial: n.dial})
				defer b.stop()
				b.next(t, time.Second)
				conn := rawSocket(t, n, "ws://"+sigAddr+"/peerjs?key=peerjs&id=a&token=t")
				defer conn.CloseNow()
				rawRead(t, conn)
				reads := make(chan Message, 10)
				ended := make(chan struct{})
				go func() { // a pipe has no buffer: read while writing
					defer close(ended)
					for {
						m, err := readMessage(t.Context(), conn)
						if err != nil {
							return
						}
						reads <- m
					}
				}()
				c.do(t, conn)
				synctest.Wait()
				select {
				case <-ended:
					if !c.ends {
						t.Error("the socket was closed")
					}
				default:
					if c.ends {
						t.Error("the socket stays open")
					} else {
						sendText(`{"type":"OFFER","dst":"b","src":"forged"}`)(t, conn)
						if m, ok := b.next(t, time.Second).(Message); !ok || m.Type != TypeOffer || m.Src != "a" {
							t.Errorf("got %v, want the offer of a", m)
						}
					}
				}
				conn.CloseNow()
				<-ended
				b.none(t, time.Second)
			})
		})
	}
}

func sendText(s string) func(t *testing.T, c *websocket.Conn) {
	return func(t *testing.T, c *websocket.Conn) {
		t.Helper()
		if err := c.Write(t.Context(), websocket.MessageText, []byte(s)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSlowClientIsDropped(t *testing.T) {
	world(t, HubOptions{}, func(t *testing.T, n *memNet, servers []Server) {
		conn := rawSocket(t, n, "ws://"+sigAddr+"/peerjs?key=peerjs&id=slow&token=t")
		defer conn.CloseNow()
		rawRead(t, conn) // and nothing more: the pipe is full with the next message
		a := startClient(t, Options{Servers: servers, ID: "a", Dial: n.dial})
		defer a.stop()
		a.next(t, time.Second)
		for range clientBacklog + 3 {
			if err := a.Send(Message{Type: TypeOffer, Dst: "slow"}); err != nil {
				t.Fatal(err)
			}
		}
		if m, ok := a.next(t, 20*time.Second).(Message); !ok || m.Type != TypeLeave || m.Src != "slow" || !errors.Is(m.Err(), ErrNoPeer) {
			t.Errorf("got %v, want LEAVE of slow", m)
		}
	})
}

func TestMailboxLimits(t *testing.T) {
	now := time.Now()
	q := mailboxes{box: map[string]*mailbox{}}
	for i := range maxWaiting + 1 {
		if got, want := q.add(Message{Dst: "a", Src: "s", Payload: json.RawMessage(`""`)}, now), i < maxWaiting; got != want {
			t.Fatalf("message %d: got %v, want %v", i, got, want)
		}
	}
	big := json.RawMessage(strings.Repeat("x", maxWaitingSize))
	if q.add(Message{Dst: "b", Payload: big}, now) || len(q.box) != 1 {
		t.Error("took more bytes than allowed")
	}
	q.add(Message{Dst: "b", Src: "s"}, now.Add(time.Second))
	q.add(Message{Dst: "b", Src: "r"}, now.Add(time.Second))
	if got := q.expire(now); len(got) != 1 || got[0] != (pair{"s", "a"}) {
		t.Errorf("expired: got %v, want s,a once", got)
	}
	if got := q.expire(now.Add(time.Second)); len(got) != 2 {
		t.Errorf("expired: got %v, want both senders", got)
	}
	if q.count != 0 || q.bytes != 0 || len(q.box) != 0 {
		t.Errorf("left over: %+v", q)
	}
}

func TestHTTP(t *testing.T) { synctest.Test(t, testHTTP) }

func testHTTP(t *testing.T) {
	h, err := NewHub(HubOptions{Path: "sig"})
	if err != nil {
		t.Fatal(err)
	}
	get := func(method, path, origin string) *http.Response {
		r := httptest.NewRequest(method, path, nil)
		if origin != "" {
			r.Header.Set("Origin", origin)
			r.Header.Set("Access-Control-Request-Headers", "X-A")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	if got := get("GET", "/sig/", "").StatusCode; got != http.StatusServiceUnavailable {
		t.Errorf("before Run: got %d, want 503", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	synctest.Wait()
	cases := []struct {
		method, path string
		want         int
		body         string
	}{
		{"GET", "/sig/", 200, `"status":"ok"`},
		{"GET", "/sig", 200, `"clients":0`},
		{"GET", "/", 404, ""},
		{"GET", "/peerjs/id", 404, ""},
		{"GET", "/sig/peerjs/id", 200, "-4"},
		{"GET", "/sig/peerjs/peers", 401, ""},
		{"GET", "/sig/a/b/id", 404, ""},
		{"POST", "/sig/peerjs/id", 405, ""},
		{"OPTIONS", "/sig/peerjs/id", 204, ""},
		{"GET", "/sig/peerjs", 426, ""}, // not an upgrade
		{"GET", "/sig/api/turn", 405, ""},
		{"POST", "/sig/api/turn", 204, ""},
		{"POST", "/api/turn", 404, ""},
	}
	for _, c := range cases {
		res := get(c.method, c.path, "https://pooled.example")
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != c.want || !strings.Contains(string(body), c.body) {
			t.Errorf("%s %s: got %d %s, want %d", c.method, c.path, res.StatusCode, body, c.want)
		}
		if got := res.Header.Get("Access-Control-Allow-Origin"); got != "https://pooled.example" {
			t.Errorf("%s %s: allowed origin %q", c.method, c.path, got)
		}
		if got := res.Header.Get("Access-Control-Allow-Headers"); c.method == "OPTIONS" && got != "X-A" {
			t.Errorf("preflight: allowed headers %q", got)
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: got %v", err)
	}
	if got := get("GET", "/sig/", "").StatusCode; got != http.StatusServiceUnavailable {
		t.Errorf("after Run: got %d, want 503", got)
	}
}

func TestHubOptions(t *testing.T) {
	for _, o := range []HubOptions{{Path: "/a b"}, {Path: "/a?b"}, {Key: "a/b"}} {
		if _, err := NewHub(o); err == nil {
			t.Errorf("%+v: got no error", o)
		}
	}
}

// TestListener runs over real sockets.
func TestListener(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l, err := Listen(ctx, ListenOptions{Host: "127.0.0.1", HubOptions: HubOptions{Path: "p", Key: "k"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(ctx, ListenOptions{Host: "127.0.0.1", Port: l.Server().Port}); err == nil {
		t.Error("a port in use: got no error")
	}
	runCtx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- l.Run(runCtx) }()
	in := newInbox()
	c, err := Open(ctx, Options{Servers: []Server{l.Server()}, Deliver: in.deliver})
	if err != nil {
		t.Fatal(err)
	}
	clientCtx, stopClient := context.WithCancel(ctx)
	clientDone := make(chan error, 1)
	go func() { clientDone <- c.Run(clientCtx) }()
	wantUp(t, in.next(t, 10*time.Second), "127.0.0.1")
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run: got %v, want nil", err)
	}
	if _, ok := in.next(t, 10*time.Second).(Down); !ok {
		t.Error("the client was not told")
	}
	stopClient()
	if err := <-clientDone; !errors.Is(err, context.Canceled) {
		t.Errorf("client: got %v", err)
	}
}
