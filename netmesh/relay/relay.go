package relay

import (
	"net/netip"
	"strconv"
	"strings"
)

// Server is a relay with what it takes to use it.
type Server struct {
	URLs       []string // as ValidURL returns them
	User       string
	Credential string
}

// String names the relay without its password, so that none gets into a log.
func (s Server) String() string { return strings.Join(s.URLs, " ") }

// GoString is String, for the same reason.
func (s Server) GoString() string { return "relay " + s.String() }

// Usable reports whether s has an address, a user and a password. The WebRTC library refuses every link over a single relay
// that lacks one of them.
func (s Server) Usable() bool { return len(s.URLs) > 0 && s.User != "" && s.Credential != "" }

// maxURL bounds the text of a relay's address.
const maxURL = 300

// ValidURL checks the address of a relay: turn: or turns:, a host name, an IPv4 address or an IPv6 address in brackets, a
// port if wanted, ?transport=udp or ?transport=tcp if wanted, and nothing else. It returns it without blanks around it and
// with the scheme in lower case.
func ValidURL(s string) (string, bool) {
	s = strings.TrimSpace(s)
	scheme, rest, ok := strings.Cut(s, ":")
	scheme = strings.ToLower(scheme)
	if !ok || len(s) > maxURL || scheme != "turn" && scheme != "turns" {
		return "", false
	}
	address, query, hasQuery := strings.Cut(rest, "?")
	if hasQuery && query != "transport=udp" && query != "transport=tcp" {
		return "", false
	}
	host, port, hasPort := address, "", false
	if i := strings.LastIndexByte(address, ':'); i >= 0 && !strings.HasSuffix(address, "]") {
		host, port, hasPort = address[:i], address[i+1:], true
	}
	if !validHost(host) || hasPort && !validPort(port) {
		return "", false
	}
	return scheme + ":" + rest, true
}

func validPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0 && len(s) <= 5
}

func validHost(h string) bool {
	if inner, ok := strings.CutPrefix(h, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		return ok && err == nil && a.Is6() && a.Zone() == ""
	}
	for label := range strings.SplitSeq(h, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notHostRune) {
			return false
		}
	}
	return len(h) <= 253
}

func notHostRune(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}
