package netmesh

import (
	"context"
	"testing"
	"time"

	"pooled/netmesh/signal"
	"pooled/netmesh/wire"
)

// benchPair is two linked meshes whose frames arrive on channels.
func benchPair(b *testing.B) (m [2]*Mesh, in [2]chan wire.Frame, stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	l, err := signal.Listen(ctx, signal.ListenOptions{Host: "127.0.0.1"})
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 3)
	go func() { ended <- l.Run(ctx) }()
	up := make(chan struct{}, 2)
	for i := range m {
		in[i] = make(chan wire.Frame, 1024)
		m[i], err = Open(ctx, Config{
			ID: []PeerID{"a", "b"}[i], Servers: []signal.Server{l.Server()}, Loopback: true, AcceptLinks: true,
			Deliver: func(e Event) {
				switch e := e.(type) {
				case LinkUp:
					up <- struct{}{}
				case FrameIn:
					in[i] <- e.Frame
				}
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		go func() { ended <- m[i].Run(ctx) }()
	}
	m[0].Dial("b")
	<-up
	<-up
	return m, in, func() {
		cancel()
		for range 3 {
			<-ended
		}
	}
}

// BenchmarkHop is the round trip of a 4 KiB frame: one token's hop there and back.
func BenchmarkHop(b *testing.B) {
	m, in, stop := benchPair(b)
	defer stop()
	f := &wire.Frame{Kind: wire.Hidden, N: 1, Data: make([]byte, 4096)}
	b.ReportAllocs()
	var worst time.Duration
	for b.Loop() {
		begin := time.Now()
		for i, to := range []PeerID{"b", "a"} {
			if err := m[i].SendFrame(to, f); err != nil {
				b.Fatal(err)
			}
			<-in[1-i]
		}
		worst = max(worst, time.Since(begin))
	}
	b.ReportMetric(float64(worst.Microseconds()), "worst-µs")
}

// BenchmarkHopPaced is BenchmarkHop with pauses between the laps, as computing makes them.
func BenchmarkHopPaced(b *testing.B) {
	m, in, stop := benchPair(b)
	defer stop()
	f := &wire.Frame{Kind: wire.Hidden, N: 1, Data: make([]byte, 4096)}
	var total, worst time.Duration
	n := 0
	for b.Loop() {
		<-time.After(20 * time.Millisecond)
		begin := time.Now()
		for i, to := range []PeerID{"b", "a"} {
			if err := m[i].SendFrame(to, f); err != nil {
				b.Fatal(err)
			}
			<-in[1-i]
		}
		d := time.Since(begin)
		total += d
		worst = max(worst, d)
		n++
	}
	b.ReportMetric(float64(total.Microseconds())/float64(n), "lap-µs")
	b.ReportMetric(float64(worst.Microseconds()), "worst-µs")
}

// BenchmarkPrefill sends prompt frames of 16 columns of 2048 values one way, as many as the link takes.
func BenchmarkPrefill(b *testing.B) {
	m, in, stop := benchPair(b)
	defer stop()
	f := &wire.Frame{Kind: wire.HiddenB, N: 16, Data: make([]byte, 16*2048*2)}
	b.SetBytes(int64(len(f.Data)))
	b.ReportAllocs()
	flying := 0
	for b.Loop() {
		if err := m[0].SendFrame("b", f); err != nil {
			b.Fatal(err)
		}
		if flying++; flying == 64 {
			<-in[1]
			flying--
		}
	}
	for range flying {
		<-in[1]
	}
}

// BenchmarkPrefillOne is the round trip of one such frame.
func BenchmarkPrefillOne(b *testing.B) {
	m, in, stop := benchPair(b)
	defer stop()
	f := &wire.Frame{Kind: wire.HiddenB, N: 16, Data: make([]byte, 16*2048*2)}
	var worst time.Duration
	for b.Loop() {
		begin := time.Now()
		for i, to := range []PeerID{"b", "a"} {
			if err := m[i].SendFrame(to, f); err != nil {
				b.Fatal(err)
			}
			<-in[1-i]
		}
		worst = max(worst, time.Since(begin))
	}
	b.ReportMetric(float64(worst.Microseconds()), "worst-µs")
}
