package signal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// Defaults and bounds of a Hub.
const (
	defaultMaxClients = 5000
	defaultAliveFor   = 90 * time.Second
	defaultQueueFor   = 5 * time.Second
	sweepEvery        = 250 * time.Millisecond
	clientBacklog     = 256 // messages waiting for a client's socket, and for an id that is not there: a quarter
	defaultRate       = 100 // messages per second and client in the long run
	burstSeconds      = 4   // of them that may come at once
)

// HubOptions configures a server. Zero values are PeerServer's defaults.
type HubOptions struct {
	Path       string        // "/" by default; slashes at both ends are added
	Key        string        // "peerjs" by default
	MaxClients int           // 5000 by default
	AliveFor   time.Duration // a client without heartbeat for so long is dropped; 90 s by default
	QueueFor   time.Duration // messages for an unknown id wait so long; 5 s by default
	PerAddress int           // sockets of one address at a time; 64 by default, none are counted when negative
	MaxMessage int           // bytes of a message; MaxMessage by default
	Rate       int           // messages per second and client in the long run, four seconds' worth at once; 100 by default
	Relays     *Relays       // what POST {path}api/turn hands out; nil: nothing
	Log        func(string)  // nil drops
}

// Hub is a PeerServer-compatible signaling server: an http.Handler that works while Run runs.
type Hub struct {
	o       HubOptions
	started time.Time

	mu      sync.Mutex
	closed  bool // also before Run
	clients map[string]*guest
	socks   map[*websocket.Conn]context.CancelFunc
	waiting mailboxes
	sockets perAddress
	asked   perAddress     // requests for relays
	busy    sync.WaitGroup // sockets being served

	messages, bytes, refused atomic.Int64
}

// guest is the socket of a registered id.
type guest struct {
	id, token string
	conn      *websocket.Conn
	out       chan []byte
	beat      atomic.Int64 // last heartbeat, in nanoseconds since Hub.started
}

// NewHub returns a hub that answers 503 until Run is called. The error is about the path or the key.
func NewHub(o HubOptions) (*Hub, error) {
	path, ok := cleanPath(o.Path)
	if !ok {
		return nil, fmt.Errorf("signal: path %q: not usable in a URL", o.Path)
	}
	if strings.ContainsAny(o.Key, "/?#%") {
		return nil, fmt.Errorf("signal: key %q: not usable in a URL", o.Key)
	}
	o.Path = path
	if o.Key == "" {
		o.Key = defaultKey
	}
	if o.MaxClients <= 0 {
		o.MaxClients = defaultMaxClients
	}
	if o.AliveFor <= 0 {
		o.AliveFor = defaultAliveFor
	}
	if o.QueueFor <= 0 {
		o.QueueFor = defaultQueueFor
	}
	if o.PerAddress == 0 {
		o.PerAddress = defaultPerAddress
	}
	if o.MaxMessage <= 0 {
		o.MaxMessage = MaxMessage
	}
	if o.Rate <= 0 {
		o.Rate = defaultRate
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return &Hub{
		o: o, started: time.Now(), closed: true,
		sockets: perAddress{most: o.PerAddress, rate: newSocketsPerSec, burst: float64(max(o.PerAddress, newSocketsPerSec))},
		asked:   perAddress{rate: relaysPerMinute / 60.0, burst: relaysPerMinute},
		clients: map[string]*guest{}, socks: map[*websocket.Conn]context.CancelFunc{}, waiting: mailboxes{box: map[string]*mailbox{}},
	}, nil
}

// Run serves until ctx ends, then closes every socket and waits for them. It returns ctx's error.
func (h *Hub) Run(ctx context.Context) error {
	h.begin()
	tick := time.NewTicker(min(sweepEvery, max(h.o.QueueFor/4, time.Millisecond)))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			h.sweep(now)
		case <-ctx.Done():
			h.mu.Lock()
			h.closed = true
			for _, cancel := range h.socks {
				cancel()
			}
			h.mu.Unlock()
			h.busy.Wait()
			return ctx.Err()
		}
	}
}

