package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"pooled/netmesh/relay"
	"pooled/netmesh/signal"
	"pooled/session"
)

// SignalCommand is a signaling server.
type SignalCommand struct {
	Host          string   `help:"The address to listen on, 0.0.0.0 for all of them (default: ${default})." default:"127.0.0.1" placeholder:"ADDR"`
	Port          int      `help:"The port; 0 picks a free one (default: ${default})." default:"9000" placeholder:"N"`
	Path          string   `help:"The path under which it answers (default: ${default})." default:"/" placeholder:"PATH"`
	TLSCert       string   `name:"tls-cert" help:"A certificate (PEM) for wss:// addresses, with --tls-key." placeholder:"FILE"`
	TLSKey        string   `name:"tls-key" help:"The certificate's key (PEM)." placeholder:"FILE"`
	MaxClients    int      `help:"How many clients may be here at a time (default: ${default})." default:"5000" placeholder:"N"`
	MaxPerAddress int      `help:"How many of them from one address, 0 for any number (default: ${default})." default:"64" placeholder:"N"`
	MaxMessage    int      `help:"The largest message, in bytes (default: ${default})." default:"65536" placeholder:"N"`
	Rate          int      `help:"Messages per second that a client may send (default: ${default})." default:"100" placeholder:"N"`
	Turn          []string `name:"turn" help:"A relay that POST api/turn hands out passwords for; may be repeated." placeholder:"URL" sep:"none"`
	TurnSecret    string   `name:"turn-secret-file" help:"The file with the secret that the relay shares." placeholder:"FILE"`
	TurnTTL       string   `name:"turn-ttl" help:"How many seconds a relay's password lives, 600 to 86400 (default: 21600)." placeholder:"S"`
	TurnOrigin    []string `name:"turn-origin" help:"A site whose pages may ask for passwords too; may be repeated." placeholder:"ORIGIN" sep:"none"`
	Metrics       float64  `help:"Print the server's figures every so many seconds when they changed." placeholder:"SECONDS"`
	ExitOnEOF     bool     `hidden:"" help:"End when standard input ends."`
}

// Bounds of the flags.
const (
	minSignalMessage = 4 << 10
	maxSignalMessage = 240 << 10 // what a client takes, with the room that the sender's id needs
	maxSecretFile    = 4 << 10
)

// Run serves introductions until ctx ends.
func (c *SignalCommand) Run(ctx context.Context, s Streams) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	ctx, stop := UntilEOF(ctx, s.In, c.ExitOnEOF)
	defer stop()
	l, err := signal.Listen(ctx, o)
	if errors.Is(err, signal.ErrCertificate) {
		return usageProblem("tls", err, "give --tls-cert and --tls-key a certificate and its key in PEM files")
	}
	if err != nil {
		return &session.Problem{
			Code: "listen", What: "the signaling server can't start", Why: err.Error(),
			Do: "another program may hold the port: pick another with --port", Exit: session.ExitFailed, Err: err,
		}
	}
	if err := sayAddresses(s.Out, l); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.Run(ctx) })
	if c.Metrics > 0 {
		g.Go(func() error { return reportStats(ctx, s.Out, l.Stats, time.Duration(c.Metrics*float64(time.Second))) })
	}
	return g.Wait()
}

