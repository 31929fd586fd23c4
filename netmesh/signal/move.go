package signal

import (
	"context"
	"errors"
	"fmt"

	"github.com/coder/websocket"
)

// errMoved ends the session of a socket that another one replaces.
var errMoved = errors.New("moved to another server")

// move is a socket on its way to Run. done is nil for one that Run opened itself.
type move struct {
	conn *websocket.Conn
	at   int // index of its server
	done chan struct{}
}

// Hurry makes a client that waits for its next attempt to come back try now. It does nothing while the client is
// registered.
func (c *Client) Hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out != nil {
		return
	}
	select {
	case c.hurry <- struct{}{}:
	default: // somebody has
	}
}

// Advance moves the client to the next server of its list that registers it, under the same id and token: for a joiner
// whose room is not on the server that answered (spec wire.md 2.1.4). The old socket lives until the new server has said
// OPEN; then Up names the new server, without a Down before it, and Advance returns nil.
//
// The error is ErrNoServer when no later server of the list can be used, or what the server answered that refused; the
// client stays where it is then. Advance is called while Run runs, by one goroutine at a time and not from Deliver.
func (c *Client) Advance(ctx context.Context) error {
	c.mu.Lock()
	at := c.at
	c.mu.Unlock()
	for at++; at < len(c.o.Servers); at++ {
		s := c.o.Servers[at]
		limit := openTimeout
		if at == len(c.o.Servers)-1 {
			limit = openTimeoutLast
		}
		conn, _, err := c.open(ctx, s, c.id, limit)
		switch {
		case err == nil:
			return c.handOver(ctx, &move{conn: conn, at: at, done: make(chan struct{})})
		case ctx.Err() != nil:
			return fmt.Errorf("signal: %w", ctx.Err())
		case !kindOf(err).handsOver():
			return fmt.Errorf("signal: %s: %w", s.Label(), err)
		}
		c.o.Log(fmt.Sprintf("signal: %s: %v", s.Label(), err))
	}
	return fmt.Errorf("signal: after %s: %w", c.Server().Label(), ErrNoServer)
}

// handOver gives Run a socket and waits until it is in use.
func (c *Client) handOver(ctx context.Context, m *move) error {
	select {
	case c.moves <- m:
	case <-ctx.Done():
		_ = m.conn.CloseNow() // never used
		return fmt.Errorf("signal: %w", ctx.Err())
	case <-c.ended:
		_ = m.conn.CloseNow()
		return fmt.Errorf("signal: %w", ErrDisconnected)
	}
	select {
	case <-m.done:
		return nil
	case <-c.ended:
		return fmt.Errorf("signal: %w", ErrDisconnected)
	}
}
