package signal

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// ListenOptions says where a server listens.
type ListenOptions struct {
	Host string // "" means every address of the machine
	Port int    // 0 lets the system choose
	// CertFile and KeyFile are PEM files: with them the server speaks TLS. They are read once.
	CertFile, KeyFile string
	HubOptions
}

// Listener is a signaling server on a TCP socket.
type Listener struct {
	hub   *Hub
	ln    net.Listener
	names []string // of the certificate
	tls   bool
}

// Listen binds the address; nothing is served before Run.
func Listen(ctx context.Context, o ListenOptions) (*Listener, error) {
	config, names, err := readCertificate(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", net.JoinHostPort(o.Host, strconv.Itoa(o.Port)))
	if err != nil {
		return nil, fmt.Errorf("signal: %w", err)
	}
	l, err := NewListener(ln, o.HubOptions)
	if err != nil {
		_ = ln.Close()
		return nil, err
	}
	if config != nil {
		l.ln, l.names, l.tls = tls.NewListener(ln, config), names, true
	}
	return l, nil
}

// readCertificate returns nil without files, else the configuration with them and the host names the certificate is for.
func readCertificate(certFile, keyFile string) (*tls.Config, []string, error) {
	if certFile == "" && keyFile == "" {
		return nil, nil, nil
	}
	if certFile == "" || keyFile == "" {
		return nil, nil, fmt.Errorf("signal: %w: a certificate and its key belong together", ErrCertificate)
	}
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("signal: %w: %w", ErrCertificate, err)
	}
	var names []string
	for _, name := range cert.Leaf.DNSNames {
		if validHost(name) { // a wildcard is no address
			names = append(names, name)
		}
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, // WebSockets need it
	}, names, nil
}

// NewListener serves on ln, which it owns from then on.
func NewListener(ln net.Listener, o HubOptions) (*Listener, error) {
	hub, err := NewHub(o)
	if err != nil {
		return nil, err
	}
	return &Listener{hub: hub, ln: ln}, nil
}

// ListenAndServe binds and serves until ctx ends.
func ListenAndServe(ctx context.Context, o ListenOptions) error {
	l, err := Listen(ctx, o)
	if err != nil {
		return err
	}
	return l.Run(ctx)
}

// Addr is the bound address.
func (l *Listener) Addr() net.Addr { return l.ln.Addr() }

// Server is the address for clients on this machine; a listener on every address is reached through loopback.
func (l *Listener) Server() Server {
	ip := net.IPv4(127, 0, 0, 1)
	if a, ok := l.ln.Addr().(*net.TCPAddr); ok && !a.IP.IsUnspecified() {
		ip = a.IP
	}
	return l.serverAt(ip.String())
}

// serverAt is the listener under a host name or an address of this machine.
func (l *Listener) serverAt(host string) Server {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	s := Server{Host: host, Path: l.hub.o.Path, Secure: l.tls}
	if l.hub.o.Key != defaultKey {
		s.Key = l.hub.o.Key
	}
	if a, ok := l.ln.Addr().(*net.TCPAddr); ok {
		s.Port = a.Port
	}
	return s
}

// Servers are the addresses under which clients may reach the listener, the most useful first: the names of its
// certificate, else each address of the machine that it is bound to, loopback last. Link-local ones are left out: they
// are none without the name of a network card.
func (l *Listener) Servers() []Server {
	var out []Server
	for _, name := range l.names {
		out = append(out, l.serverAt(name))
	}
	a, ok := l.ln.Addr().(*net.TCPAddr)
	if len(out) > 0 {
		return out
	}
	if !ok || !a.IP.IsUnspecified() {
		return []Server{l.Server()}
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return []Server{l.Server()}
	}
	for _, ip := range reachable(addrs) {
		out = append(out, l.serverAt(ip.String()))
	}
	return append(out, l.Server())
}

// reachable picks the addresses that others may use, IPv4 first.
func reachable(addrs []net.Addr) []netip.Addr {
	var out []netip.Addr
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		if ip = ip.Unmap(); ok && ip.IsGlobalUnicast() {
			out = append(out, ip)
		}
	}
	slices.SortStableFunc(out, func(a, b netip.Addr) int { return cmp.Compare(a.BitLen(), b.BitLen()) })
	return out
}

// Stats returns the hub's figures.
func (l *Listener) Stats() Stats { return l.hub.Stats() }

// Handler returns the hub, for servers that also serve something else. It works while Run runs.
func (l *Listener) Handler() http.Handler { return l.hub }

// Run serves until ctx ends, then closes the socket and every client; it returns nil then, and an error when serving fails
// earlier.
func (l *Listener) Run(ctx context.Context) error {
	g, sctx := errgroup.WithContext(ctx)
	srv := &http.Server{
		Handler: l.hub, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 60 * time.Second, MaxHeaderBytes: 16 << 10,
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2: a WebSocket can't be had over it
		ErrorLog:     log.New(logLines(l.hub.o.Log), "", 0),
	}
	srv.SetKeepAlivesEnabled(true)
	l.hub.begin() // before the first client, who would be told that it is closed
	g.Go(func() error { return l.hub.Run(sctx) })
	g.Go(func() error { return srv.Serve(l.ln) })
	g.Go(func() error {
		<-sctx.Done()
		return srv.Close()
	})
	err := g.Wait()
	if ctx.Err() != nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("signal: %w", err)
}

// logLines gives what net/http says, such as failed TLS handshakes, to a hub's log.
type logLines func(string)

// Write takes one line.
func (f logLines) Write(b []byte) (int, error) {
	f("signal: " + strings.TrimSpace(string(b)))
	return len(b), nil
}
