package netmesh

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/pion/webrtc/v4"
	"golang.org/x/sync/errgroup"

	"pooled/netmesh/signal"
	"pooled/netmesh/wire"
)

// Mesh is this process's end of all links. Open makes one, Run runs it.
type Mesh struct {
	cfg   Config
	tune  tuning
	api   *webrtc.API
	rtc   webrtc.Configuration
	sig   *signal.Client
	epoch time.Time

	jobs    jobs
	kaWake  chan struct{}
	running atomic.Bool
	closing chan struct{} // closed by Close
	hurry   chan struct{} // closed when Close's time is over
	stopped chan struct{} // closed when Run has returned
	close1  sync.Once
	close2  sync.Once
	workers sync.WaitGroup // goroutines of links; only the loop adds to it

	deliverMu sync.Mutex
	muted     bool // nothing is delivered any more

	mu      sync.Mutex
	open    map[PeerID]*link // current links, for Send; written by the loop
	limits  map[PeerID]int   // SetFrameLimit, "" for peers not named
	silence map[PeerID]time.Duration
	loading bool

	// of the loop
	conns    map[connKey]*link // every link that has not ended
	dials    map[PeerID]*link  // dialed by us and not open yet
	early    map[connKey]*earlyCandidates
	judge    judge
	lastBeat time.Duration
}

// connKey names a connection: ids are the dialing side's choice, so the peer belongs to it.
type connKey struct {
	peer PeerID
	conn string
}

// Open registers with the first signaling server of the list that can be used. Run has to be called next, or Close. The
// error matches ErrSignalDown when no server answered (and then is a *signal.DownError too), or ErrIDTaken.
func Open(ctx context.Context, cfg Config) (*Mesh, error) { return open(ctx, cfg, defaults()) }

func open(ctx context.Context, cfg Config, tune tuning) (*Mesh, error) {
	log := cfg.Log
	cfg.Log = func(line string) {
		if log != nil {
			log(oneLine(line))
		}
	}
	if cfg.Deliver == nil {
		cfg.Deliver = func(Event) {}
	}
	m := &Mesh{
		cfg: cfg, tune: tune, epoch: time.Now(), jobs: jobs{wake: make(chan struct{}, 1)},
		kaWake: make(chan struct{}, 1), closing: make(chan struct{}), hurry: make(chan struct{}), stopped: make(chan struct{}),
		open: map[PeerID]*link{}, limits: map[PeerID]int{"": wire.DefaultFrameBytes}, silence: map[PeerID]time.Duration{},
		conns: map[connKey]*link{}, dials: map[PeerID]*link{}, early: map[connKey]*earlyCandidates{},
	}
	m.api, m.rtc = newAPI(cfg, tune)
	var err error
	m.sig, err = signal.Open(ctx, signal.Options{
		Servers: cfg.Servers, ID: string(cfg.ID), Deliver: m.signalEvent, Log: cfg.Log,
	})
	if errors.Is(err, signal.ErrDown) {
		return nil, fmt.Errorf("netmesh: %w: %w", ErrSignalDown, err)
	}
	if err != nil {
		return nil, fmt.Errorf("netmesh: %w", err)
	}
	return m, nil
}

