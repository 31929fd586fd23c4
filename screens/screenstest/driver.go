// Package screenstest drives the console through its keyboard on a simulated terminal.
//
// Every action (Type, Press, Paste, Resize, Emit) returns when the program is idle: all input handled, all events of the
// room applied, everything drawn. That is counted (see screens.Probe), so tests neither sleep nor retry, and cells are
// read inside the event loop. A test is the only source of input and events of its driver; use one goroutine.
package screenstest

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"

	"pooled/screens"
	"pooled/session"
	"pooled/widgets"
)

// Update makes Golden write instead of compare.
var Update = flag.Bool("update", false, "write the golden files anew")

// limit is how long a run may take to end before a test fails.
const limit = 10 * time.Second

// At is the time on the wall of every driven screen.
var At = time.Date(2026, 3, 1, 13, 6, 52, 0, time.UTC)

// Driver is a running screen.
type Driver struct {
	Fake *Fake

	t      testing.TB
	sim    tcell.SimulationScreen
	probe  *screens.Probe
	cancel context.CancelFunc
	done   chan struct{}
	exit   int
	err    error

	lines  []string // as of the last look
	styles [][]tcell.Style
}

// New starts the page of st.Role at 80x24 and waits until it is drawn. o.View, Screen and Probe are set here; the look
// is monochrome unless o has one. The screen is closed at the end of the test.
func New(t testing.TB, st session.State, o screens.RunOptions) *Driver {
	t.Helper()
	return NewSize(t, st, o, 80, 24)
}

// NewSize is New with a size.
func NewSize(t testing.TB, st session.State, o screens.RunOptions, w, h int) *Driver {
	t.Helper()
	d := &Driver{Fake: NewFake(st, At), t: t, sim: tcell.NewSimulationScreen("UTF-8"), probe: screens.NewProbe(),
		done: make(chan struct{})}
	if err := d.sim.Init(); err != nil {
		t.Fatal(err)
	}
	d.sim.SetSize(w, h)
	o.View, o.Screen, o.Probe, o.Role = d.Fake, d.sim, d.probe, st.Role
	if o.Look == nil {
		o.Look = &widgets.Look{}
	}
	o.Now = func() time.Time { return At }
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	go func() {
		defer close(d.done)
		d.exit, d.err = screens.Run(ctx, o)
	}()
	t.Cleanup(func() {
		cancel()
		d.wait()
	})
	d.settle()
	return d
}

// wait waits for the run's end.
func (d *Driver) wait() {
	select {
	case <-d.done:
	case <-time.After(limit):
		d.t.Error("the screen did not end")
	}
}

// settle waits until the program is idle and reads the cells. After the run's end it does nothing.
func (d *Driver) settle() {
	d.probe.Settle(func() { d.inject(screens.ProbeKey, 0, tcell.ModNone) }, d.read)
}

// inject posts a key, or drops it when the run has ended.
func (d *Driver) inject(k tcell.Key, r rune, mod tcell.ModMask) {
	d.post(tcell.NewEventKey(k, r, mod))
}

func (d *Driver) post(ev tcell.Event) {
	for {
		if d.sim.PostEvent(ev) == nil {
			return
		}
		select {
		case <-d.done:
			return
		default: // the queue is full: the program is reading it
		}
	}
}

// read copies the cells. It runs in the event loop.
func (d *Driver) read(s tcell.Screen) {
	w, h := s.Size()
	d.lines, d.styles = make([]string, h), make([][]tcell.Style, h)
	for y := range h {
		var b strings.Builder
		for x := 0; x < w; {
			str, st, cells := s.Get(x, y)
			b.WriteString(str)
			for ; cells > 0; cells, x = cells-1, x+1 {
				d.styles[y] = append(d.styles[y], st)
			}
		}
		d.lines[y] = strings.TrimRight(b.String(), " ")
	}
}

// Type types text, a key for each character. A line break is Enter.
func (d *Driver) Type(text string) {
	d.t.Helper()
	for _, r := range text {
		if r == '\n' {
			d.inject(tcell.KeyEnter, 0, tcell.ModNone)
		} else {
			d.inject(tcell.KeyRune, r, tcell.ModNone)
		}
	}
	d.settle()
}

// Press presses named keys one after the other.
func (d *Driver) Press(keys ...tcell.Key) {
	d.t.Helper()
	for _, k := range keys {
		d.inject(k, 0, tcell.ModNone)
	}
	d.settle()
}

// PressAlt presses a key with Alt.
func (d *Driver) PressAlt(k tcell.Key) {
	d.t.Helper()
	d.inject(k, 0, tcell.ModAlt)
	d.settle()
}

// Paste pastes text as a terminal with bracketed paste does.
func (d *Driver) Paste(text string) {
	d.t.Helper()
	d.post(tcell.NewEventPaste(true))
	for _, r := range text {
		if r == '\n' {
			d.inject(tcell.KeyEnter, 0, tcell.ModNone)
		} else {
			d.inject(tcell.KeyRune, r, tcell.ModNone)
		}
	}
	d.post(tcell.NewEventPaste(false))
	d.settle()
}

// Resize changes the terminal's size.
func (d *Driver) Resize(w, h int) {
	d.t.Helper()
	d.sim.SetSize(w, h)
	d.post(tcell.NewEventResize(w, h))
	d.settle()
}

// Emit publishes events of the room, see Fake.Emit.
func (d *Driver) Emit(change func(*session.State), events ...session.Event) {
	d.t.Helper()
	d.Fake.Emit(change, events...)
	d.settle()
}

// Shows fails the test unless every text is on the screen, each within one line.
func (d *Driver) Shows(want ...string) {
	d.t.Helper()
	for _, w := range want {
		if !strings.Contains(d.Text(), w) {
			d.t.Errorf("the screen does not show %q:\n%s", w, d.Text())
		}
	}
}

// Hides fails the test if a text is on the screen.
func (d *Driver) Hides(not ...string) {
	d.t.Helper()
	for _, w := range not {
		if strings.Contains(d.Text(), w) {
			d.t.Errorf("the screen shows %q:\n%s", w, d.Text())
		}
	}
}

// Text is what is on the screen, without spaces at line ends.
func (d *Driver) Text() string { return strings.Join(d.lines, "\n") + "\n" }

// Lines are the lines on the screen.
func (d *Driver) Lines() []string { return d.lines }

// Styles are the styles of all cells, by row.
func (d *Driver) Styles() [][]tcell.Style { return d.styles }

// Clipboard is what the program put into the terminal's clipboard.
func (d *Driver) Clipboard() string { return string(d.sim.GetClipboardData()) }

// Stop ends the context of the run, as SIGTERM does.
func (d *Driver) Stop() { d.cancel() }

// Ended waits for the run's end and returns what it returned.
func (d *Driver) Ended() (int, error) {
	d.t.Helper()
	d.wait()
	return d.exit, d.err
}

// Golden compares the screen with testdata/<name>.golden, or writes that file with -update.
func (d *Driver) Golden(name string) {
	d.t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *Update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			d.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(d.Text()), 0o644); err != nil {
			d.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	if got := d.Text(); got != string(want) {
		d.t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}
