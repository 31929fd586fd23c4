package signal

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// firstAccept tells when a server first looks for a client.
type firstAccept struct {
	net.Listener
	once   sync.Once
	looked chan struct{}
}

// Accept waits for a client.
func (l *firstAccept) Accept() (net.Conn, error) {
	l.once.Do(func() { close(l.looked) })
	return l.Listener.Accept()
}

// TestFirstClientIsNotTurnedAway: while the hub can't be opened yet, nobody is served.
func TestFirstClientIsNotTurnedAway(t *testing.T) {
	l, err := Listen(t.Context(), ListenOptions{Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	spy := &firstAccept{Listener: l.ln, looked: make(chan struct{})}
	l.ln = spy
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	l.hub.mu.Lock()
	go func() { done <- l.Run(ctx) }()
	select {
	case <-spy.looked:
		t.Error("the server served before its hub took clients")
	case <-time.After(50 * time.Millisecond):
	}
	l.hub.mu.Unlock()
	<-spy.looked
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
