package headless

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pooled/session"
	"pooled/session/sessiontest"
)

// party is a host on a fake network and engine, with a client that only asks.
type party struct {
	t      *testing.T
	net    *sessiontest.Net
	engine *sessiontest.Engine
	host   *session.Room
	asker  *session.Room
	wg     sync.WaitGroup
	made   func(*session.Room)
}

// start makes the rooms; autoStart lets the host start its model by itself. Call it inside a synctest bubble.
func start(t *testing.T, autoStart bool) *party {
	return startWith(t, autoStart, func(*session.Room) {})
}

// startWith also calls made with each room before it runs, the host first.
func startWith(t *testing.T, autoStart bool, made func(*session.Room)) *party {
	t.Helper()
	p := &party{t: t, net: sessiontest.NewNet(), engine: &sessiontest.Engine{}, made: made}
	p.host = p.room(session.Options{Role: session.Host, Code: "FEAQ38", Name: "anna", ModelKey: sessiontest.Key,
		PledgeBytes: 64 << 30, PledgeWhy: "the test says so", AutoStart: autoStart, TopK: 1}, p.engine, "pooled-room-FEAQ38")
	synctest.Wait()
	p.asker = p.room(session.Options{Role: session.Asker, Code: "FEAQ38", Name: "asks", MaxTokens: 64, Temp: -1}, nil, "asker")
	return p
}

func (p *party) room(o session.Options, e session.Engine, id session.PeerID) *session.Room {
	p.t.Helper()
	r, err := session.New(o, e)
	if err != nil {
		p.t.Fatal(err)
	}
	p.made(r)
	mesh := p.net.Mesh(id, r.Deliver)
	p.wg.Go(func() { _ = r.Run(context.WithoutCancel(p.t.Context()), mesh) })
	return r
}

// over closes both rooms and waits.
func (p *party) over() {
	_ = p.asker.Close()
	_ = p.host.Close()
	p.wg.Wait()
}

// say makes the model answer with a text.
func (p *party) say(text string) {
	p.t.Helper()
	var ids []int32
	for _, b := range []byte(text) {
		ids = append(ids, int32(b))
	}
	p.engine.Say(ids)
}

func TestAskWritesOnlyTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, true)
		defer p.over()
		p.say("391 \xf0\x9f\x98\x80")
		var out bytes.Buffer
		if err := Ask(t.Context(), p.asker, "17 times 23?", time.Minute, &out); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), "391 😀\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAskLeavesThinkingOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, true)
		defer p.over()
		p.engine.Say([]int32{sessiontest.Think, 'h', 'm', sessiontest.ThinkEnd, 'y', 'e', 's'})
		if err := AwaitOnline(t.Context(), p.asker, time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := p.asker.SetThinking(true); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Ask(t.Context(), p.asker, "well?", time.Minute, &out); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(out.String()); got != "yes" {
			t.Errorf("got %q, want yes alone", got)
		}
	})
}

func TestAskWaitsForAModelThenGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, false)
		defer p.over()
		began := time.Now()
		err := Ask(t.Context(), p.asker, "anyone?", 2*time.Minute, &bytes.Buffer{})
		var problem *session.Problem
		if !errors.As(err, &problem) || problem.Code != "no-model" || !strings.Contains(problem.Do, "--wait") {
			t.Errorf("got %v, want a problem that names --wait", err)
		}
		if took := time.Since(began); took != 2*time.Minute {
			t.Errorf("gave up after %v, want 2m", took)
		}
	})
}

func TestAskStopsTheAnswerWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, true)
		defer p.over()
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		p.say(strings.Repeat("x", 60))
		p.engine.Hook(func(_ context.Context, call string) error {
			if call == "embedtop" {
				if calls++; calls == 5 {
					cancel()
					time.Sleep(time.Second) // of the bubble: the stop is on its way
				}
			}
			return nil
		})
		err := Ask(ctx, p.asker, "go on", time.Minute, &bytes.Buffer{})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want canceled", err)
		}
		time.Sleep(2 * time.Second) // of the bubble
		st := p.host.Snapshot()
		if st.Answering || calls > 10 {
			t.Errorf("after the stop: answering %v, %d steps, want it stopped after the lap in flight", st.Answering, calls)
		}
	})
}

func TestAskTellsWhyItFailed(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(p *party)
		code string
		exit int
	}{
		{"the engine fails", func(p *party) {
			p.engine.Hook(func(_ context.Context, call string) error {
				if call == "embedtop" || call == "embed" {
					return errors.New("NaN in logits")
				}
				return nil
			})
		}, "answer-failed", session.ExitFailed},
		{"the host closes", func(p *party) {
			p.engine.Hook(func(ctx context.Context, call string) error {
				if call == "embedtop" {
					go func() { _ = p.host.Close() }()
					<-ctx.Done()
				}
				return nil
			})
		}, "", session.ExitNoRoom},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, true)
				defer p.over()
				if err := AwaitOnline(t.Context(), p.asker, time.Minute); err != nil {
					t.Fatal(err)
				}
				c.make(p)
				err := Ask(t.Context(), p.asker, "well?", time.Minute, &bytes.Buffer{})
				var problem *session.Problem
				if !errors.As(err, &problem) || c.code != "" && problem.Code != c.code {
					t.Fatalf("got %v, want a problem with code %s", err, c.code)
				}
				if c.code == "" && problem.Exit != c.exit && problem.Exit != session.ExitFailed {
					t.Errorf("exit %d, want %d", problem.Exit, c.exit)
				}
			})
		})
	}
}

