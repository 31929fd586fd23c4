package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"pooled/netmesh"
	"pooled/netmesh/signal"
	"pooled/session"
	"pooled/session/sessiontest"
)

// TestRoomOverRealLinks runs host, worker and client over WebRTC on loopback, with a real signaling server; only the
// engine is made up.
func TestRoomOverRealLinks(t *testing.T) {
	want := alone(t)[0]
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := signal.Listen(ctx, signal.ListenOptions{Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	server := l.Server()
	var g errgroup.Group
	serverCtx, stopServer := context.WithCancel(ctx)
	g.Go(func() error { return l.Run(serverCtx) })
	enter := func(id session.PeerID, o session.Options, e session.Engine) (*session.Room, *sessiontest.Recorder, <-chan error) {
		o.Code = code
		room, err := session.New(o, e)
		if err != nil {
			t.Fatal(err)
		}
		m, err := netmesh.Open(ctx, netmesh.Config{ID: id, Servers: []signal.Server{server}, Loopback: true,
			AcceptLinks: o.Role != session.Asker, Deliver: room.Deliver})
		if err != nil {
			t.Fatal(err)
		}
		rec := sessiontest.Record(t, room, o.Name)
		end := make(chan error, 1)
		g.Go(func() error { return m.Run(context.WithoutCancel(ctx)) })
		g.Go(func() error { end <- room.Run(ctx, m); return nil })
		return room, rec, end
	}
	host, hostRec, hostEnd := enter(hostID, session.Options{Role: session.Host, Name: "anna", ModelKey: sessiontest.Key,
		MaxTokens: 40, StartWith: 2, PledgeBytes: pledge(5) + sessiontest.HostBytes}, &sessiontest.Engine{})
	worker, _, workerEnd := enter("", session.Options{Role: session.Worker, Name: "linux-abc", PledgeBytes: pledge(7)},
		&sessiontest.Engine{})
	hostRec.Wait(sessiontest.Is[session.RoomOnline]())
	_, _, lost := enter("", session.Options{Role: session.Worker, Name: "linux-xyz", PledgeBytes: pledge(7)}, &sessiontest.Engine{})
	client, clientRec, clientEnd := enter("", session.Options{Role: session.Asker, Name: "client", Temp: -1, MaxTokens: 40}, nil)
	clientRec.Wait(sessiontest.Is[session.RoomOnline]())

	if err := host.Ask(question); err != nil {
		t.Fatal(err)
	}
	hostRec.Wait(sessiontest.Is[session.AnswerDone]())
	if got := host.Snapshot().Chat[0]; got.Text != want {
		t.Errorf("got %q (%s %s), want %q", got.Text, got.Reason, got.Err, want)
	}
	if lap := host.Snapshot().Lap; lap == nil || lap.Hops != 2 {
		t.Errorf("measured %+v", lap)
	} else {
		t.Logf("a lap over two links: %.2f ms", lap.TotalMs)
	}
	if err := client.Ask(question); err != nil {
		t.Fatal(err)
	}
	if end := clientRec.Wait(sessiontest.Is[session.AnswerDone]()).(session.AnswerDone); end.Reason == session.DoneFailed {
		t.Errorf("the client's answer: %+v", end)
	}
	if err := worker.Close(); err != nil {
		t.Error(err)
	}
	hostRec.Wait(sessiontest.Is(func(e session.RoomDegraded) bool { return e.Why == "linux-abc left (layers 5-11)" }))
	if err := host.Redeal(); err != nil {
		t.Fatal(err)
	}
	hostRec.Wait(sessiontest.Is(func(e session.RoomOnline) bool { return e.Epoch == 2 }))
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	for name, end := range map[string]<-chan error{"host": hostEnd, "worker": workerEnd, "other worker": lost, "client": clientEnd} {
		if err := <-end; err != nil {
			t.Errorf("%s ended with %v", name, err)
		}
	}
	stopServer()
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
