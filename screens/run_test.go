package screens_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gdamore/tcell/v2"

	"pooled/screens"
	"pooled/screens/screenstest"
	"pooled/session"
	"pooled/widgets"
)

// counted is a simulated terminal that counts frames.
type counted struct {
	tcell.SimulationScreen
	frames atomic.Int64
	gone   atomic.Int64
}

func (c *counted) Show() {
	c.frames.Add(1)
	c.SimulationScreen.Show()
}

func (c *counted) Fini() {
	c.gone.Add(1)
	c.SimulationScreen.Fini()
}

func newCounted(t *testing.T) *counted {
	t.Helper()
	c := &counted{SimulationScreen: tcell.NewSimulationScreen("UTF-8")}
	if err := c.Init(); err != nil {
		t.Fatal(err)
	}
	return c
}

// result is what Run returned, or the value it panicked with.
type result struct {
	exit  int
	err   error
	panic any
}

// start runs a screen in a goroutine and waits until it is drawn.
func start(ctx context.Context, s *counted, o screens.RunOptions) chan result {
	o.Screen, o.Look, o.Probe = s, &widgets.Look{}, screens.NewProbe()
	out := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.panic = recover()
			out <- r
		}()
		r.exit, r.err = screens.Run(ctx, o)
	}()
	o.Probe.Settle(func() { s.InjectKey(screens.ProbeKey, 0, tcell.ModNone) }, func(tcell.Screen) {})
	return out
}

func TestAtMostTwentyFramesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounted(t)
		fake := screenstest.NewFake(asker(), time.Now())
		ctx, cancel := context.WithCancel(t.Context())
		out := start(ctx, s, screens.RunOptions{View: fake, Role: session.Asker})
		synctest.Wait()
		before, began := s.frames.Load(), time.Now()
		text := ""
		for i := range 400 {
			text += "word "
			fake.Emit(running(text, ""), session.AnswerText{ID: 2, Text: "word "})
			if i%4 == 0 {
				s.InjectKey(tcell.KeyRune, 'x', tcell.ModNone)
			}
			time.Sleep(5 * time.Millisecond) // the clock of the bubble
		}
		if n, most := s.frames.Load()-before, int64(time.Since(began)/(50*time.Millisecond))+1; n > most || n < most/2 {
			t.Errorf("%d frames in %v, want at most %d and not far fewer", n, time.Since(began), most)
		}
		cancel()
		if r := <-out; r.exit != 0 || r.err != nil || r.panic != nil {
			t.Errorf("ended with %+v", r)
		}
	})
}

func TestAnEventIsShownWithin50ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounted(t)
		fake := screenstest.NewFake(asker(), time.Now())
		ctx, cancel := context.WithCancel(t.Context())
		out := start(ctx, s, screens.RunOptions{View: fake, Role: session.Asker})
		for i := range 20 {
			time.Sleep(time.Duration(70+13*i) * time.Millisecond)
			synctest.Wait()
			before := s.frames.Load()
			fake.Emit(running("text", ""), session.AnswerText{ID: 2, Text: "text"})
			time.Sleep(51 * time.Millisecond)
			synctest.Wait()
			if s.frames.Load() == before {
				t.Errorf("event %d was not shown after 51 ms", i)
			}
		}
		cancel()
		<-out
	})
}

func TestARoomThatNeverClosesIsNotWaitedForLong(t *testing.T) {
	for _, how := range []string{"q", "sigterm"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newCounted(t)
				fake := screenstest.NewFake(worker(), time.Now())
				fake.On("close", func(string) {})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				out := start(ctx, s, screens.RunOptions{View: fake, Role: session.Worker})
				synctest.Wait()
				began := time.Now()
				if how == "q" {
					s.InjectKey(tcell.KeyRune, 'q', tcell.ModNone)
				} else {
					cancel()
				}
				r := <-out
				if took := time.Since(began); took > 2*time.Second || r.exit != 0 || r.err != nil {
					t.Errorf("ended after %v with %+v, want 0 within 2 s", took, r)
				}
			})
		})
	}
}

