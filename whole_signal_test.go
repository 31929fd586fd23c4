//go:build unix

package main

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	interrupt  = syscall.SIGINT
	terminated = syscall.SIGTERM
	hangup     = syscall.SIGHUP
)

// scene is a play brought to a stage: the process that gets the signal, and those that are with it.
type scene struct {
	*play
	host, worker, chat *process
}

// connects starts a process against a signaling server that never answers, and waits until it has called there.
func (s *scene) connects(args ...string) *process {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = l.Close() })
	s.signal = l.Addr().String()
	pr := s.member(args...)
	called := make(chan net.Conn, 1)
	go func() { // ends with the listener
		if conn, err := l.Accept(); err == nil {
			called <- conn
		}
	}()
	select {
	case conn := <-called:
		s.t.Cleanup(func() { _ = conn.Close() })
	case <-pr.done:
		s.t.Fatalf("pooled %s: ended; log:\n%s", pr.name, pr.log)
	}
	return pr
}

// opens brings a room of a host and, when it is to be dealt, a worker to where the worker is in.
func (s *scene) opens(worker bool) {
	s.t.Helper()
	s.opensSignal()
	s.host = s.opensRoom("FEA-Q38", "2")
	if worker {
		s.worker = s.member("join", "FEA-Q38", "--name", "otter", "--json-log")
	}
}

// answers brings a room to the middle of an answer.
func (s *scene) answers() {
	s.t.Helper()
	s.opens(true)
	s.host.sees("room.online")
	s.worker.sees("room.online")
	s.chat = s.chatting(endless)
	s.chat.says(s.chat.out, "1, 2, 3")
}

func (s *scene) chatting(question string) *process { return s.play.chat("FEA-Q38", question) }

// stages are where a signal may come; each returns the process that gets it.
var stages = map[string]func(s *scene) *process{
	"host connecting": func(s *scene) *process { return s.connects("host", "mini", "--json-log") },
	"host waiting":    func(s *scene) *process { s.opens(false); return s.host },
	"host loading":    func(s *scene) *process { s.opens(true); s.host.sees("deal.made"); return s.host },
	"host online":     func(s *scene) *process { s.opens(true); s.host.sees("room.online"); return s.host },
	"host answering":  func(s *scene) *process { s.answers(); return s.host },
	"join connecting": func(s *scene) *process { return s.connects("join", "FEA-Q38", "--json-log") },
	"join looking for the host": func(s *scene) *process {
		s.opensSignal()
		s.worker = s.member("join", "FEA-Q38", "--json-log")
		s.worker.sees("signal.changed")
		return s.worker
	},
	"join waiting": func(s *scene) *process {
		s.opensSignal()
		s.host = s.opensRoom("FEA-Q38", "3")
		s.worker = s.member("join", "FEA-Q38", "--json-log")
		s.worker.sees("room.opened")
		return s.worker
	},
	"join loading":    func(s *scene) *process { s.opens(true); s.worker.sees("deal.made"); return s.worker },
	"join online":     func(s *scene) *process { s.opens(true); s.worker.sees("room.online"); return s.worker },
	"join answering":  func(s *scene) *process { s.answers(); return s.worker },
	"chat connecting": func(s *scene) *process { return s.connects("chat", "FEA-Q38", "hello") },
	"chat waiting for the model": func(s *scene) *process {
		s.opens(false)
		s.chat = s.chatting("hello")
		s.host.sees("peer.joined")
		return s.chat
	},
	"chat answering": func(s *scene) *process { s.answers(); return s.chat },
	"signal":         func(s *scene) *process { return s.opensSignal() },
	"demo starting": func(s *scene) *process {
		d := s.start("demo", "-q", endless)
		people.child(s.ctx, d.cmd.Process.Pid, "signal")
		return d
	},
	"demo joining": func(s *scene) *process {
		d := s.start("demo", "-q", endless)
		people.child(s.ctx, d.cmd.Process.Pid, "join")
		return d
	},
	"demo answering": func(s *scene) *process {
		d := s.start("demo", "-q", endless)
		d.says(d.out, "1, 2, 3")
		return d
	},
}

