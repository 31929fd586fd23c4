package signal

import (
	"context"
	"net"
	"testing"
)

// firstAccept notes whether the hub took clients when the server first looked for one.
type firstAccept struct {
	net.Listener
	hub    *Hub
	open   bool
	looked chan struct{}
}

// Accept is called by one goroutine.
func (l *firstAccept) Accept() (net.Conn, error) {
	select {
	case <-l.looked:
	default:
		l.hub.mu.Lock()
		l.open = !l.hub.closed
		l.hub.mu.Unlock()
		close(l.looked)
	}
	return l.Listener.Accept()
}

func TestFirstClientIsNotTurnedAway(t *testing.T) {
	for range 50 {
		l, err := Listen(t.Context(), ListenOptions{Host: "127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		spy := &firstAccept{Listener: l.ln, hub: l.hub, looked: make(chan struct{})}
		l.ln = spy
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		<-spy.looked
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if !spy.open {
			t.Fatal("the server served before its hub took clients")
		}
	}
}
