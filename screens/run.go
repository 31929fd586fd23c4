package screens

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"pooled/screens/capture"
	"pooled/session"
	"pooled/widgets"
)

// RunOptions is what Run needs.
type RunOptions struct {
	View   session.View
	Role   session.Role
	Invite string // host: how others get in, shown under the header
	Chat   bool   // host: go to the chat once the room is online
	Think  bool   // the room starts with thinking on
	// Closed is told why the room ended, after the terminal was given back, when this person did not end it. nil: nobody.
	Closed func(reason string)

	Look   *widgets.Look    // nil: from the environment
	Now    func() time.Time // nil: time.Now
	Screen tcell.Screen     // initialized; nil: this process's terminal, native output captured
	Probe  *Probe           // for tests
}

// leaveTime is how long the room gets to say goodbye before the screen closes anyway.
const leaveTime = 1500 * time.Millisecond

// Run shows the page of a role until the person leaves, the room closes or ctx ends, and gives the terminal back
// whatever happens. It closes the room when the person leaves or ctx ends, and waits for that a moment.
//
// exit is the process's exit code. err is a *session.Problem when the room closed for a reason a person must read (to be
// written to standard error now that the screen is gone), or an error of the terminal.
func Run(ctx context.Context, o RunOptions) (exit int, err error) {
	r := &runner{o: o, exits: make(chan int, 1), leaves: make(chan struct{}, 1), natives: make(chan native, 256)}
	if r.o.Now == nil {
		r.o.Now = time.Now
	}
	if r.o.Look == nil {
		r.o.Look = LookFrom(os.Getenv, runtime.GOOS)
	}
	if r.probed = o.Probe != nil; !r.probed {
		r.o.Probe = NewProbe()
	}
	defer close(r.o.Probe.ended)
	undo, err := r.open()
	if err != nil {
		return session.ExitFailed, err
	}
	setLive(undo)
	defer Restore()
	r.run(ctx)
	Restore()
	if r.broken != nil {
		panic(r.broken) //nolint:forbidigo // a panic of the event loop, in its caller's goroutine
	}
	if r.reason != "" && r.o.Closed != nil {
		r.o.Closed(r.reason)
	}
	return r.exit, r.err
}

// runner is one Run.
type runner struct {
	o    RunOptions
	app  *tview.Application
	term *terminal
	page Screen
	sub  *session.Subscription

	exits   chan int      // end now
	leaves  chan struct{} // the room was told to close
	natives chan native
	probed  bool // a test watches

	exit   int
	err    error
	reason string      // why the room ended, when it did so by itself
	left   atomic.Bool // this person ended it, or ctx did
	once   sync.Once
	broken any // first panic of the event loop or the pump
}

// open takes the terminal and, when it is the real one, the standard streams. undo gives them back.
func (r *runner) open() (undo func(), err error) {
	if r.o.Screen != nil {
		r.term = newTerminal(r.o.Screen)
		return r.term.Fini, nil
	}
	c, err := capture.Start(r.native)
	if err != nil {
		return nil, err
	}
	s, err := openTerminal()
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	r.term = newTerminal(s)
	return func() {
		r.term.Fini()
		_ = c.Stop() // the streams are gone then, there is nobody to tell
	}, nil
}

// native hands on a line from the capture, or drops it when the pump is far behind.
func (r *runner) native(line string) {
	select {
	case r.natives <- native{session.Notice{Level: session.Info, Code: "native", Text: line}, time.Now()}:
	default:
	}
}

// run builds the page and drives it until the pump ends.
func (r *runner) run(ctx context.Context) {
	var st *session.State
	r.sub, st = r.o.View.Subscribe("screen")
	defer r.sub.Close()
	r.app = tview.NewApplication()
	r.app.SetScreen(r.term)
	r.app.EnablePaste(true)
	r.app.SetInputCapture(r.capture)
	r.page = New(r.o.Role)
	prim := r.page.Build(BuildOptions{View: r.o.View, Look: r.o.Look, Now: r.o.Now, Invite: r.o.Invite, Chat: r.o.Chat,
		Think: r.o.Think, Leave: r.leave, Exit: r.quit, Copy: func(s string) { r.term.SetClipboard([]byte(s)) }})
	r.page.Apply(st, nil)
	r.app.SetRoot(&root{prim, r}, true)
	done := make(chan struct{})
	go func() { // owned by run, which waits for done
		defer close(done)
		r.pump(ctx)
	}()
	if err := r.app.Run(); err != nil && r.err == nil {
		r.exit, r.err = session.ExitFailed, fmt.Errorf("terminal: %w", err)
	}
	<-done
}

// capture sees every key first. Ctrl-C is passed on as a new event: the application takes the original for an order to
// stop.
func (r *runner) capture(ev *tcell.EventKey) *tcell.EventKey {
	switch ev.Key() {
	case ProbeKey:
		if r.probed {
			r.o.Probe.pass()
		}
		return nil
	case tcell.KeyCtrlC:
		return tcell.NewEventKey(tcell.KeyCtrlC, 0, tcell.ModNone)
	case tcell.KeyRune:
		return namedKey(ev)
	}
	return ev
}

// namedKey turns what older terminals send for Alt with Enter or Backspace (escape, then the control character) into
// that key with Alt. The screen library reports it as the control character's letter.
func namedKey(ev *tcell.EventKey) *tcell.EventKey {
	if ev.Modifiers() != tcell.ModAlt|tcell.ModCtrl {
		return ev
	}
	switch ev.Rune() {
	case 'm', 'j':
		return tcell.NewEventKey(tcell.KeyEnter, 0, tcell.ModAlt)
	case 'h':
		return tcell.NewEventKey(tcell.KeyBackspace, 0, tcell.ModAlt)
	}
	return ev
}

// leave closes the room; RoomClosed, or the end of leaveTime, ends the run.
func (r *runner) leave() {
	r.left.Store(true)
	if err := r.o.View.Close(); err != nil {
		r.quit(session.ExitOK)
		return
	}
	select {
	case r.leaves <- struct{}{}:
	default:
	}
}

// quit ends the run with a code. The first one counts.
func (r *runner) quit(code int) {
	select {
	case r.exits <- code:
	default:
	}
}

// guard runs f and keeps a panic for Run.
func (r *runner) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			r.once.Do(func() { r.broken = fmt.Sprintf("%v\n\n%s", p, debug.Stack()) })
			r.quit(session.ExitFailed)
		}
	}()
	f()
}

// root guards the page's primitive, so that a panic can't end the event loop before the pump.
type root struct {
	tview.Primitive
	r *runner
}

// Draw draws the page.
func (p *root) Draw(s tcell.Screen) { p.r.guard(func() { p.Primitive.Draw(s) }) }

// InputHandler passes keys on.
func (p *root) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return func(ev *tcell.EventKey, focus func(tview.Primitive)) {
		p.r.guard(func() { p.Primitive.InputHandler()(ev, focus) })
	}
}

// PasteHandler passes pasted text on.
func (p *root) PasteHandler() func(string, func(tview.Primitive)) {
	return func(s string, focus func(tview.Primitive)) {
		p.r.guard(func() { p.Primitive.PasteHandler()(s, focus) })
	}
}
