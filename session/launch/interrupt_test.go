package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pooled/session"
)

func TestDriverLinesGoToGPUProblemsOnly(t *testing.T) {
	noGPU := &session.Problem{What: "no GPU", Why: "none answered", Exit: session.ExitNoGPU}
	lines := strings.Fields("one two three four five six seven")
	for _, c := range []struct {
		name  string
		err   error
		lines []string
		want  string
	}{
		{"no error", nil, lines, "<nil>"},
		{"the last six", noGPU, lines, "no GPU: none answered; the driver said: two; three; four; five; six; seven"},
		{"nothing said", noGPU, nil, "no GPU: none answered"},
		{"wrapped", fmt.Errorf("open: %w", noGPU), lines[:1], "no GPU: none answered; the driver said: one"},
		{"another problem", &session.Problem{What: "no room", Exit: session.ExitNoRoom}, lines, "no room"},
		{"no problem at all", errors.New("plain"), lines, "plain"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fmt.Sprint(AppendLines(c.err, c.lines)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	if noGPU.Why != "none answered" {
		t.Errorf("the problem itself was changed: %q", noGPU.Why)
	}
}

func TestUnlessHungUp(t *testing.T) {
	broken, problem := errors.New("terminal: EOF"), &session.Problem{What: "the host left"}
	for _, c := range []struct {
		name  string
		err   error
		after time.Duration // when the signal comes; 0 never
		want  error
	}{
		{"nothing broke", nil, time.Nanosecond, nil},
		{"the terminal was closed", broken, time.Nanosecond, nil},
		{"the signal comes late", broken, hangupTime - 1, nil},
		{"no signal", broken, 0, broken},
		{"a problem of the room stays", problem, time.Nanosecond, problem},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.after > 0 {
					defer time.AfterFunc(c.after, cancel).Stop()
				}
				if got := UnlessHungUp(ctx, c.err); !errors.Is(got, c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestExitOf(t *testing.T) {
	stopped := func(s os.Signal) context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(Interrupted{s})
		return ctx
	}
	problem := &session.Problem{Exit: session.ExitNoRoom}
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want int
	}{
		{"a problem", context.Background(), problem, session.ExitNoRoom},
		{"any error", context.Background(), errors.New("plain"), session.ExitFailed},
		{"ctrl-c", stopped(os.Interrupt), fmt.Errorf("ask: %w", context.Canceled), session.ExitInterrupted},
		{"sigterm", stopped(syscall.SIGTERM), context.Canceled, session.ExitOK},
		{"sighup", stopped(syscall.SIGHUP), context.Canceled, session.ExitOK},
		{"a problem while a signal came", stopped(os.Interrupt), problem, session.ExitNoRoom},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ExitOf(c.ctx, c.err); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
