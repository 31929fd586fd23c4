package session_test

import (
	"context"
	"testing"

	"pooled/compute/op"
	"pooled/session"
	"pooled/session/sessiontest"
)

// still is an engine that computes nothing, to measure the room itself.
type still struct {
	sessiontest.Engine
	hidden [sessiontest.Width]float32
	top    [1]op.Candidate
}

func (s *still) Embed(_ context.Context, _ int, tokens []int32) ([]float32, error) {
	if len(tokens) == 1 {
		return s.hidden[:], nil
	}
	return make([]float32, len(tokens)*sessiontest.Width), nil
}

func (s *still) Hidden(_ context.Context, _, n int, in []float32) ([]float32, error) { return in, nil }

func (s *still) Top(context.Context, []float32, int) ([]op.Candidate, error) {
	s.top[0] = op.Candidate{ID: 'x', Logit: 1}
	return s.top[:], nil
}

func (s *still) EmbedTop(ctx context.Context, _ int, _ []int32, k int) ([]op.Candidate, error) {
	return s.Top(ctx, nil, k)
}

// BenchmarkToken is what the room costs per decoded token, engine and network taken out: one device, and two with a
// lap between them (both loops, four hand-overs to and from an engine goroutine).
func BenchmarkToken(b *testing.B) {
	for _, c := range []struct {
		name   string
		layers int
	}{{"one device", sessiontest.Layers}, {"two devices", 5}} {
		b.Run(c.name, func(b *testing.B) {
			net := sessiontest.NewNet()
			ctx, cancel := context.WithCancel(b.Context())
			var ends []chan error
			enter := func(id session.PeerID, o session.Options) *session.Room {
				o.Code, o.Name = code, string(id)
				r, err := session.New(o, &still{})
				if err != nil {
					b.Fatal(err)
				}
				end := make(chan error, 1)
				ends = append(ends, end)
				m := net.Mesh(id, r.Deliver)
				go func() { end <- r.Run(ctx, m) }()
				return r
			}
			o := session.Options{Role: session.Host, ModelKey: sessiontest.Key, MaxTokens: 60000, Ctx: sessiontest.CtxMax,
				PledgeBytes: pledge(c.layers)*2 + sessiontest.HostBytes}
			if c.layers < sessiontest.Layers {
				o.StartWith, o.PledgeBytes = 2, pledge(c.layers)+sessiontest.HostBytes+100<<20
			} else {
				o.AutoStart = true
			}
			host := enter(hostID, o)
			rec := sessiontest.Record(b, host, "bench")
			if c.layers < sessiontest.Layers {
				enter("worker", session.Options{Role: session.Worker, PledgeBytes: pledge(sessiontest.Layers) * 2})
			}
			rec.Wait(sessiontest.Is[session.RoomOnline]())
			b.ResetTimer()
			b.ReportAllocs()
			for done := 0; done < b.N; {
				if err := host.Ask("go"); err != nil {
					b.Fatal(err)
				}
				end := rec.Wait(sessiontest.Is[session.AnswerDone]()).(session.AnswerDone)
				if end.Stats.Tokens == 0 {
					b.Fatalf("ended with %+v", end)
				}
				done += end.Stats.Tokens
				if err := host.Clear(); err != nil {
					b.Fatal(err)
				}
				if done >= b.N {
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(done)/1000, "µs/token")
				}
			}
			b.StopTimer()
			cancel()
			for _, end := range ends {
				if err := <-end; err != nil {
					b.Error(err)
				}
			}
		})
	}
}
