package screens

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"sync"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/gdamore/tcell/v2/terminfo"
)

// frame is the least time between two frames on the terminal.
const frame = 50 * time.Millisecond

// terminal is the screen as the application sees it: initialized already, at most 20 frames a second, and a read error
// goes to the pump instead of ending the event loop under the pump's feet.
type terminal struct {
	tcell.Screen
	failed chan error         // the terminal can't be read any more; one at most
	later  chan time.Duration // a frame waits; one at most
	last   time.Time
	once   sync.Once
}

// openTerminal takes over this process's terminal. Terminal descriptions are those built into the program; a name it
// doesn't know is taken for an xterm.
func openTerminal() (tcell.Screen, error) {
	s, err := newScreen()
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	if err := s.Init(); err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	return s, nil
}

func newScreen() (tcell.Screen, error) {
	if runtime.GOOS == "windows" {
		return tcell.NewScreen()
	}
	info, err := terminfo.LookupTerminfo(os.Getenv("TERM"))
	if err != nil {
		if info, err = terminfo.LookupTerminfo("xterm-256color"); err != nil {
			return nil, err
		}
	}
	return tcell.NewTerminfoScreenFromTtyTerminfo(nil, unpadded(info))
}

var padding = regexp.MustCompile(`\$<[^>]*>`)

// unpadded returns the description without the pauses that hardware terminals needed after a command: the screen library
// sleeps them out, at every move of the cursor.
func unpadded(info *terminfo.Terminfo) *terminfo.Terminfo {
	out := *info
	v := reflect.ValueOf(&out).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.String && f.CanSet() {
			f.SetString(padding.ReplaceAllString(f.String(), ""))
		}
	}
	return &out
}

func newTerminal(s tcell.Screen) *terminal {
	return &terminal{Screen: s, failed: make(chan error, 1), later: make(chan time.Duration, 1)}
}

// Init does nothing: the screen is initialized, and doing it twice leaks.
func (t *terminal) Init() error { return nil }

// Fini gives the terminal back as it was. It may be called from any goroutine and more than once.
func (t *terminal) Fini() { t.once.Do(t.Screen.Fini) }

// PollEvent returns the next event that is not an error.
func (t *terminal) PollEvent() tcell.Event {
	for {
		ev := t.Screen.PollEvent()
		bad, ok := ev.(*tcell.EventError)
		if !ok {
			return ev
		}
		select {
		case t.failed <- bad:
		default:
		}
	}
}

// Show sends what changed to the terminal, or tells the pump to do it when the next frame is due.
func (t *terminal) Show() {
	if wait := frame - time.Since(t.last); wait > 0 {
		select {
		case t.later <- wait:
		default:
		}
		return
	}
	t.last = time.Now()
	t.Screen.Show()
}
