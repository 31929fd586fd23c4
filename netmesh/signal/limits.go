package signal

import (
	"net"
	"net/http"
	"net/netip"
	"time"
)

// Bounds of one address. A household or an office shares one.
const (
	defaultPerAddress = 64
	newSocketsPerSec  = 20
	relaysPerMinute   = 10
	maxAddresses      = 100_000
)

// perAddress counts what comes from each address. Its owner holds a lock.
type perAddress struct {
	most        int     // at a time; negative: don't count
	rate, burst float64 // new ones per second, and at once
	seen        map[string]*visitor
}

// visitor is one address.
type visitor struct {
	open   int
	bucket allowance
}

// take counts one in from an address; false when that is too many.
func (p *perAddress) take(from string, now time.Time) bool {
	if p.most < 0 {
		return true
	}
	v := p.seen[from]
	if v == nil {
		if len(p.seen) >= maxAddresses {
			return false
		}
		if p.seen == nil {
			p.seen = map[string]*visitor{}
		}
		v = &visitor{bucket: allowance{tokens: p.burst, at: now}}
		p.seen[from] = v
	}
	if p.most > 0 && v.open >= p.most || !v.bucket.take(now, p.rate, p.burst) {
		return false
	}
	v.open++
	return true
}

// leave counts one out.
func (p *perAddress) leave(from string) {
	if v := p.seen[from]; v != nil {
		v.open--
	}
}

// forget drops addresses that have nothing open and their full allowance.
func (p *perAddress) forget(now time.Time) {
	for from, v := range p.seen {
		if v.open <= 0 && v.bucket.tokens+now.Sub(v.bucket.at).Seconds()*p.rate >= p.burst {
			delete(p.seen, from)
		}
	}
}

// addressOf is the address a request comes from: an IPv4 address, or the 64 bits of an IPv6 one that name a network. What
// a header says (X-Forwarded-For) is not believed.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	a = a.Unmap().WithZone("")
	if a.Is6() {
		return netip.PrefixFrom(a, 64).Masked().String()
	}
	return a.String()
}

// admit counts a socket of an address in.
func (h *Hub) admit(from string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sockets.take(from, time.Now())
}

func (h *Hub) leave(from string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sockets.leave(from)
}
