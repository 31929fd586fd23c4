package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"pooled/session"
)

// Interrupted is the cause of a context that a signal ended.
type Interrupted struct{ Signal os.Signal }

// Error names the signal.
func (e Interrupted) Error() string { return "interrupted by " + e.Signal.String() }

// UntilSignal returns a context that ends with the first SIGINT, SIGTERM or SIGHUP; the cause is an Interrupted. A second
// one calls now, which is expected not to return. stop releases the signals and waits.
func UntilSignal(now func()) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for first := true; ; first = false {
			select {
			case s := <-caught:
				if first {
					cancel(Interrupted{s})
				} else {
					now()
				}
			case <-quit:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(caught)
		close(quit)
		<-done
		cancel(nil)
	}
}

// hangupTime is how long after a terminal is gone the signal that says so may come.
const hangupTime = 500 * time.Millisecond

// UnlessHungUp is the error of a screen, but nil when its terminal was closed: then reading fails and a signal ends ctx,
// in either order. A *session.Problem is not about the terminal and stays.
func UnlessHungUp(ctx context.Context, err error) error {
	var p *session.Problem
	if err == nil || errors.As(err, &p) {
		return err
	}
	late := time.NewTimer(hangupTime)
	defer late.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-late.C:
		return err
	}
}

// ExitOf is the exit code of an error: that of its Problem, 130 when a person's Ctrl-C ended ctx first, 0 when the system
// asked to end.
func ExitOf(ctx context.Context, err error) int {
	var by Interrupted
	if errors.As(context.Cause(ctx), &by) && errors.Is(err, context.Canceled) {
		if by.Signal == os.Interrupt {
			return session.ExitInterrupted
		}
		return session.ExitOK
	}
	return session.AsProblem(err).Exit
}

// driverLines is how many of a driver's lines go into an error (spec cli.md 8).
const driverLines = 6

// AppendLines adds the last lines of what a GPU driver printed to the reason why the GPU can't be used.
func AppendLines(err error, lines []string) error {
	if err == nil || len(lines) == 0 {
		return err
	}
	p := session.AsProblem(err)
	if p.Exit != session.ExitNoGPU {
		return err
	}
	last := *p
	last.Why += "; the driver said: " + strings.Join(lines[max(0, len(lines)-driverLines):], "; ")
	return &last
}

// slowAfter is when a person wants to know what is being waited for.
const slowAfter = 3 * time.Second

// SayIfSlow writes what is being waited for, unless the function it returns is called within three seconds.
func SayIfSlow(w io.Writer, server string) (fast func()) {
	t := time.AfterFunc(slowAfter, func() {
		_, _ = fmt.Fprintf(w, "still trying to reach the signaling server %s (Ctrl-C stops)\n", server)
	})
	return func() { t.Stop() }
}

// UntilEOF returns a context that, when wanted, also ends when r does: a child ends with the process that holds the other
// end. The reader goroutine ends with r, at the latest with the process.
func UntilEOF(ctx context.Context, r io.Reader, wanted bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if wanted {
		go func() {
			_, _ = io.Copy(io.Discard, r)
			cancel()
		}()
	}
	return ctx, cancel
}