// oneLine makes a log line fit for a terminal: parts of it may come from a peer or a server.
func oneLine(s string) string {
	const most = 2000
	s = strings.ToValidUTF8(s[:min(len(s), most)], "")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// ID is this end's id on the signaling server, for the life of the mesh.
func (m *Mesh) ID() PeerID { return PeerID(m.sig.ID()) }

// Server is the signaling server in use.
func (m *Mesh) Server() signal.Server { return m.sig.Server() }

func (m *Mesh) now() time.Duration { return time.Since(m.epoch) }

// Run works until Close is called (the result is nil) or ctx ends (then links are cut without a word, and the result is
// ctx's error). It is called once.
func (m *Mesh) Run(ctx context.Context) error {
	if !m.running.CompareAndSwap(false, true) {
		return errors.New("netmesh: Run was called before, or the mesh is closed")
	}
	defer close(m.stopped)
	g, gctx := errgroup.WithContext(ctx)
	gctx, cancel := context.WithCancel(gctx)
	g.Go(func() error { return m.sig.Run(gctx) })
	g.Go(func() error { return m.keepAlive(gctx) })
	g.Go(func() error {
		defer cancel()
		return m.loop(gctx)
	})
	err := g.Wait()
	if ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Close says leaving on every link, closes everything and waits for Run to return. When ctx ends first, links are cut
// and the result is ctx's error; Run then returns a little later.
func (m *Mesh) Close(ctx context.Context) error {
	m.close1.Do(func() { close(m.closing) })
	if m.running.CompareAndSwap(false, true) { // Run was never called
		m.sig.Abandon()
		close(m.stopped)
	}
	m.mute()
	select {
	case <-m.stopped:
		return nil
	case <-ctx.Done():
		m.close2.Do(func() { close(m.hurry) })
		return ctx.Err()
	}
}

// Dial opens a link; LinkUp or DialFailed follows. A peer that is linked or being dialed is left alone.
func (m *Mesh) Dial(peer PeerID) { m.post(func() { m.dial(peer) }) }

// Send queues a control message, a map with a text field "t". The error matches ErrClosed when there is no open link,
// or ErrTooLarge; a link that can't take it any more is closed.
func (m *Mesh) Send(peer PeerID, msg map[string]any) error {
	l, err := m.linkTo(peer)
	if err != nil {
		return err
	}
	return l.sendMessage(msg)
}

// SendFrame queues a frame. It does not keep f or its data.
func (m *Mesh) SendFrame(peer PeerID, f *wire.Frame) error {
	l, err := m.linkTo(peer)
	if err != nil {
		return err
	}
	return l.sendFrame(f)
}

func (m *Mesh) linkTo(peer PeerID) (*link, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.open[peer]; l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("netmesh: %s: %w", peer, ErrClosed)
}

// Hang closes the link to one peer after what is queued was sent (300 ms at most), or gives up dialing it. LinkDown with
// why follows for an open link, and nothing for a dial.
func (m *Mesh) Hang(peer PeerID, why string) { m.post(func() { m.hang(peer, why) }) }

// SetFrameLimit sets how many bytes the payload of a received frame may have, for one peer or, with an empty peer, for
// all that have no limit of their own; 4 MiB at first. Larger frames are dropped.
func (m *Mesh) SetFrameLimit(peer PeerID, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limits[peer] = bytes
	for p, l := range m.open {
		l.limit.Store(int64(m.limitOf(p)))
	}
}

func (m *Mesh) limitOf(peer PeerID) int {
	if n, ok := m.limits[peer]; ok {
		return n
	}
	return m.limits[""]
}

// SetSilence sets after how much silence the link to a peer counts as lost (see SilenceLimit); NeverSilent switches that
// off, 0 takes the usual limit again. It holds for later links of that peer too.
func (m *Mesh) SetSilence(peer PeerID, limit time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.silence[peer] = limit; limit == 0 {
		delete(m.silence, peer)
	}
	if l := m.open[peer]; l != nil {
		l.silence.Store(int64(limit))
	}
}

// SetLoading says that this end is busy loading, or is no more: meanwhile no link is judged by its silence.
func (m *Mesh) SetLoading(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loading = on
}

// post hands a job to the loop. It never waits.
func (m *Mesh) post(f func()) { m.jobs.add(f) }

// deliver passes an event on, unless it is about a link that is gone.
func (m *Mesh) deliver(l *link, e Event) {
	m.deliverMu.Lock()
	defer m.deliverMu.Unlock()
	if !m.muted && (l == nil || !l.gone) {
		m.cfg.Deliver(e)
	}
}

// mute ends all delivery.
func (m *Mesh) mute() {
	m.deliverMu.Lock()
	defer m.deliverMu.Unlock()
	m.muted = true
}

// jobs is the loop's inbox. What others can make it hold is bounded where it is filled.
type jobs struct {
	mu   sync.Mutex
	list []func()
	wake chan struct{}
}

func (j *jobs) add(f func()) {
	j.mu.Lock()
	j.list = append(j.list, f)
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

func (j *jobs) len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.list)
}

// take returns the next job, nil when there is none.
func (j *jobs) take() func() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.list) == 0 {
		return nil
	}
	f := j.list[0]
	j.list[0] = nil
	j.list = j.list[1:]
	return f
}
