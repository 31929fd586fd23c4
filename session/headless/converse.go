package headless

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"pooled/session"
)

// Converse is a conversation for a terminal that has no screen (TERM=dumb, spec cli.md 3.1): it prompts on log, takes
// each line of in as a question, and writes only the answers to out. It returns nil when in or, between two answers, ctx
// ends, and why the room closed when that comes first. A question that fails is told on log and ends nothing.
func Converse(ctx context.Context, view session.View, in io.Reader, out, log io.Writer) error {
	sub, st := view.Subscribe("conversation")
	defer sub.Close()
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(log, format, args...) }
	say("pooled chat · room %s\n  each line is a question; Ctrl-D leaves\n", st.Code)
	if st.Phase != session.Online {
		say("  waiting for the room's model\n")
	}
	if err := awaitOnline(ctx, view, sub, st, 0); err != nil {
		return err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	typed := readLines(reading, in)
	for {
		say(">>> ")
		line, err := typed.next(ctx, sub)
		if err != nil || line == nil {
			say("\n")
			return err
		}
		if *line == "" {
			continue
		}
		if err = view.Ask(*line); err != nil {
			say("not asked: %v\n", err)
			continue
		}
		var p *session.Problem
		switch err = answer(ctx, view, sub, out); {
		case err == nil:
		case errors.As(err, &p) && view.Snapshot().Phase != session.Closed:
			Problem(log, "pooled chat", p)
		default:
			return err
		}
	}
}

// lines are what a person types. The goroutine that reads them ends with its context or, in a read that can't be
// interrupted, with the program.
type lines struct {
	text chan string
	err  error // once text is closed
}

func readLines(ctx context.Context, in io.Reader) *lines {
	l := &lines{text: make(chan string)}
	go l.run(ctx, in)
	return l
}

func (l *lines) run(ctx context.Context, in io.Reader) {
	defer close(l.text)
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxQuestion)
	for s.Scan() {
		select {
		case l.text <- strings.TrimSpace(strings.ToValidUTF8(s.Text(), "�")):
		case <-ctx.Done():
			return
		}
	}
	l.err = s.Err()
}

// next waits for a line: nil at the end of the input or of ctx. It drops the room's events, but returns the room's end.
func (l *lines) next(ctx context.Context, sub *session.Subscription) (*string, error) {
	for {
		for e, more := sub.TryNext(); more; e, more = sub.TryNext() {
			switch ev := e.Event.(type) {
			case session.Lagged:
				sub.Resync()
			case session.RoomClosed:
				return nil, closedEarly(ev)
			}
		}
		select {
		case <-sub.Ready():
		case <-ctx.Done():
			return nil, nil
		case text, ok := <-l.text:
			if !ok {
				return nil, l.err
			}
			return &text, nil
		}
	}
}
