package signal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// serveSocket upgrades and serves one client until its socket ends.
func (h *Hub) serveSocket(w http.ResponseWriter, r *http.Request) {
	if !h.enter() {
		h.refused.Add(1)
		http.Error(w, "busy or closed", http.StatusServiceUnavailable)
		return
	}
	defer h.busy.Done()
	from := addressOf(r)
	if !h.admit(from) {
		h.refused.Add(1)
		http.Error(w, "too many connections from your address", http.StatusTooManyRequests)
		return
	}
	defer h.leave(from)
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // any origin, see setCORS
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(int64(h.o.MaxMessage))
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if !h.track(conn, cancel) {
		return
	}
	defer h.forget(conn)

	q := r.URL.Query()
	g, refusal := h.register(conn, q.Get("id"), q.Get("token"), q.Get("key"))
	if refusal != nil {
		h.refused.Add(1)
		sayGoodbye(ctx, conn, refusal)
		return
	}
	var writer sync.WaitGroup
	writer.Go(func() { h.writeTo(ctx, g) })
	err = h.readFrom(ctx, g)
	h.mu.Lock()
	if h.clients[g.id] == g {
		h.drop(g)
	}
	h.mu.Unlock()
	writer.Wait()
	h.o.Log(fmt.Sprintf("signal: %s: gone: %v", g.id, err))
}

// enter counts a socket in; false when the hub is closed or has far too many.
func (h *Hub) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.socks) >= 2*h.o.MaxClients {
		return false
	}
	h.busy.Add(1)
	return true
}

// track makes the socket end with the hub; false when that has happened.
func (h *Hub) track(conn *websocket.Conn, cancel context.CancelFunc) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.socks[conn] = cancel
	return true
}

func (h *Hub) forget(conn *websocket.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.socks, conn)
}

// sayGoodbye sends a refusal and gives the client a second to hang up: closing at once could overtake the message.
func sayGoodbye(ctx context.Context, conn *websocket.Conn, m *Message) {
	b, err := json.Marshal(m)
	if err != nil || writeText(ctx, conn, b) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for {
		if _, _, err := conn.Read(ctx); err != nil {
			return
		}
	}
}

func refuse(t Type, text string) *Message {
	payload, _ := json.Marshal(map[string]string{"msg": text}) // a string
	return &Message{Type: t, Payload: payload}
}

// register books the id, or says why not. A client that comes with its token takes its id over, and the socket it had before
// ends. It gets an OPEN too, which a PeerServer doesn't send: a PeerJS page that reconnects waits for one.
func (h *Hub) register(conn *websocket.Conn, id, token, key string) (*guest, *Message) {
	switch {
	case id == "" || token == "" || key == "":
		return nil, refuse(TypeError, "No id, token, or key supplied to websocket server")
	case key != h.o.Key:
		return nil, refuse(TypeError, "Invalid key provided")
	case !ValidID(id) || len(id) > maxID:
		return nil, refuse(TypeError, "Invalid id provided")
	case len(token) > maxID:
		return nil, refuse(TypeError, "Invalid token provided")
	}
	g := &guest{id: id, token: token, conn: conn, out: make(chan []byte, clientBacklog)}
	now := time.Now()
	g.beat.Store(int64(now.Sub(h.started)))
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.clients[id]
	switch {
	case old != nil && old.token != token:
		return nil, refuse(TypeIDTaken, "ID is taken")
	case old != nil:
		h.drop(old)
	case len(h.clients) >= h.o.MaxClients:
		return nil, refuse(TypeError, "Server has reached its concurrent user limit")
	}
	h.push(g, Message{Type: TypeOpen})
	h.clients[id] = g
	for _, m := range h.waiting.take(id) {
		h.push(g, m)
	}
	return g, nil
}

// writeTo sends what is queued for g until its queue is closed or the socket fails, and closes the socket.
func (h *Hub) writeTo(ctx context.Context, g *guest) {
	for b := range g.out {
		if writeText(ctx, g.conn, b) != nil {
			break
		}
	}
	_ = g.conn.CloseNow() // unblocks the reader
}

// readFrom handles what g sends until its socket ends.
func (h *Hub) readFrom(ctx context.Context, g *guest) error {
	rate, burst := float64(h.o.Rate), float64(burstSeconds*h.o.Rate)
	bucket := allowance{tokens: burst, at: time.Now()}
	for {
		typ, b, err := g.conn.Read(ctx)
		if err != nil {
			return err
		}
		h.messages.Add(1)
		h.bytes.Add(int64(len(b)))
		if !bucket.take(time.Now(), rate, burst) {
			h.refused.Add(1)
			h.tell(g, refuse(TypeError, "Too many messages"))
			return errFlood
		}
		if typ != websocket.MessageText {
			continue
		}
		m, err := decode(b)
		if err != nil {
			continue
		}
		if !h.handle(g, m) {
			return errGone
		}
	}
}

// handle acts on one message of g; false ends g.
func (h *Hub) handle(g *guest, m Message) bool {
	m.Src = g.id
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients[g.id] != g {
		return false
	}
	switch m.Type {
	case TypeHeartbeat:
		g.beat.Store(int64(time.Since(h.started)))
	case TypeLeave:
		if m.Dst == "" {
			return false
		}
		if to := h.clients[m.Dst]; to != nil {
			h.push(to, m)
		}
	case TypeOffer, TypeAnswer, TypeCandidate:
		h.forward(g, m)
	}
	return true
}

// forward passes a message on, or keeps it for an id that may still come. The lock is held.
func (h *Hub) forward(g *guest, m Message) {
	if !ValidID(m.Dst) {
		return
	}
	to := h.clients[m.Dst]
	switch {
	case to == nil:
		if !h.waiting.add(m, time.Now()) {
			h.push(g, Message{Type: TypeExpire, Src: m.Dst, Dst: g.id})
		}
	case !h.push(to, m):
		h.drop(to)
		if to != g {
			h.push(g, Message{Type: TypeLeave, Src: m.Dst, Dst: g.id})
		}
	}
}

// tell queues a message for g if it is still registered.
func (h *Hub) tell(g *guest, m *Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients[g.id] == g {
		h.push(g, *m)
	}
}

var (
	errGone  = errors.New("dropped by the server")
	errFlood = errors.New("too many messages")
)

// allowance is a token bucket.
type allowance struct {
	tokens float64
	at     time.Time
}

// take spends one token; rate come back per second, up to burst.
func (a *allowance) take(now time.Time, rate, burst float64) bool {
	a.tokens = min(burst, a.tokens+now.Sub(a.at).Seconds()*rate)
	a.at = now
	if a.tokens < 1 {
		return false
	}
	a.tokens--
	return true
}
