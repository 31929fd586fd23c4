// Package demo plays a whole room on one computer: a signaling server and a joining device, each a process of its own,
// beside the host that runs in the caller's process.
//
// Every child is this same program. A child ends when Close is called, when the context it was started under ends, or
// when this process dies (its standard input ends). Nothing of a child reaches the terminal: its
// last lines are kept for the error that tells why it ended.
package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"pooled/session"
	"pooled/session/headless"
	"pooled/session/launch"
	"pooled/session/usage"
)

// Question is what is asked when nothing else is.
const Question = "Name the largest planet in our solar system. One sentence."

// guestName is how the room shows the joining device.
const guestName = "second-device"

// Demo is the part of the room that runs in other processes.
type Demo struct {
	exe    string
	addr   string // of the signaling server
	signal *child

	guests sync.WaitGroup // the goroutine that starts and watches the joining device
	cancel context.CancelFunc
	mu     sync.Mutex
	failed error // why the joining device ended by itself
}

// Open starts the signaling server, on its usual port when that is free.
func Open(ctx context.Context) (*Demo, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's own file: %w", err)
	}
	d := &Demo{exe: exe}
	_, usual, _ := strings.Cut(launch.DefaultSignal, ":")
	for _, port := range []string{usual, "0"} {
		if d.signal, err = startChild(ctx, "the signaling server", exe, "signal", "--port", port, "--exit-on-eof"); err != nil {
			return nil, err
		}
		var line string
		if line, err = d.signal.firstLine(ctx); err == nil {
			d.addr = line[strings.LastIndexByte(line, ' ')+1:]
			return d, nil
		}
		d.signal.close()
	}
	return nil, err
}

// Spec is what the host needs: the built-in model, spread over two devices, started once both are in.
func (d *Demo) Spec() launch.Spec {
	return launch.Spec{
		Options: session.Options{Role: session.Host, StartWith: 2, SplitEvery: true, TopK: 1},
		Model:   "mini", Signal: d.addr,
	}
}

// JoinWhenOpen starts the joining device once the room is open, and closes the room when that device ends by itself. It
// is called once.
func (d *Demo) JoinWhenOpen(ctx context.Context, room *launch.Room) {
	ctx, d.cancel = context.WithCancel(ctx)
	sub, st := room.Subscribe("demo")
	d.guests.Go(func() {
		defer sub.Close()
		if st.OpenedAt.IsZero() && !awaitOpen(ctx, sub) {
			return
		}
		guest, err := startChild(ctx, "the joining device", d.exe,
			"join", string(room.Code), "--signal", d.addr, "--name", guestName, "--json-log", "--exit-on-eof")
		if err == nil {
			defer guest.close()
			select {
			case <-guest.done:
				err = guest.failure() // nil when it left in order, as it does when the room closes
			case <-room.Done():
			case <-ctx.Done():
			}
		}
		if err != nil && ctx.Err() == nil {
			d.mu.Lock()
			d.failed = err
			d.mu.Unlock()
			_ = room.Leave() // its own error says less than ours
		}
	})
}

// awaitOpen waits until the room is open; false when it never will be.
func awaitOpen(ctx context.Context, sub *session.Subscription) bool {
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return false
		}
		switch e.Event.(type) {
		case session.RoomOpened:
			return true
		case session.RoomClosed:
			return false
		}
	}
}

// Failed says why the joining device ended by itself; nil when it did not.
func (d *Demo) Failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// Close ends the other processes and waits for them.
func (d *Demo) Close() {
	if d.cancel != nil {
		d.cancel()
	}
	d.guests.Wait()
	d.signal.close()
}

// Answer waits for the room, prints who is in it and who holds what, asks the question and prints the answer and its
// figures. An empty question is Question.
func (d *Demo) Answer(ctx context.Context, room *launch.Room, question string, out io.Writer) error {
	if question == "" {
		question = Question
	}
	if err := headless.AwaitOnline(ctx, room, 0); err != nil {
		if failed := d.Failed(); failed != nil {
			return failed
		}
		return err
	}
	if _, err := io.WriteString(out, d.roster(room.Snapshot(), question)); err != nil {
		return fmt.Errorf("write the roster: %w", err)
	}
	if err := headless.Ask(ctx, room, question, 0, out); err != nil {
		return err
	}
	chat := room.Snapshot().Chat
	if len(chat) == 0 {
		return nil
	}
	s := chat[len(chat)-1].Stats
	_, err := fmt.Fprintf(out, "%d tokens · %s · %.2f s to the first · %d prompt tokens\n",
		s.Tokens, usage.TokPerSec(s.PerSec), s.FirstSec, s.PromptTokens)
	return err
}

// roster says who is in the room and who holds what, and repeats the question.
func (d *Demo) roster(st *session.State, question string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "room %s · %s · %d devices on this computer, found through %s\n", st.Code, st.Model.Label, len(st.Peers), d.addr)
	for _, p := range st.Peers {
		fmt.Fprintf(&b, "  %-14s %s, lends %s\n", p.Name, p.GPU, usage.GB(p.PledgeBytes))
	}
	fmt.Fprintln(&b, "layers")
	for _, s := range st.Deal.Shares {
		fmt.Fprintf(&b, "  %-14s %s\n", s.Name, holds(s, st))
	}
	fmt.Fprintf(&b, ">>> %s\n", question)
	return b.String()
}

// holds says what a share is.
func holds(s session.Share, st *session.State) string {
	text := fmt.Sprintf("%s of 0-%d", usage.LayerRange(s.Lo, s.Hi), st.Model.Layers-1)
	if s.Hi == s.Lo {
		text = "none"
	}
	if s.Peer == st.Self {
		text += ", embedding and head"
	}
	return text
}