// TestSignals is the table of spec cli.md 3.6.
func TestSignals(t *testing.T) {
	for _, c := range []struct {
		stage string
		sent  syscall.Signal
		exit  int
	}{
		{"host connecting", interrupt, 130},
		{"host connecting", terminated, 0},
		{"host waiting", interrupt, 0},
		{"host loading", interrupt, 0},
		{"host online", hangup, 0},
		{"host answering", interrupt, 0},
		{"host answering", terminated, 0},
		{"join connecting", interrupt, 130},
		{"join connecting", hangup, 0},
		{"join looking for the host", interrupt, 0},
		{"join waiting", terminated, 0},
		{"join loading", interrupt, 0},
		{"join online", interrupt, 0},
		{"join online", hangup, 0},
		{"join answering", terminated, 0},
		{"chat connecting", interrupt, 130},
		{"chat connecting", terminated, 0},
		{"chat waiting for the model", interrupt, 130},
		{"chat waiting for the model", hangup, 0},
		{"chat answering", interrupt, 130},
		{"chat answering", terminated, 0},
		{"signal", interrupt, 0},
		{"signal", terminated, 0},
		{"signal", hangup, 0},
		{"demo starting", interrupt, 130},
		{"demo joining", terminated, 0},
		{"demo answering", interrupt, 130},
		{"demo answering", hangup, 0},
	} {
		t.Run(c.stage+" "+c.sent.String(), func(t *testing.T) {
			t.Parallel()
			s := &scene{play: newPlay(t, 40*time.Second)}
			pr := stages[c.stage](s)
			sent := time.Now()
			pr.signals(c.sent)
			pr.exits(c.exit)
			took := time.Since(sent)
			t.Logf("%.2f s", took.Seconds())
			if took > 2*leavingLimit {
				t.Errorf("it took %v to leave", took)
			}
			if c.exit != 0 && strings.Contains(pr.log.String(), "panic") {
				t.Errorf("it panicked: %s", pr.log)
			}
			s.after(pr)
		})
	}
}

// after looks how the others take it that pr left.
func (s *scene) after(pr *process) {
	s.t.Helper()
	switch {
	case strings.HasPrefix(pr.name, "demo"):
		for _, r := range people.all() {
			if r.Parent == pr.cmd.Process.Pid && !r.isGone(s.ctx) {
				s.t.Errorf("its %s outlived it", r.Args[0])
			}
		}
	case pr == s.host:
		if s.worker != nil {
			s.worker.exits(0)
		}
		if s.chat != nil {
			s.chat.exits(1)
		}
	case pr == s.worker && s.host != nil:
		left := s.host.wait("peer.left", func(e event) bool {
			return e.Ev == "peer.left" && e.Kind == "" && !strings.HasPrefix(e.Name, "pooled chat")
		})
		if left.Reason != "left" {
			s.t.Errorf("the host says it left because %q", left.Reason)
		}
		if s.chat != nil {
			s.chat.exits(1)
		}
	case pr == s.chat && s.host != nil:
		s.host.sees("peer.left")
		if s.worker != nil {
			if done := s.host.sees("answer.done"); done.Reason != "stopped" {
				s.t.Errorf("the host's answer ended with %q (%s)", done.Reason, done.Err)
			}
		}
	}
}

// TestSecondSignal: the first asks, the second does not wait.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	s := &scene{play: newPlay(t, 40*time.Second)}
	s.opens(true)
	s.host.sees("room.online")
	s.host.signals(interrupt)
	s.host.signals(terminated) // another one, since two of a kind may arrive as one
	s.host.exits(130)
}

// TestDemoKilled: its processes end by themselves.
func TestDemoKilled(t *testing.T) {
	t.Parallel()
	s := &scene{play: newPlay(t, 40*time.Second)}
	demo := stages["demo answering"](s)
	killed := time.Now()
	demo.signals(syscall.SIGKILL)
	<-demo.done
	childrenAreGone(t, s.play, demo)
	if took := time.Since(killed); took > 2*leavingLimit {
		t.Errorf("they needed %v", took)
	}
}
