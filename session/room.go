package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"pooled/compute/op"
	"pooled/netmesh"
	"pooled/netmesh/invite"
)

// closeWait bounds how long the room's links get to take leave (spec cli.md 3.6).
const closeWait = 800 * time.Millisecond

// Room is one device's membership of a room, in one of the roles. Make it with New, give its Deliver to the mesh it
// will use, then call Run. It implements View.
type Room struct {
	opts   Options
	engine *engineLoop // nil for an asker
	inbox  *inbox
	bus    *Bus
	core   *core // the loop's alone once Run began

	mesh   Mesh
	timers map[string]ticking
	set    uint64 // timers set so far

	mu    sync.Mutex
	begun bool
	over  chan struct{} // closed when the loop ended
}

var _ View = (*Room)(nil)

// New prepares a room. The options must hold a role, a room code and a name; a host needs a model key too, and every
// role but Asker an engine. The engine stays the caller's: Run frees its layers but doesn't close it.
func New(o Options, e Engine) (*Room, error) {
	code, err := invite.ParseCode(o.Code)
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	o.Code = string(code)
	switch {
	case o.Role != Host && o.Role != Worker && o.Role != Asker:
		return nil, fmt.Errorf("session: no role %q", o.Role)
	case o.Role != Asker && e == nil:
		return nil, fmt.Errorf("session: a %s needs an engine", o.Role)
	case o.Role == Host && o.ModelKey == "":
		return nil, errors.New("session: a host needs a model")
	}
	if o.Name = invite.CleanName(o.Name, ""); o.Name == "" {
		return nil, errors.New("session: a name is needed")
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	var device op.Info
	r := &Room{opts: o, inbox: newInbox(), timers: make(map[string]ticking), over: make(chan struct{})}
	if o.Role != Asker {
		device = e.Info()
		r.engine = newEngineLoop(e, r.inbox.put)
	}
	r.core = newCore(o, device)
	r.bus = NewBus(r.core.snapshot())
	return r, nil
}

// Options returns what the room runs with: cleaned, with the seed that was drawn.
func (r *Room) Options() Options { return r.opts }

// Deliver takes an event of the network. It never blocks and may be called before Run, from any goroutine.
func (r *Room) Deliver(ev netmesh.Event) { r.inbox.deliver(ev) }

// Snapshot returns the current state.
func (r *Room) Snapshot() *State { return r.bus.Snapshot() }

// Subscribe starts a subscription that sees every event after the returned snapshot.
func (r *Room) Subscribe(name string) (*Subscription, *State) { return r.bus.Subscribe(name) }

// Run is the room loop. It returns when the room is over: nil after a wanted end (Close, ctx, a host that closed), a
// *Problem otherwise. By then the links are closed, the engine's layers are free and every event was published. It is
// called once.
func (r *Room) Run(ctx context.Context, m Mesh) error {
	r.mu.Lock()
	if r.begun {
		r.mu.Unlock()
		return errors.New("session: the room ran already")
	}
	r.begun = true
	r.mu.Unlock()
	r.mesh = m
	engineCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	if r.engine != nil {
		wg.Go(func() { r.engine.run(engineCtx) })
	}
	r.step(begin{self: m.ID()})
	r.loop(ctx)
	for _, t := range r.timers {
		t.timer.Stop()
	}
	for _, left := range r.inbox.close() {
		if c, ok := left.(command); ok {
			c.answer <- ErrClosed
		}
	}
	close(r.over)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	err := m.Close(closing)
	cancel()
	stop()
	wg.Wait()
	r.bus.Close()
	if p := r.core.st.Problem; p != nil {
		return p
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("session: close links: %w", err)
	}
	return nil
}

func (r *Room) loop(ctx context.Context) {
	done := ctx.Done()
	for !r.core.closed {
		if msg, ok := r.inbox.take(); ok {
			r.step(msg)
			continue
		}
		select {
		case <-r.inbox.wake:
		case <-done:
			done = nil
			r.step(command{do: verbClose, text: "interrupted", answer: make(chan error, 1)})
		}
	}
}

// step handles one input: effects first, so that a frame leaves before anyone is told of it, then the events.
func (r *Room) step(msg any) {
	now := time.Now()
	if m, ok := msg.(rang); ok {
		if t, set := r.timers[m.name]; !set || t.number != m.number {
			return
		}
		delete(r.timers, m.name)
		msg = alarm{m.name}
	}
	events, effects := r.core.handle(input{at: now, msg: msg})
	for _, e := range effects {
		r.perform(e)
	}
	if len(events) > 0 || r.core.dirty {
		r.bus.Publish(now, r.core.snapshot(), events...)
	}
}

// perform is the executor.
func (r *Room) perform(e effect) {
	switch e := e.(type) {
	case send:
		_ = r.mesh.Send(e.to, e.msg) // a link that is gone says so itself
	case sendFrame:
		if err := r.mesh.SendFrame(e.to, e.frame); err != nil {
			r.inbox.put(unsent{e.to, err})
		}
	case dial:
		r.mesh.Dial(e.peer)
	case hang:
		r.mesh.Hang(e.peer, e.why)
	case start:
		r.engine.add(e)
	case abort:
		r.engine.abort(e.id)
	case timer:
		r.setTimer(e)
	case silence:
		r.mesh.SetSilence(e.peer, e.limit)
	case busy:
		r.mesh.SetLoading(e.on)
	case end:
	}
}

// ticking is a timer that was set; one that rings after it was set anew is ignored by its number.
type ticking struct {
	timer  *time.Timer
	number uint64
}

// rang is a timer's word to the loop.
type rang struct {
	name   string
	number uint64
}

func (r *Room) setTimer(t timer) {
	if old, there := r.timers[t.name]; there {
		old.timer.Stop()
		delete(r.timers, t.name)
	}
	if t.d <= 0 {
		return
	}
	r.set++
	n := r.set
	r.timers[t.name] = ticking{time.AfterFunc(t.d, func() { r.inbox.put(rang{t.name, n}) }), n}
}

// ask puts a command to the loop and waits for its verdict, which comes at once.
func (r *Room) ask(c command) error {
	r.mu.Lock()
	begun := r.begun
	r.mu.Unlock()
	if !begun {
		return ErrClosed
	}
	c.answer = make(chan error, 1)
	r.inbox.put(c)
	select {
	case err := <-c.answer:
		return err
	case <-r.over:
		select {
		case err := <-c.answer:
			return err
		default:
			return ErrClosed
		}
	}
}

// Ask puts a question to the room's model.
func (r *Room) Ask(text string) error {
	text = strings.ToValidUTF8(text, "\uFFFD")
	switch {
	case strings.TrimSpace(text) == "":
		return ErrEmptyAsk
	case units(text) > apiText:
		return ErrLongAsk
	}
	return r.ask(command{do: verbAsk, text: text})
}

// Stop ends the running answer after the lap in flight.
func (r *Room) Stop() error { return r.ask(command{do: verbStop}) }

// Clear forgets the conversation.
func (r *Room) Clear() error { return r.ask(command{do: verbClear}) }

// SetThinking switches whether the model thinks before it answers.
func (r *Room) SetThinking(on bool) error { return r.ask(command{do: verbThinking, on: on}) }

// Start deals the layers and loads them (host).
func (r *Room) Start() error { return r.ask(command{do: verbStart}) }

// Redeal deals again over the devices now in the room (host).
func (r *Room) Redeal() error { return r.ask(command{do: verbRedeal}) }

// Close leaves the room; the host closes it for everyone. Run returns soon after.
func (r *Room) Close() error {
	r.mu.Lock()
	if !r.begun { // Run will find it first thing
		r.inbox.put(command{do: verbClose, answer: make(chan error, 1)})
	}
	r.mu.Unlock()
	if err := r.ask(command{do: verbClose}); !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}
