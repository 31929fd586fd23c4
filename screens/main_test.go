package screens_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pooled/screens"
	"pooled/screens/screenstest"
	"pooled/session"
)

// childMode makes the test binary be a console on the terminal it was started on, see pty_test.go.
const childMode = "POOLED_TEST_CONSOLE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		os.Exit(console(mode))
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// console runs the host's page on the real terminal until something ends it.
func console(mode string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	st := room()
	fake := screenstest.NewFake(st, time.Now())
	fake.On("ask", func(text string) {
		if strings.Contains(text, "\n") {
			fake.End(&session.Problem{What: strings.ReplaceAll(text, "\n", "/"), Exit: session.ExitNoRoom})
		}
		switch text {
		case "panic in the event loop":
			panic("a test panicked in the event loop")
		case "panic elsewhere":
			go func() {
				defer screens.RestoreOnPanic()
				panic("a test panicked elsewhere")
			}()
		case "print":
			fmt.Println("a driver printed this")
		case "end":
			fake.End(&session.Problem{Code: "hostgone", What: "the room is over", Why: "the host left",
				Do: "ask for a new code", Exit: session.ExitNoRoom})
		}
	})
	exit, err := screens.Run(ctx, screens.RunOptions{View: fake, Role: session.Host, Chat: true})
	if err != nil {
		p := session.AsProblem(err)
		fmt.Fprintf(os.Stderr, "%s: %s: %s\n", p.What, p.Why, p.Do)
	}
	return exit
}
