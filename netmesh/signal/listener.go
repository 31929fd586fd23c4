package signal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// ListenOptions says where a server listens.
type ListenOptions struct {
	Host string // "" means every address of the machine
	Port int    // 0 lets the system choose
	HubOptions
}

// Listener is a signaling server on a TCP socket.
type Listener struct {
	hub *Hub
	ln  net.Listener
}

// Listen binds the address; nothing is served before Run.
func Listen(ctx context.Context, o ListenOptions) (*Listener, error) {
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
	return l, nil
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
	s := Server{Host: "127.0.0.1", Path: l.hub.o.Path}
	if l.hub.o.Key != defaultKey {
		s.Key = l.hub.o.Key
	}
	if a, ok := l.ln.Addr().(*net.TCPAddr); ok {
		s.Port = a.Port
		if !a.IP.IsUnspecified() {
			s.Host = a.IP.String()
		}
		if a.IP.To4() == nil && !a.IP.IsUnspecified() {
			s.Host = "[" + s.Host + "]"
		}
	}
	return s
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