// watched starts a party and watches room number i (0 the host, 1 the asker) from before it runs.
func watched(t *testing.T, ctx context.Context, i int, o Options) (*party, <-chan *session.Problem) {
	t.Helper()
	done := make(chan *session.Problem, 1)
	n := 0
	p := startWith(t, true, func(r *session.Room) {
		if n == i {
			w := Watch(r, o)
			go func() { done <- w.Run(ctx) }()
		}
		n++
	})
	return p, done
}

func TestWatchPrintsLinesAndStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		p, done := watched(t, ctx, 0, Options{Log: &out})
		synctest.Wait()
		time.Sleep(61 * time.Second) // of the bubble: a status line is due
		cancel()
		if problem := <-done; problem != nil {
			t.Errorf("ended with %v", problem)
		}
		p.over()
		text := out.String()
		for _, want := range []string{"asks is in the room to chat", "room FEA-Q38 · online · 1 device", "layers 0-11 + embed/head of toy"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		for line := range strings.Lines(text) {
			if _, err := time.Parse(time.TimeOnly, strings.SplitN(line, " ", 2)[0]); err != nil {
				t.Errorf("line %q does not begin with a time", line)
			}
		}
		if n := strings.Count(text, "· online ·"); n < 2 {
			t.Errorf("%d status lines that say online, want one more after a minute", n)
		}
	})
}

func TestWatchJSONIsOneObjectPerEventInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p, done := watched(t, t.Context(), 1, Options{Log: &out, JSON: true})
		synctest.Wait()
		p.over()
		<-done
		last := 0.0
		var names []string
		for line := range strings.Lines(out.String()) {
			var e map[string]any
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if seq := e["seq"].(float64); last == 0 && seq != 1 || seq <= last {
				t.Errorf("seq %v after %v", seq, last)
			}
			last = e["seq"].(float64)
			names = append(names, e["ev"].(string))
		}
		if len(names) == 0 || names[len(names)-1] != "room.closed" {
			t.Errorf("events %v, want room.closed at the end", names)
		}
	})
}

func TestWatchQuietKeepsErrorsAndStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p, done := watched(t, t.Context(), 0, Options{Log: &out, Quiet: true})
		synctest.Wait()
		p.over()
		<-done
		if text := out.String(); strings.Contains(text, "is in the room") || !strings.Contains(text, "room FEA-Q38 ·") {
			t.Errorf("got\n%s", text)
		}
	})
}

func TestHeaderSaysWhatIsLentAndWhoSeesWhat(t *testing.T) {
	var out bytes.Buffer
	Header(&out, &session.State{Role: session.Worker, Code: "FEA-Q38", Device: session.Device{GPU: "llvmpipe", Backend: "Vulkan",
		Software: true, PledgeBytes: 1 << 30, PledgeWhy: "half of its largest buffer"}}, "a line")
	for _, want := range []string{"pooled join · room FEA-Q38", "llvmpipe (software: slow) · Vulkan",
		"1.0 GB  (half of its largest buffer)", "a line", "hidden states", "Ctrl-C leaves"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestProblemSaysWhatWhyAndDo(t *testing.T) {
	var out bytes.Buffer
	Problem(&out, "pooled join", &session.Problem{What: "no room FEA-Q38", Why: "nobody holds it", Do: "check the code"})
	if got, want := out.String(), "pooled join: no room FEA-Q38: nobody holds it\n  check the code\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestQuestion(t *testing.T) {
	file := func(text string) *os.File {
		name := filepath.Join(t.TempDir(), "stdin")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	for _, c := range []struct {
		name  string
		words []string
		stdin string
		want  string
		fails bool
	}{
		{"words", []string{"what", "is", "it?"}, "ignored", "what is it?", false},
		{"standard input", nil, "  what is it?\n", "what is it?", false},
		{"nothing", nil, " \n", "", true},
		{"blank words", []string{" "}, "from stdin", "from stdin", false},
		{"too much", nil, strings.Repeat("x", maxQuestion+1), "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, once, err := Question(c.words, file(c.stdin))
			if got != c.want || !once || (err != nil) != c.fails {
				t.Errorf("got %q, %v, %v, want %q, true, failing %v", got, once, err, c.want, c.fails)
			}
		})
	}
	var p *session.Problem
	if _, _, err := Question(nil, file("")); !errors.As(err, &p) || p.Exit != session.ExitUsage {
		t.Errorf("empty input: %v, want a usage error", err)
	}
}
