package launch

import (
	"context"
	"fmt"
	"os"

	"pooled/catalog"
	"pooled/netmesh/signal"
	"pooled/session"
)

// Streams are a command's standard streams.
type Streams struct{ In, Out, Err *os.File }

// ListCommand prints the catalogue.
type ListCommand struct {
	Models string `help:"Where models are kept (default: ~/.pooled/models; also POOLED_MODELS)." placeholder:"DIR"`
}

// Run prints it.
func (c *ListCommand) Run(s Streams) error {
	store, err := catalog.OpenStore(c.Models)
	if err != nil {
		return err
	}
	return catalog.List(s.Out, store)
}

// SignalCommand is a signaling server.
type SignalCommand struct {
	Host      string `help:"The address to listen on (default: ${default})." default:"127.0.0.1" placeholder:"ADDR"`
	Port      int    `help:"The port; 0 picks a free one (default: ${default})." default:"9000" placeholder:"N"`
	ExitOnEOF bool   `hidden:"" help:"End when standard input ends."`
}

// Run serves introductions until ctx ends.
func (c *SignalCommand) Run(ctx context.Context, s Streams) error {
	if c.Port < 0 || c.Port > 65535 {
		return Usage("--port takes a number from 0 to 65535: got %d", c.Port)
	}
	ctx, stop := UntilEOF(ctx, s.In, c.ExitOnEOF)
	defer stop()
	l, err := signal.Listen(ctx, signal.ListenOptions{Host: c.Host, Port: c.Port})
	if err != nil {
		return &session.Problem{
			Code: "listen", What: "the signaling server can't start", Why: err.Error(),
			Do: "another program may hold the port: pick another with --port", Exit: session.ExitFailed, Err: err,
		}
	}
	if _, err := fmt.Fprintf(s.Out, "signaling server on %s\n", l.Addr()); err != nil {
		return err
	}
	return l.Run(ctx)
}