// options checks the flags.
func (c *SignalCommand) options() (signal.ListenOptions, error) {
	var none signal.ListenOptions
	for _, f := range []struct {
		name            string
		got, least, top int
	}{
		{"--port", c.Port, 0, 65535},
		{"--max-clients", c.MaxClients, 1, 1_000_000},
		{"--max-per-address", c.MaxPerAddress, 0, 1_000_000},
		{"--max-message", c.MaxMessage, minSignalMessage, maxSignalMessage},
		{"--rate", c.Rate, 1, 100_000},
	} {
		if f.got < f.least || f.got > f.top {
			return none, Usage("%s takes a number from %d to %d: got %d", f.name, f.least, f.top, f.got)
		}
	}
	if !(c.Metrics == 0 || c.Metrics >= 0.1 && c.Metrics <= 86400) {
		return none, Usage("--metrics takes a number of seconds from 0.1 to 86400: got %g", c.Metrics)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return none, Usage("--tls-cert and --tls-key belong together")
	}
	relays, err := c.relays()
	if err != nil {
		return none, err
	}
	perAddress := c.MaxPerAddress
	if perAddress == 0 {
		perAddress = -1
	}
	hub := signal.HubOptions{
		Path: c.Path, MaxClients: c.MaxClients, PerAddress: perAddress, MaxMessage: c.MaxMessage, Rate: c.Rate, Relays: relays,
	}
	if _, err := signal.NewHub(hub); err != nil {
		return none, usageProblem("path", err, "give --path letters, digits and dashes, like /signal")
	}
	return signal.ListenOptions{Host: c.Host, Port: c.Port, CertFile: c.TLSCert, KeyFile: c.TLSKey, HubOptions: hub}, nil
}

// relays reads the --turn flags; nil without any.
func (c *SignalCommand) relays() (*signal.Relays, error) {
	if len(c.Turn) == 0 && c.TurnSecret == "" && c.TurnTTL == "" && len(c.TurnOrigin) == 0 {
		return nil, nil //nolint:nilnil // no relays is not an error
	}
	if len(c.Turn) == 0 || c.TurnSecret == "" {
		return nil, Usage("--turn and --turn-secret-file belong together: a relay, and the secret it makes passwords from")
	}
	r := &signal.Relays{TTL: relay.TTL(c.TurnTTL)}
	if n, err := strconv.Atoi(c.TurnTTL); c.TurnTTL != "" && (err != nil || n < 600 || n > 86400) {
		return nil, Usage("--turn-ttl takes a number of seconds from 600 to 86400: got %s", c.TurnTTL)
	}
	for _, text := range c.Turn {
		u, ok := relay.ValidURL(text)
		if !ok {
			return nil, Usage("--turn takes turn:HOST[:PORT] or turns:HOST[:PORT], with ?transport=udp or tcp if wanted")
		}
		r.URLs = append(r.URLs, u)
	}
	for _, text := range c.TurnOrigin {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || text != u.Scheme+"://"+u.Host {
			return nil, Usage("--turn-origin takes a site like https://pooled.example: got %q", text)
		}
		r.Origins = append(r.Origins, text)
	}
	secret, err := readSecret(c.TurnSecret)
	if err != nil {
		return nil, usageProblem("turn-secret", err, "--turn-secret-file takes a file with one line: coturn's static-auth-secret")
	}
	r.Secret = secret
	return r, nil
}

// readSecret is the one line of a file. Its errors don't show it.
func readSecret(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("the secret can't be read: %w", err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", fmt.Errorf("the secret can't be read: %w", err)
	}
	secret := strings.TrimSpace(string(b))
	if secret == "" || len(b) > maxSecretFile || strings.ContainsAny(secret, "\r\n") {
		return "", fmt.Errorf("%s does not hold one line with a secret", file)
	}
	return secret, nil
}

// sayAddresses prints where the server is: its socket, then each address as --signal takes it.
func sayAddresses(w io.Writer, l *signal.Listener) error {
	if _, err := fmt.Fprintf(w, "signaling server on %s\n", l.Addr()); err != nil {
		return err
	}
	for _, server := range l.Servers() {
		if _, err := fmt.Fprintf(w, "  --signal %s\n", server); err != nil {
			return err
		}
	}
	return nil
}

// reportStats prints a line every so often when the figures changed.
func reportStats(ctx context.Context, w io.Writer, stats func() signal.Stats, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	before := stats()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := stats()
		if !now.Changed(before) {
			before.Uptime = now.Uptime // traffic is counted from here on
			continue
		}
		if _, err := fmt.Fprintln(w, now.Line(before)); err != nil {
			return fmt.Errorf("figures: %w", err)
		}
		before = now
	}
}
