package screenstest

import (
	"slices"
	"sync"
	"time"

	"pooled/session"
)

// Fake is a session.View whose state and events a test sets. It records commands; what they lead to is up to the test,
// except that Close closes the room.
type Fake struct {
	bus *session.Bus
	at  time.Time

	mu     sync.Mutex
	calls  []string
	errs   map[string]error
	on     map[string]func(string)
	closed bool
}

// NewFake returns a room in the state st. at is the time of its events.
func NewFake(st session.State, at time.Time) *Fake {
	return &Fake{bus: session.NewBus(&st), at: at, errs: map[string]error{}, on: map[string]func(string){}}
}

// Emit publishes events together with the state that change makes of a copy of the newest one. change may be nil. The
// slices of the copy are shared: change must replace, not write to them.
func (f *Fake) Emit(change func(*session.State), events ...session.Event) {
	st := *f.Snapshot()
	if change != nil {
		change(&st)
	}
	f.bus.Publish(f.at, &st, events...)
}

// Fail makes a command (ask, stop, clear, think, start, redeal, close) return err from now on.
func (f *Fake) Fail(command string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs[command] = err
}

// On makes a command call do with its argument, in the goroutine of the command.
func (f *Fake) On(command string, do func(arg string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on[command] = do
}

// Calls returns the commands so far, each as its name and, after a space, its argument.
func (f *Fake) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

func (f *Fake) call(command, arg string) error {
	f.mu.Lock()
	line := command
	if arg != "" {
		line += " " + arg
	}
	f.calls = append(f.calls, line)
	err, do := f.errs[command], f.on[command]
	f.mu.Unlock()
	if err == nil && do != nil {
		do(arg)
	}
	return err
}

// Ask implements session.Commands.
func (f *Fake) Ask(text string) error { return f.call("ask", text) }

// Stop implements session.Commands.
func (f *Fake) Stop() error { return f.call("stop", "") }

// Clear implements session.Commands.
func (f *Fake) Clear() error { return f.call("clear", "") }

// SetThinking implements session.Commands.
func (f *Fake) SetThinking(on bool) error {
	if on {
		return f.call("think", "on")
	}
	return f.call("think", "off")
}

// Start implements session.Commands.
func (f *Fake) Start() error { return f.call("start", "") }

// Redeal implements session.Commands.
func (f *Fake) Redeal() error { return f.call("redeal", "") }

// Close implements session.Commands: the room ends, once, unless On or Fail says otherwise.
func (f *Fake) Close() error {
	if err := f.call("close", ""); err != nil {
		return err
	}
	f.mu.Lock()
	done := f.closed || f.on["close"] != nil
	f.closed = true
	f.mu.Unlock()
	if !done {
		f.End(nil)
	}
	return nil
}

// End closes the room with a problem, or nil for a wanted end.
func (f *Fake) End(problem *session.Problem) {
	f.Emit(func(st *session.State) { st.Phase, st.Problem = session.Closed, problem },
		session.RoomClosed{Reason: "closed", Problem: problem})
	f.bus.Close()
}

var _ session.View = (*Fake)(nil)

// Snapshot implements session.View.
func (f *Fake) Snapshot() *session.State { return f.bus.Snapshot() }

// Subscribe implements session.View.
func (f *Fake) Subscribe(name string) (*session.Subscription, *session.State) {
	return f.bus.Subscribe(name)
}
