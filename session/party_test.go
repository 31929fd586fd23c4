package session_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pooled/session"
	"pooled/session/sessiontest"
)

const (
	code   = "4TKG9P"
	hostID = session.PeerID("pooled-room-4TKG9P")
	gb     = 1 << 30
)

// party is a room of several devices in one test, inside a synctest bubble.
type party struct {
	t   *testing.T
	net *sessiontest.Net
	wg  sync.WaitGroup

	late bool // rooms made from now on hang up late

	leave  []context.CancelFunc
	guests []*guest
}

// guest of a party: a room with what belongs to it.
type guest struct {
	*session.Room
	id     session.PeerID
	mesh   *sessiontest.Mesh
	engine *sessiontest.Engine
	rec    *sessiontest.Recorder
	ended  chan struct{}
	err    error // of Run, once ended is closed
}

// bubble runs a party and waits for everyone to go home.
func bubble(t *testing.T, run func(*party)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &party{t: t, net: sessiontest.NewNet()}
		defer func() {
			for _, leave := range p.leave {
				leave()
			}
			p.wg.Wait()
		}()
		run(p)
	})
}

// enter starts a room; its context ends with the party.
func (p *party) enter(id session.PeerID, o session.Options, e *sessiontest.Engine) *guest {
	p.t.Helper()
	o.Code = code
	if o.Name == "" {
		o.Name = string(id)
	}
	if o.Seed == 0 {
		o.Seed = 7
	}
	var engine session.Engine
	if e != nil {
		engine = e
	}
	room, err := session.New(o, engine)
	if err != nil {
		p.t.Fatal(err)
	}
	g := &guest{Room: room, id: id, engine: e, ended: make(chan struct{}), rec: sessiontest.Record(p.t, room, string(id))}
	g.mesh = p.net.Mesh(id, room.Deliver)
	var m session.Mesh = g.mesh
	if p.late {
		m = lateHang{g.mesh}
	}
	p.guests = append(p.guests, g)
	ctx, cancel := context.WithCancel(context.Background())
	p.wg.Go(func() {
		defer close(g.ended)
		g.err = room.Run(ctx, m)
	})
	p.leave = append(p.leave, cancel)
	return g
}

// host opens the room: greedy, with MaxTokens 40, and a pledge that holds layers layers.
func (p *party) host(layers int, change ...func(*session.Options)) *guest {
	o := session.Options{Role: session.Host, Name: "anna", ModelKey: sessiontest.Key, MaxTokens: 40,
		PledgeBytes: pledge(layers) + sessiontest.HostBytes}
	for _, c := range change {
		c(&o)
	}
	g := p.enter(hostID, o, &sessiontest.Engine{})
	g.rec.Wait(sessiontest.Is[session.RoomOpened]())
	return g
}

// worker joins with a pledge that holds layers layers.
func (p *party) worker(id session.PeerID, layers int) *guest {
	g := p.enter(id, session.Options{Role: session.Worker, PledgeBytes: pledge(layers)}, &sessiontest.Engine{})
	g.rec.Wait(sessiontest.Is[session.RoomOpened]())
	return g
}

// slow makes an engine take d for every call.
func slow(d time.Duration) func(context.Context, string) error {
	return func(ctx context.Context, _ string) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// asker joins as an API client.
func (p *party) asker(id session.PeerID, change ...func(*session.Options)) *guest {
	o := session.Options{Role: session.Asker, MaxTokens: 40, Temp: -1}
	for _, c := range change {
		c(&o)
	}
	return p.enter(id, o, nil)
}

// pledge is what layers layers take at the default context.
func pledge(layers int) int64 {
	return int64(layers) * (sessiontest.LayerBytes + sessiontest.CtxDefault*sessiontest.KVBytes)
}

// must fails the test on an error.
func (p *party) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// start deals and waits until the room is online.
func (p *party) start(h *guest) {
	p.t.Helper()
	synctest.Wait()
	p.must(h.Start())
	h.rec.Wait(sessiontest.Is[session.RoomOnline]())
	synctest.Wait()
}

// ask asks and returns the text of the answer and its end.
func (p *party) ask(g *guest, question string) (string, session.AnswerDone) {
	p.t.Helper()
	g.rec.Skip()
	p.must(g.Ask(question))
	return p.answer(g)
}

// answer waits for an answer's end and returns its text.
func (p *party) answer(g *guest) (string, session.AnswerDone) {
	p.t.Helper()
	done := g.rec.Wait(sessiontest.Is[session.AnswerDone]()).(session.AnswerDone)
	var b strings.Builder
	for _, e := range g.rec.Seen() {
		if x, ok := e.Event.(session.AnswerText); ok && x.ID == done.ID {
			b.WriteString(x.Text)
		}
	}
	synctest.Wait()
	return b.String(), done
}
