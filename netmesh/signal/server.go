package signal

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	cloudHost  = "0.peerjs.com"
	defaultKey = "peerjs"
	// protocolVersion is the PeerJS version the client gives.
	protocolVersion = "1.5.4"
)

// Bare says how a spec without a scheme is read.
type Bare int

const (
	// BareTLS: with TLS, as a page served over https reads it.
	BareTLS Bare = iota
	// BarePlain: without TLS, as a page served over http reads it.
	BarePlain
	// BareFlag: as the --signal flag: exactly host:port has TLS only on port 443, everything else has it.
	BareFlag
)

// Server is the address of a signaling server. The zero value is not usable; make one with ParseServer or Cloud.
type Server struct {
	Host   string // a name, an IPv4 address or an IPv6 address in brackets
	Port   int
	Path   string // begins and ends with a slash
	Secure bool   // TLS
	Key    string // "" means the usual one
	spec   string
}

// Cloud is the public PeerJS server.
func Cloud() Server {
	return Server{Host: cloudHost, Port: 443, Path: "/", Secure: true, spec: "cloud"}
}

// IsCloud reports whether s is the public PeerJS server.
func (s Server) IsCloud() bool { return s.spec == "cloud" }

// String returns the normalised spec, which parses to the same server.
func (s Server) String() string {
	if s.spec != "" {
		return s.spec
	}
	scheme := "ws"
	if s.Secure {
		scheme = "wss"
	}
	return scheme + "://" + s.Host + ":" + strconv.Itoa(s.Port) + strings.TrimSuffix(s.Path, "/")
}

// Label is the short form for people: the host, and the port where it isn't the scheme's own.
func (s Server) Label() string {
	if s.Port == defaultPort(s.Secure) {
		return s.Host
	}
	return s.Host + ":" + strconv.Itoa(s.Port)
}

func defaultPort(secure bool) int {
	if secure {
		return 443
	}
	return 80
}

func (s Server) key() string {
	if s.Key == "" {
		return defaultKey
	}
	return s.Key
}

func (s Server) base(scheme string) string {
	if s.Secure {
		scheme += "s"
	}
	return scheme + "://" + s.Host + ":" + strconv.Itoa(s.Port) + s.Path
}

// socketURL is where a client opens its WebSocket.
func (s Server) socketURL(id, token string) string {
	return s.base("ws") + "peerjs?key=" + url.QueryEscape(s.key()) + "&id=" + url.QueryEscape(id) +
		"&token=" + url.QueryEscape(token) + "&version=" + protocolVersion
}

// idURL is where a client asks for an id. ts only keeps caches away.
func (s Server) idURL(ts string) string {
	return s.base("http") + url.PathEscape(s.key()) + "/id?ts=" + ts + "&version=" + protocolVersion
}

// Fields is a server as an object of a configured list. Secure nil means as Bare says.
type Fields struct {
	Host   string `json:"host"`
	Port   int    `json:"port"`
	Path   string `json:"path"`
	Secure *bool  `json:"secure"`
	Key    string `json:"key"`
}

// Server checks and normalises the fields.
func (f Fields) Server(bare Bare) (Server, error) {
	if !validHost(f.Host) {
		return Server{}, fmt.Errorf("signal: host %q: not a host name or address", f.Host)
	}
	secure := bare != BarePlain
	if f.Secure != nil {
		secure = *f.Secure
	}
	if f.Port == 0 {
		f.Port = defaultPort(secure)
	}
	path, ok := cleanPath(f.Path)
	if !ok || f.Port < 1 || f.Port > 65535 {
		return Server{}, fmt.Errorf("signal: server %q: bad port or path", f.Host)
	}
	return Server{Host: f.Host, Port: f.Port, Path: path, Secure: secure, Key: f.Key}, nil
}

