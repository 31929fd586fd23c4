package signal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"
)

const (
	heartbeatEvery = 5 * time.Second
	writeTimeout   = 10 * time.Second
	// settle: an opened socket that is not refused for so long is registered. A server that takes a client back under its
	// token sends no OPEN.
	settle = 2 * time.Second
	// backlog is how many messages may wait for the writer.
	backlog = 512
	// roundOfTries is how many attempts the server we were on gets before the list is walked.
	roundOfTries = 6
)

// Client is a registration at a signaling server. Open makes one.
type Client struct {
	o     Options
	id    string
	token string
	conn  *websocket.Conn // registered by Open, taken over by Run

	hurry chan struct{} // holds one: don't wait for the next attempt
	moves chan *move
	ended chan struct{} // closed when Run returns

	mu  sync.Mutex
	at  int         // index of the server in use
	out chan []byte // nil while down
}

// ID returns the registered id. It stays the same for the life of the client.
func (c *Client) ID() string { return c.id }

// Server returns the server in use, or the one tried last while down.
func (c *Client) Server() Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.o.Servers[c.at]
}

// Send queues a message for the server. It fails at once with ErrDisconnected, ErrBacklog or ErrTooLarge.
func (c *Client) Send(m Message) error {
	m.Src = ""
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("signal: %s to %q: %w", m.Type, m.Dst, err)
	}
	if len(b) > MaxMessage {
		return fmt.Errorf("signal: %s to %q: %d bytes: %w", m.Type, m.Dst, len(b), ErrTooLarge)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out == nil {
		return fmt.Errorf("signal: %s to %q: %w", m.Type, m.Dst, ErrDisconnected)
	}
	select {
	case c.out <- b:
		return nil
	default:
		return fmt.Errorf("signal: %s to %q: %w", m.Type, m.Dst, ErrBacklog)
	}
}

// Abandon closes a client whose Run is never called.
func (c *Client) Abandon() {
	_ = c.conn.CloseNow()
}

// Run keeps the registration until ctx ends, and returns ctx's error then. It is called once.
func (c *Client) Run(ctx context.Context) error {
	defer close(c.ended)
	var r retries
	c.mu.Lock()
	s := &session{c: c, conn: c.conn, out: c.out, registered: true}
	c.mu.Unlock()
	for {
		err := s.run(ctx)
		if s.wasUp {
			r = retries{}
		}
		next := s.moved
		if next == nil {
			r.note(err)
			c.tellRefused(&r, err)
			if next, err = c.redial(ctx, &r); err != nil {
				return err
			}
		}
		c.mu.Lock()
		c.at = next.at
		c.mu.Unlock()
		s = &session{c: c, conn: next.conn, out: make(chan []byte, backlog), registered: next.done != nil, done: next.done}
	}
}

// tellRefused delivers Refused, once for each sort of refusal since the client was registered.
func (c *Client) tellRefused(r *retries, err error) {
	var no refusedError
	if !errors.As(err, &no) || r.refused == kindOf(err) {
		return
	}
	r.refused = kindOf(err)
	c.o.Deliver(Refused{Server: c.Server(), Err: err})
}

// retries counts attempts since the client was last registered.
type retries struct {
	n      int // attempts so far
	silent int // failures since a server last answered anything
	// refused is the sort of the last refusal that was told.
	refused kind
}

func (r *retries) note(err error) {
	if kindOf(err).answered() {
		r.silent = 0
		return
	}
	r.silent++
}

// redial opens a socket again, waiting before each attempt. Its error is ctx's.
func (c *Client) redial(ctx context.Context, r *retries) (*move, error) {
	for {
		timer := time.NewTimer(ReconnectDelay(r.n))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case next := <-c.moves:
			timer.Stop()
			return next, nil
		case <-c.hurry:
			timer.Stop()
		case <-timer.C:
		}
		r.n++
		c.mu.Lock()
		if r.silent >= roundOfTries {
			c.at = (c.at + 1) % len(c.o.Servers)
		}
		at := c.at
		c.mu.Unlock()
		limit := ReconnectDelay(r.n) // then the next attempt is due
		dialCtx, cancel := context.WithTimeoutCause(ctx, limit, &openError{kindSilent, fmt.Errorf("no answer in %v", limit)})
		conn, err := c.dial(dialCtx, c.o.Servers[at], c.id)
		if err == nil {
			cancel()
			return &move{conn: conn, at: at}, nil
		}
		err = causeOf(dialCtx, err)
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r.note(err)
		c.o.Log(fmt.Sprintf("signal: %s: attempt %d: %v", c.o.Servers[at].Label(), r.n, err))
	}
}

// session is one socket: a reader and a writer.
type session struct {
	c    *Client
	conn *websocket.Conn
	out  chan []byte
	// registered: the server has said OPEN; without it, it may still refuse us.
	registered bool
	done       chan struct{} // closed when up; may be nil
	once       sync.Once
	wasUp      bool  // written in once, read after run
	moved      *move // the socket that takes this one's place; read after run
}

// run serves the socket until it fails, another one takes its place or ctx ends.
func (s *session) run(ctx context.Context) error {
	g, sctx := errgroup.WithContext(ctx)
	if s.registered {
		s.up()
	}
	g.Go(func() error { return s.untilMoved(sctx) })
	g.Go(func() error { return s.read(sctx) })
	g.Go(func() error { return s.write(sctx) })
	err := g.Wait()
	_ = s.conn.CloseNow() // closed already, as a rule
	s.c.mu.Lock()
	s.c.out = nil
	server := s.c.o.Servers[s.c.at]
	s.c.mu.Unlock()
	if s.wasUp && s.moved == nil && ctx.Err() == nil {
		s.c.o.Deliver(Down{Server: server, Err: err})
	}
	return err
}

// up makes the session the client's connection. Whoever calls it meanwhile waits until Up was delivered.
func (s *session) up() {
	s.once.Do(func() {
		s.wasUp = true
		s.c.mu.Lock()
		s.c.out = s.out
		server := s.c.o.Servers[s.c.at]
		s.c.mu.Unlock()
		s.c.o.Deliver(Up{Server: server})
		if s.done != nil {
			close(s.done)
		}
	})
}

// untilMoved ends the session when Advance brings another socket.
func (s *session) untilMoved(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case s.moved = <-s.c.moves:
		return errMoved
	}
}

func (s *session) read(ctx context.Context) error {
	for {
		m, err := readMessage(ctx, s.conn)
		if err != nil {
			return err
		}
		if err := m.refusal(); err != nil {
			return err
		}
		s.up() // OPEN, or a message that only a registered client gets
		switch m.Type {
		case TypeOffer, TypeAnswer, TypeCandidate, TypeExpire, TypeLeave:
			s.c.o.Deliver(m)
		}
	}
}

var heartbeat = []byte(`{"type":"HEARTBEAT"}`)

func (s *session) write(ctx context.Context) error {
	beat := time.NewTicker(heartbeatEvery)
	defer beat.Stop()
	settled := time.NewTimer(settle)
	defer settled.Stop()
	for {
		var b []byte
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-settled.C:
			s.up()
			continue
		case <-beat.C:
			b = heartbeat
		case b = <-s.out:
		}
		if err := writeText(ctx, s.conn, b); err != nil {
			return &openError{kindSocketClosed, fmt.Errorf("socket closed: %w", err)}
		}
	}
}

// writeText sends one text message within the write timeout.
func writeText(ctx context.Context, conn *websocket.Conn, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, b)
}