// begin lets clients in.
func (h *Hub) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = false
}

// sweep drops clients that stopped beating and expires what waited too long.
func (h *Hub) sweep(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sockets.forget(now)
	h.asked.forget(now)
	oldest := int64(now.Sub(h.started) - h.o.AliveFor)
	for id, g := range h.clients {
		if g.beat.Load() < oldest {
			h.o.Log(fmt.Sprintf("signal: %s: no heartbeat for %v, dropped", id, h.o.AliveFor))
			h.drop(g)
		}
	}
	for _, e := range h.waiting.expire(now.Add(-h.o.QueueFor)) {
		if g := h.clients[e.src]; g != nil {
			h.push(g, Message{Type: TypeExpire, Src: e.dst, Dst: e.src})
		}
	}
}

// drop forgets a registration and ends its socket. The lock is held.
func (h *Hub) drop(g *guest) {
	if h.clients[g.id] == g {
		delete(h.clients, g.id)
	}
	close(g.out)
}

// push queues a message for a client; false means its socket does not keep up. The lock is held.
func (h *Hub) push(g *guest, m Message) bool {
	b, err := json.Marshal(m)
	if err != nil {
		return true // can't be: the payload was read as JSON
	}
	select {
	case g.out <- b:
		return true
	default:
		return false
	}
}

// ServeHTTP answers the paths of a PeerServer.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setCORS(w, r)
	rest, ok := strings.CutPrefix(r.URL.Path, h.o.Path)
	if !ok && r.URL.Path+"/" == h.o.Path {
		rest, ok = "", true // the path itself, without its last slash
	}
	switch {
	case !ok:
		http.NotFound(w, r)
	case r.Method == http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	case rest == "api/turn":
		h.serveRelays(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	case rest == "":
		h.serveHealth(w)
	case rest == "peerjs":
		h.serveSocket(w, r)
	case strings.Count(rest, "/") == 1 && strings.HasSuffix(rest, "/id"):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprint(w, h.freeID())
	case strings.Count(rest, "/") == 1 && strings.HasSuffix(rest, "/peers"):
		http.Error(w, "Unauthorized", http.StatusUnauthorized) // who is here is nobody's business
	default:
		http.NotFound(w, r)
	}
}

// setCORS lets pages of any origin in, as PeerServer does.
func setCORS(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" {
		return
	}
	head.Set("Access-Control-Allow-Origin", origin)
	if r.Method == http.MethodOptions {
		head.Set("Access-Control-Allow-Methods", "GET,HEAD,POST")
		if want := r.Header.Get("Access-Control-Request-Headers"); want != "" {
			head.Add("Vary", "Access-Control-Request-Headers")
			head.Set("Access-Control-Allow-Headers", want)
		}
	}
}

func (h *Hub) serveHealth(w http.ResponseWriter) {
	h.mu.Lock()
	clients, waiting, closed := len(h.clients), h.waiting.count, h.closed
	h.mu.Unlock()
	status, code := "ok", http.StatusOK
	if closed {
		status, code = "closed", http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client may be gone: nothing to do about it
		"name": "pooled signal", "description": "A server element to broker connections between PeerJS clients.",
		"status": status, "clients": clients, "maxClients": h.o.MaxClients, "waiting": waiting,
		"uptimeSeconds": int(time.Since(h.started).Seconds()),
	})
}

// freeID returns a random UUID (version 4) that nobody holds.
func (h *Hub) freeID() string {
	var b [16]byte
	for {
		rand.Read(b[:]) // never fails
		b[6] = b[6]&0x0f | 0x40
		b[8] = b[8]&0x3f | 0x80
		s := hex.EncodeToString(b[:])
		id := strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-")
		h.mu.Lock()
		taken := h.clients[id] != nil
		h.mu.Unlock()
		if !taken {
			return id
		}
	}
}
