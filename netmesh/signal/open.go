package signal

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// Waits for a server to register us (spec wire.md 2.1).
const (
	openTimeout     = 8 * time.Second
	openTimeoutLast = 20 * time.Second
)

// Options opens a Client.
type Options struct {
	// Servers are tried in order; empty means the cloud.
	Servers []Server
	// ID is the wanted id; "" asks the server for one.
	ID string
	// Deliver gets events, one at a time, from goroutines of Run. It may call Send, and should not wait long: messages
	// wait behind it.
	Deliver func(Event)
	// Log gets lines for people who look into trouble; nil drops them.
	Log func(string)
	// Dial opens TCP connections; nil means the system's network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Open registers with the first server of the list that can be used and returns the client, whose Run has to be called
// next. The error is a *DownError when none answered; ErrIDTaken, ErrInvalidKey and ErrInvalidID end the search early.
func Open(ctx context.Context, o Options) (*Client, error) {
	if o.ID != "" && (!ValidID(o.ID) || len(o.ID) > maxID) {
		return nil, fmt.Errorf("signal: %q: %w", o.ID, ErrInvalidID)
	}
	if len(o.Servers) == 0 {
		o.Servers = []Server{Cloud()}
	}
	if o.Deliver == nil {
		o.Deliver = func(Event) {}
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: openTimeoutLast}).DialContext
	}
	c := &Client{
		o: o, token: newToken(), hurry: make(chan struct{}, 1), moves: make(chan *move), ended: make(chan struct{}),
	}
	down := &DownError{}
	for i, s := range o.Servers {
		limit := openTimeout
		if i == len(o.Servers)-1 {
			limit = openTimeoutLast
		}
		conn, id, err := c.open(ctx, s, o.ID, limit)
		if err == nil {
			c.conn, c.at, c.id = conn, i, id
			c.out = make(chan []byte, backlog) // what is sent before Run waits for it
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("signal: %w", ctx.Err())
		}
		if !kindOf(err).handsOver() {
			return nil, fmt.Errorf("signal: %s: %w", s.Label(), err)
		}
		o.Log(fmt.Sprintf("signal: %s: %v", s.Label(), err))
		down.Tried = append(down.Tried, Attempt{Server: s, Err: err})
	}
	return nil, fmt.Errorf("signal: %w", down)
}

// newToken returns the secret that lets this client, and nobody else, come back under its id.
func newToken() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// open registers at one server within limit; without an id it asks for one first.
func (c *Client) open(ctx context.Context, s Server, id string, limit time.Duration) (*websocket.Conn, string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &openError{kindSilent, fmt.Errorf("no answer in %v", limit)})
	defer cancel()
	var err error
	if id == "" {
		if id, err = c.requestID(ctx, s); err != nil {
			return nil, "", causeOf(ctx, err)
		}
	}
	conn, err := c.dial(ctx, s, id)
	if err != nil {
		return nil, "", causeOf(ctx, err)
	}
	for {
		m, err := readMessage(ctx, conn)
		if err == nil {
			err = m.refusal()
		}
		if err != nil {
			_ = conn.CloseNow() // it is of no use any more
			return nil, "", causeOf(ctx, err)
		}
		if m.Type == TypeOpen {
			return conn, id, nil
		}
	}
}

// causeOf prefers the reason the context ended for over what the network made of it.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// httpClient makes the requests of one attempt. A transport of net/http goes on dialing after its request was given up;
// this one stops with ctx.
func (c *Client) httpClient(ctx context.Context) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: openTimeout,
		DialContext: func(dialCtx context.Context, network, addr string) (net.Conn, error) {
			dialCtx, cancel := context.WithCancel(dialCtx)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			return c.o.Dial(dialCtx, network, addr)
		},
	}}
}

// requestID asks the server for an id.
func (c *Client) requestID(ctx context.Context, s Server) (string, error) {
	ts := strconv.FormatInt(time.Now().UnixMilli(), 10) + rand.Text()[:8]
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.idURL(ts), nil)
	if err != nil {
		return "", &openError{kindNetwork, err}
	}
	res, err := c.httpClient(ctx).Do(req)
	if err != nil {
		return "", &openError{kindNetwork, withoutURL(err)}
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxID+1))
	id := strings.TrimSpace(string(body))
	switch {
	case err != nil:
		return "", &openError{kindServer, fmt.Errorf("id request: %w", err)}
	case res.StatusCode != http.StatusOK:
		return "", &openError{kindServer, fmt.Errorf("id request: status %d", res.StatusCode)}
	case !ValidID(id) || len(id) > maxID:
		return "", &openError{kindServer, fmt.Errorf("id request: %.40q is not an id", id)}
	}
	return id, nil
}

// dial opens the WebSocket; ctx bounds the handshake only.
func (c *Client) dial(ctx context.Context, s Server, id string) (*websocket.Conn, error) {
	//nolint:bodyclose // the library closes the body, or hands it over with the connection
	conn, res, err := websocket.Dial(ctx, s.socketURL(id, c.token), &websocket.DialOptions{HTTPClient: c.httpClient(ctx)})
	if err != nil {
		if res != nil {
			return nil, &openError{kindSocket, fmt.Errorf("websocket: status %d", res.StatusCode)}
		}
		return nil, &openError{kindNetwork, withoutURL(err)}
	}
	conn.SetReadLimit(maxIncoming)
	return conn, nil
}

// withoutURL drops the URL, and with it the token, from an HTTP client's error.
func withoutURL(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

// readMessage returns the next message. What is not a message is passed over.
func readMessage(ctx context.Context, conn *websocket.Conn) (Message, error) {
	for {
		typ, b, err := conn.Read(ctx)
		if err != nil {
			return Message{}, &openError{kindSocketClosed, fmt.Errorf("socket closed: %w", err)}
		}
		if typ != websocket.MessageText {
			continue
		}
		if m, err := decode(b); err == nil {
			return m, nil
		}
	}
}
