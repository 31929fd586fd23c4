package headless

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pooled/session"
)

func TestConverseAnswersEachLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, true)
		defer p.over()
		if err := AwaitOnline(t.Context(), p.asker, time.Minute); err != nil {
			t.Fatal(err)
		}
		in, typing := io.Pipe()
		done := make(chan error, 1)
		var out, log bytes.Buffer
		go func() { done <- Converse(t.Context(), p.asker, in, &out, &log) }()
		for _, line := range []string{"one?\n", "\n  two?\n"} {
			p.say("yes")
			if _, err := io.WriteString(typing, line); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // of the bubble: it is answered
		}
		_ = typing.Close()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), "yes\nyes\n"; got != want {
			t.Errorf("answers %q, want %q", got, want)
		}
		want := "pooled chat · room FEA-Q38\n  each line is a question; Ctrl-D leaves\n>>> >>> >>> >>> \n"
		if got := log.String(); got != want {
			t.Errorf("log %q, want %q", got, want)
		}
	})
}

func TestConverseGoesOnAfterAFailedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, true)
		defer p.over()
		var out, log bytes.Buffer
		long := strings.Repeat("x", maxQuestion/2) // more than the room's context
		p.say("yes")
		if err := Converse(t.Context(), p.asker, strings.NewReader(long+"\nand now?\n"), &out, &log); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "pooled chat: ") && !strings.Contains(log.String(), "not asked: ") {
			t.Errorf("log %q, want the failure", log.String())
		}
		if !strings.HasSuffix(out.String(), "yes\n") {
			t.Errorf("answers %q, want one to the second question", out.String())
		}
	})
}

func TestConverseEndsWithTheRoom(t *testing.T) {
	for _, c := range []struct {
		name    string
		started bool
		last    string // of the log
	}{
		{"at the prompt", true, "leaves\n>>> \n"},
		{"before there is a model", false, "leaves\n  waiting for the room's model\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, c.started)
				defer p.over()
				synctest.Wait()
				in, typing := io.Pipe()
				defer func() { _ = typing.Close() }()
				done := make(chan error, 1)
				var log bytes.Buffer
				go func() { done <- Converse(t.Context(), p.asker, in, io.Discard, &log) }()
				time.Sleep(time.Second) // of the bubble
				_ = p.host.Close()
				err := <-done
				var problem *session.Problem
				if !errors.As(err, &problem) || problem.Exit != session.ExitNoRoom {
					t.Errorf("got %v, want the room's end", err)
				}
				if !strings.HasSuffix(log.String(), c.last) {
					t.Errorf("log %q, want it to end with %q", log.String(), c.last)
				}
			})
		})
	}
}
