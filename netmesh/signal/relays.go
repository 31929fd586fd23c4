package signal

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"pooled/netmesh/relay"
)

// Relays are the TURN servers of whoever runs a hub, with the secret they share.
type Relays struct {
	URLs    []string // as relay.ValidURL returns them
	Secret  string
	TTL     time.Duration // of a password; 6 h by default
	Origins []string      // pages that may ask, besides those of the hub's own address: https://pooled.example
}

// serveRelays answers POST {path}api/turn with a fresh password (spec wire.md 8).
func (h *Hub) serveRelays(w http.ResponseWriter, r *http.Request) {
	o := h.o.Relays
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	case o == nil || len(o.URLs) == 0 || o.Secret == "":
		w.WriteHeader(http.StatusNoContent)
	case !o.allows(r):
		h.refused.Add(1)
		http.Error(w, "not for pages of this origin", http.StatusForbidden)
	case !h.mayAsk(addressOf(r)):
		h.refused.Add(1)
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many requests", http.StatusTooManyRequests)
	default:
		o.write(w, time.Now())
	}
}

// allows reports whether the asker may have a password: a program (no Origin), a page of this address, or one of Origins.
func (o *Relays) allows(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(o.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

func (h *Hub) mayAsk(from string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	ok := h.asked.take(from, time.Now())
	if ok {
		h.asked.leave(from) // only how many, not how many at a time
	}
	return ok
}

func (o *Relays) write(w http.ResponseWriter, now time.Time) {
	ttl := o.TTL
	if ttl <= 0 {
		ttl = relay.TTL("")
	}
	user, credential := relay.Mint(o.Secret, ttl, now)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(relay.Answer{ // the client may be gone: nothing to do about it
		ICEServers: []relay.ICEServer{{URLs: o.URLs, Username: user, Credential: credential}},
		TTL:        int64(ttl / time.Second), Provider: "pooled signal", ExpiresAt: now.Add(ttl).UnixMilli(),
	})
}