// ParseServer reads one server spec (spec wire.md 2.1): cloud, host, host:port, host:port/path, or one of these after
// wss:// ws:// https:// http://.
func ParseServer(spec string, bare Bare) (Server, error) {
	text := strings.TrimSpace(spec)
	if text == "cloud" || text == cloudHost {
		return Cloud(), nil
	}
	bad := fmt.Errorf("signal: server %q: want host[:port][/path], optionally after wss:// or ws://", spec)
	scheme, rest, hasScheme := strings.Cut(text, "://")
	if !hasScheme {
		rest = text
	}
	host, portText, pathText, ok := splitAddress(rest)
	if !ok || !validHost(host) {
		return Server{}, bad
	}
	s := Server{Host: host}
	if s.Path, ok = cleanPath(pathText); !ok {
		return Server{}, bad
	}
	var err error
	if portText != "" {
		if s.Port, err = strconv.Atoi(portText); err != nil || s.Port < 1 || s.Port > 65535 || len(portText) > 5 {
			return Server{}, bad
		}
	}
	if !hasScheme {
		s.Secure = bare == BareTLS || bare == BareFlag && (portText == "" || pathText != "" || s.Port == 443)
		if s.Port == 0 {
			s.Port = 443
		}
		s.spec = host
		if portText != "" {
			s.spec += ":" + strconv.Itoa(s.Port)
		}
		s.spec += strings.TrimSuffix(s.Path, "/")
		return s, nil
	}
	switch scheme {
	case "wss", "https":
		s.Secure = true
	case "ws", "http":
	default:
		return Server{}, bad
	}
	if s.Port == 0 {
		s.Port = defaultPort(s.Secure)
	}
	return s, nil
}

// splitAddress cuts host[:port][/path]. An empty port after a colon is an error.
func splitAddress(s string) (host, port, path string, ok bool) {
	if i := strings.IndexByte(s, '/'); i >= 0 {
		s, path = s[:i], s[i:]
	}
	host = s
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		host, port = s[:i], s[i+1:]
		if port == "" || strings.Trim(port, "0123456789") != "" {
			return "", "", "", false
		}
	}
	return host, port, path, true
}

func validHost(h string) bool {
	if inner, ok := strings.CutPrefix(h, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		return ok && err == nil && a.Is6() && a.Zone() == ""
	}
	if len(h) > 253 {
		return false
	}
	for label := range strings.SplitSeq(h, ".") {
		if label == "" || strings.ContainsFunc(label, notHostRune) {
			return false
		}
	}
	return true
}

func notHostRune(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-')
}

// cleanPath gives a path its slashes. Characters that would change the meaning of a URL are refused.
func cleanPath(p string) (string, bool) {
	p = strings.Trim(p, "/")
	if len(p) > 256 || strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("?#%\\\"<>", r) }) {
		return "", false
	}
	if p == "" {
		return "/", true
	}
	return "/" + p + "/", true
}

// ParseList reads a comma list as a flag gives it: order kept, unusable entries and duplicates dropped. An empty list is
// the cloud; a list in which nothing is usable is ErrNoServer.
func ParseList(list string, bare Bare) ([]Server, error) {
	if strings.TrimSpace(list) == "" {
		return []Server{Cloud()}, nil
	}
	servers := usable(strings.Split(list, ","), bare)
	if len(servers) == 0 {
		return nil, fmt.Errorf("signal: %q: %w", list, ErrNoServer)
	}
	return servers, nil
}

// FirstUsable returns the servers of the first list in which anything can be used, else the cloud: a link's own list
// beats a configured one.
func FirstUsable(bare Bare, lists ...[]string) []Server {
	for _, l := range lists {
		if servers := usable(l, bare); len(servers) > 0 {
			return servers
		}
	}
	return []Server{Cloud()}
}

func usable(specs []string, bare Bare) []Server {
	var out []Server
	seen := map[string]bool{}
	for _, spec := range specs {
		s, err := ParseServer(spec, bare)
		if err != nil || seen[s.String()] {
			continue
		}
		seen[s.String()] = true
		out = append(out, s)
	}
	return out
}

// ValidID reports whether id can be registered: letters and digits, in groups joined by single spaces, dashes or
// underscores.
func ValidID(id string) bool {
	word := false
	for i := range len(id) {
		c := id[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
			word = true
		case (c == ' ' || c == '_' || c == '-') && word:
			word = false
		default:
			return false
		}
	}
	return word
}

// ReconnectDelay is the wait before reconnect attempt n, counted from 0 (spec wire.md 2.3).
func ReconnectDelay(n int) time.Duration {
	if n >= 4 {
		return 30 * time.Second
	}
	return 2 * time.Second << max(n, 0)
}