func TestPanicsGiveTheTerminalBackAndReachTheCaller(t *testing.T) {
	t.Run("in a key's command", func(t *testing.T) {
		s := newCounted(t)
		fake := screenstest.NewFake(worker(), time.Now())
		fake.On("close", func(string) { panic("boom") })
		out := start(t.Context(), s, screens.RunOptions{View: fake, Role: session.Worker})
		s.InjectKey(tcell.KeyRune, 'q', tcell.ModNone)
		checkPanic(t, <-out, s)
	})
	t.Run("in the pump", func(t *testing.T) {
		s := newCounted(t)
		fake := &brittle{Fake: screenstest.NewFake(worker(), time.Now())}
		out := start(t.Context(), s, screens.RunOptions{View: fake, Role: session.Worker})
		fake.broken.Store(true)
		fake.Emit(nil, session.Notice{Text: "x"})
		checkPanic(t, <-out, s)
	})
	t.Run("in an update", func(t *testing.T) {
		s := newCounted(t)
		fake := screenstest.NewFake(worker(), time.Now())
		var broken atomic.Bool
		out := start(t.Context(), s, screens.RunOptions{View: fake, Role: session.Worker, Now: func() time.Time {
			if broken.Load() {
				panic("boom")
			}
			return time.Now()
		}})
		broken.Store(true)
		fake.Emit(nil, session.Notice{Text: "x"})
		checkPanic(t, <-out, s)
	})
}

// brittle is a room whose snapshot panics once it is broken.
type brittle struct {
	*screenstest.Fake
	broken atomic.Bool
}

func (b *brittle) Snapshot() *session.State {
	if b.broken.Load() {
		panic("boom")
	}
	return b.Fake.Snapshot()
}

func checkPanic(t *testing.T, r result, s *counted) {
	t.Helper()
	if text, ok := r.panic.(string); !ok || !strings.Contains(text, "boom") || !strings.Contains(text, "goroutine") {
		t.Errorf("panic %v, want boom and where", r.panic)
	}
	if n := s.gone.Load(); n != 1 {
		t.Errorf("the terminal was given back %d times, want once", n)
	}
}

func TestRestoreFromAnotherGoroutine(t *testing.T) {
	s := newCounted(t)
	fake := screenstest.NewFake(worker(), time.Now())
	probe := screens.NewProbe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = screens.Run(ctx, screens.RunOptions{View: fake, Role: session.Worker, Screen: s, Probe: probe})
	}()
	if !probe.Settle(func() { s.InjectKey(screens.ProbeKey, 0, tcell.ModNone) }, func(tcell.Screen) {}) {
		t.Fatal("the screen ended")
	}
	screens.Restore()
	screens.Restore()
	if n := s.gone.Load(); n != 1 {
		t.Errorf("the terminal was given back %d times, want once", n)
	}
	cancel()
	<-done
	if n := s.gone.Load(); n != 1 {
		t.Errorf("the terminal was given back %d times at the end, want once", n)
	}
}

func TestTerminalThatGoesAway(t *testing.T) {
	s := newCounted(t)
	fake := screenstest.NewFake(worker(), time.Now())
	out := start(t.Context(), s, screens.RunOptions{View: fake, Role: session.Worker})
	cause := errors.New("input/output error")
	if err := s.PostEvent(tcell.NewEventError(cause)); err != nil {
		t.Fatal(err)
	}
	r := <-out
	if r.exit != session.ExitFailed || r.err == nil || !strings.Contains(r.err.Error(), "input/output error") {
		t.Errorf("ended with %+v, want exit 1 and the cause", r)
	}
	if n := s.gone.Load(); n != 1 {
		t.Errorf("the terminal was given back %d times, want once", n)
	}
}

// A subscriber that falls behind gets one Lagged; the screen must still show the newest state.
func TestLaggingShowsTheNewestState(t *testing.T) {
	d := screenstest.New(t, asker(), screens.RunOptions{})
	for range 3 * session.QueueCap {
		d.Fake.Emit(nil, session.AnswerText{ID: 2, Text: "x"})
	}
	d.Emit(running("the newest", ""))
	d.Shows("the newest")
}
