package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pooled/netmesh"
	"pooled/netmesh/signal"
	"pooled/session"
)

// TestFreshCodeIsDrawnAgain: a code that we made up may be taken; one that the person chose is not replaced.
func TestFreshCodeIsDrawnAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		taken int // attempts that find the code taken
		other error
		fresh bool
		calls int
		want  error
	}{
		{"free", 0, nil, true, 1, nil},
		{"taken twice", 2, nil, true, 3, nil},
		{"always taken", 99, nil, true, codeTries, netmesh.ErrIDTaken},
		{"the person's", 99, nil, false, 1, netmesh.ErrIDTaken},
		{"another error", 1, netmesh.ErrSignalDown, true, 2, netmesh.ErrSignalDown},
	} {
		s := &Spec{Options: session.Options{Code: "ABCDEF"}}
		seen := map[string]bool{}
		calls := 0
		err := s.register(c.fresh, func() error {
			calls++
			seen[s.Code] = true
			if calls <= c.taken {
				return fmt.Errorf("open: %w", netmesh.ErrIDTaken)
			}
			return c.other
		})
		if !errors.Is(err, c.want) || calls != c.calls || len(seen) != calls {
			t.Errorf("%s: got %v after %d calls with %v", c.name, err, calls, seen)
		}
	}
}

// usual is the command as the grammar's defaults fill it.
func usual() SignalCommand {
	return SignalCommand{Host: "127.0.0.1", Port: 9000, Path: "/", MaxClients: 5000, MaxPerAddress: 64, MaxMessage: 65536, Rate: 100}
}

func TestSignalFlags(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	secret, empty, two := write("secret", " north \n"), write("empty", "\n"), write("two", "hush\nhush\n")
	for _, c := range []struct {
		name string
		set  func(*SignalCommand)
		want string // part of the error; empty: none
	}{
		{"defaults", func(*SignalCommand) {}, ""},
		{"port", func(c *SignalCommand) { c.Port = 65536 }, "--port takes a number from 0 to 65535"},
		{"clients", func(c *SignalCommand) { c.MaxClients = 0 }, "--max-clients"},
		{"any number of one address", func(c *SignalCommand) { c.MaxPerAddress = 0 }, ""},
		{"small messages", func(c *SignalCommand) { c.MaxMessage = 4095 }, "--max-message"},
		{"messages no client takes", func(c *SignalCommand) { c.MaxMessage = 256 << 10 }, "--max-message"},
		{"rate", func(c *SignalCommand) { c.Rate = 0 }, "--rate"},
		{"metrics", func(c *SignalCommand) { c.Metrics = -1 }, "--metrics"},
		{"path", func(c *SignalCommand) { c.Path = "a?b" }, "path"},
		{"certificate alone", func(c *SignalCommand) { c.TLSCert = "x" }, "--tls-cert and --tls-key belong together"},
		{"relay", func(c *SignalCommand) { c.Turn, c.TurnSecret = []string{"turn:r"}, secret }, ""},
		{"relay without secret", func(c *SignalCommand) { c.Turn = []string{"turn:r"} }, "belong together"},
		{"secret without relay", func(c *SignalCommand) { c.TurnSecret = secret }, "belong together"},
		{"bad relay", func(c *SignalCommand) { c.Turn, c.TurnSecret = []string{"turn:hush@r"}, secret }, "--turn takes"},
		{"no such file", func(c *SignalCommand) { c.Turn, c.TurnSecret = []string{"turn:r"}, dir+"/none" }, "can't be read"},
		{"empty secret", func(c *SignalCommand) { c.Turn, c.TurnSecret = []string{"turn:r"}, empty }, "one line"},
		{"two lines", func(c *SignalCommand) { c.Turn, c.TurnSecret = []string{"turn:r"}, two }, "one line"},
		{"ttl", func(c *SignalCommand) { c.Turn, c.TurnSecret, c.TurnTTL = []string{"turn:r"}, secret, "60" }, "--turn-ttl"},
		{"origin", func(c *SignalCommand) {
			c.Turn, c.TurnSecret, c.TurnOrigin = []string{"turn:r"}, secret, []string{"pooled.example"}
		}, "--turn-origin"},
	} {
		cmd := usual()
		c.set(&cmd)
		_, err := cmd.options()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		var p *session.Problem
		if err != nil && (!errors.As(err, &p) || p.Exit != session.ExitUsage || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%s: got %#v", c.name, err)
		}
	}
	cmd := usual()
	cmd.MaxPerAddress, cmd.Turn, cmd.TurnSecret = 0, []string{" TURN:r"}, secret
	o, err := cmd.options()
	if err != nil || o.PerAddress != -1 || o.Relays.Secret != "north" || o.Relays.URLs[0] != "turn:r" || o.Relays.TTL != 6*time.Hour {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestSignalAddresses(t *testing.T) {
	l, err := signal.Listen(t.Context(), signal.ListenOptions{Host: "127.0.0.1", HubOptions: signal.HubOptions{Path: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	defer l.Run(ctx) // closes the socket
	var b bytes.Buffer
	if err := sayAddresses(&b, l); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("signaling server on %s\n  --signal ws://%s/x\n", l.Addr(), l.Addr())
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	// what is printed can be pasted
	if s, err := signal.ParseList(strings.Fields(b.String())[5], signal.BareFlag); err != nil || s[0].Secure || s[0].Path != "/x/" {
		t.Errorf("read back: %+v, %v", s, err)
	}
}

func TestReportStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		var lock sync.Mutex
		figures := signal.Stats{}
		stats := func() signal.Stats {
			lock.Lock()
			defer lock.Unlock()
			s := figures
			s.Uptime = time.Since(started)
			return s
		}
		ctx, cancel := context.WithCancel(t.Context())
		var b bytes.Buffer
		done := make(chan error, 1)
		go func() { done <- reportStats(ctx, &b, stats, 10*time.Second) }()
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if b.Len() != 0 {
			t.Errorf("nothing changed: got %q", b.String())
		}
		lock.Lock()
		figures.Messages, figures.Bytes, figures.Clients = 20, 50_000, 2
		lock.Unlock()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		const want = "clients 2, sockets 0, 2.0 messages/s, 5.0 kB/s, waiting 0, refused 0, up 30s\n"
		if b.String() != want {
			t.Errorf("got  %q\nwant %q", b.String(), want)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
