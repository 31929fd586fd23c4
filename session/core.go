package session

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pooled/compute/op"
	"pooled/netmesh"
	"pooled/netmesh/invite"
)

// Waits of the room.
const (
	helloWait = 10 * time.Second // for the first message of a link
	greetWait = 20 * time.Second // for the host, from the dial (spec wire.md 7.6)
	askerWait = 15 * time.Second // the same for an asker
)

// How long a link may be silent (spec room.md 7.1); all others keep the network's own limit.
const (
	hostSilence  = 30 * time.Second // the host, as the others see it
	chainSilence = 12 * time.Second // a device of the chain, as the host sees it (spec wire.md 7.1)
	startSilence = 45 * time.Second // the same while a start runs
	phoneSilence = 60 * time.Second
)

// core is the reducer: what all roles share. handle is its only entry; it collects events and effects.
type core struct {
	opts Options
	role role
	self PeerID
	me   meta
	name string // how the room knows this device
	host PeerID // the host's id

	now     time.Time
	st      State // the working copy; slices in it are replaced, never written
	members map[PeerID]*peer
	jobs    uint64 // last job id given
	closed  bool

	progress answerText // of State.Answer

	events  []Event
	effects []effect
	dirty   bool // st changed
}

// peer is a link and who is at the other end.
type peer struct {
	id      PeerID
	linked  bool
	hung    bool // this end is closing the link: what still comes on it is ignored
	said    bool // it said hello on this link
	greeted bool // its hello was accepted, or the host's roster names it
	lines   int  // of the log that it caused since linesAt
	linesAt time.Time
	name    string
	meta    meta
	rtt     time.Duration
	path    string
	lo, hi  int
	out     Out
	pct     int
	ready   bool
	silence time.Duration // the limit that was set, 0 for the usual one
}

// role is what differs between host, worker and asker.
type role interface {
	begin()
	signal(up bool)
	linked(p *peer)
	hello(p *peer, h msgHello) // version and name are fine
	gone(p *peer, why string, leaving bool)
	dialFailed(id PeerID, err error)
	message(p *peer, msg any)
	frame(p *peer, f netmesh.FrameIn)
	unsent(id PeerID, err error)
	done(r result)
	loading(p progress)
	alarm(name string)
	command(c command) error
	bye(p *peer, b msgBye)
	closing(reason string) // last words; the core closes the room
}

func newCore(o Options, device op.Info) *core {
	c := &core{opts: o, members: make(map[PeerID]*peer), name: o.Name, host: hostID(o.Code)}
	c.st = State{Role: o.Role, Phase: Connecting, Code: invite.Code(o.Code).Shown(), SelfName: o.Name,
		Device: Device{GPU: device.Name, Backend: device.Backend, Software: device.Software,
			PledgeBytes: o.PledgeBytes, PledgeWhy: o.PledgeWhy}}
	c.me = ownMeta(o, device)
	switch o.Role {
	case Host:
		c.role = newHost(c)
	case Worker:
		c.role = newWorker(c)
	default:
		c.role = newAsker(c)
	}
	return c
}

func hostID(code string) PeerID { return PeerID(invite.Code(code).HostID()) }

// handle takes one input. The events and effects are those of this input alone.
func (c *core) handle(in input) ([]Event, []effect) {
	c.now, c.events, c.effects = in.at, nil, nil
	if c.closed {
		if cmd, ok := in.msg.(command); ok {
			cmd.answer <- ErrClosed
		}
		return nil, nil
	}
	switch m := in.msg.(type) {
	case begin:
		c.self, c.st.Self = m.self, m.self
		c.rebuild()
		c.role.begin()
	case command:
		m.answer <- c.command(m)
	case result:
		c.role.done(m)
	case progress:
		c.role.loading(m)
	case alarm:
		c.alarm(m.name)
	case unsent:
		c.role.unsent(m.peer, m.err)
	case flooded:
		c.hangUp(m.peer, "it sent more than can be handled")
	case netmesh.Event:
		c.network(m)
	}
	return c.events, c.effects
}

func (c *core) command(m command) error {
	if m.do == verbClose {
		c.close(m.text, nil)
		return nil
	}
	return c.role.command(m)
}

func (c *core) network(ev netmesh.Event) {
	switch ev := ev.(type) {
	case netmesh.SignalUp:
		c.st.Server, c.st.SignalUp = ev.Server, true
		c.emit(SignalChanged{Up: true, Server: ev.Server})
		c.role.signal(true)
	case netmesh.SignalDown:
		c.st.SignalUp = false
		c.emit(SignalChanged{Server: ev.Server, Why: reasonOf(ev.Err)})
		c.role.signal(false)
	case netmesh.LinkUp:
		c.linkUp(ev.Peer)
	case netmesh.LinkDown:
		c.linkDown(ev)
	case netmesh.DialFailed:
		c.role.dialFailed(ev.Peer, ev.Err)
	case netmesh.RTT:
		if p := c.members[ev.Peer]; p != nil && p.linked {
			p.rtt, p.path = ev.D, cleanLine(ev.Path, 20)
			c.rebuild()
			c.emit(LinkRTT{Peer: ev.Peer, Ms: millis(ev.D)})
		}
	case netmesh.Message:
		c.message(ev)
	case netmesh.FrameIn:
		if p := c.members[ev.Peer]; p != nil && p.linked && !p.hung && p.greeted {
			c.role.frame(p, ev)
		}
	}
}

func (c *core) linkUp(id PeerID) {
	p := c.members[id]
	if p == nil {
		p = &peer{id: id, name: fallbackName(id)}
		c.members[id] = p
	}
	p.linked, p.hung, p.said = true, false, false
	c.role.linked(p)
}

// greet says hello and expects one.
func (c *core) greet(p *peer, own map[string]any) {
	c.send(p.id, "hello", map[string]any{"name": c.name, "meta": own, "v": protocol})
	if p.id != c.host {
		c.timer("hello "+string(p.id), helloWait)
	}
}

func (c *core) linkDown(ev netmesh.LinkDown) {
	p := c.members[ev.Peer]
	if p == nil || !p.linked {
		return
	}
	p.linked = false
	c.timer("hello "+string(p.id), 0)
	why := cleanLine(ev.Why, maxReason)
	if why == "" {
		why = "the link closed"
	}
	c.role.gone(p, why, ev.Leaving)
}

func (c *core) alarm(name string) {
	if id, ok := strings.CutPrefix(name, "hello "); ok {
		c.stranger(PeerID(id))
		return
	}
	c.role.alarm(name)
}

// stranger closes a link whose time for a hello is over, unless it is known by now who is there.
func (c *core) stranger(id PeerID) {
	switch p := c.members[id]; {
	case p == nil || p.said && p.greeted:
	case p.said:
		c.hangUp(id, "it isn't in this room")
	default:
		c.hangUp(id, "it didn't say hello")
	}
}

// hangUp closes a link with a reason and says so.
func (c *core) hangUp(id PeerID, why string) {
	p := c.members[id]
	if p == nil || !p.linked || p.hung {
		return
	}
	c.emit(PeerRefused{Peer: id, Why: why})
	c.notice(Error, "hangup", fmt.Sprintf("closed the link to %s: %s", p.name, why))
	c.hang(p, why)
}

// hang closes a link. The end of it is reported as any other.
func (c *core) hang(p *peer, why string) {
	p.hung = true
	c.do(hang{p.id, why})
}

// message reads a control message if this role takes it from that peer.
func (c *core) message(ev netmesh.Message) {
	t, _ := ev.Msg["t"].(string)
	r, known := rules[t]
	p := c.members[ev.Peer]
	if !known || p == nil || !p.linked || p.hung || r.to&roleBit[c.opts.Role] == 0 {
		return
	}
	switch r.from {
	case member, chained: // the host's role knows its chain
		if !p.greeted {
			return
		}
	case fromHost:
		if p.id != c.host || !p.greeted {
			return
		}
	}
	msg := r.read(fields(ev.Msg))
	if msg == nil {
		return
	}
	switch m := msg.(type) {
	case msgHello:
		c.hello(p, m)
	case msgBye:
		c.role.bye(p, m)
	default:
		c.role.message(p, msg)
	}
}

func (c *core) hello(p *peer, h msgHello) {
	first := !p.said
	if first {
		c.timer("hello "+string(p.id), 0)
	}
	if h.version != protocol {
		theirs := versionText(h.version)
		c.send(p.id, "bye", map[string]any{"reason": versionBye(c.opts.Role, theirs)})
		c.emit(PeerRefused{Peer: p.id, Why: fmt.Sprintf("it speaks room protocol %s, this device %d", theirs, protocol)})
		c.hang(p, "another protocol version")
		if p.id == c.host {
			c.close("another protocol version", versionProblem(h.version))
		}
		return
	}
	p.said = true
	c.role.hello(p, h)
	if first && !p.greeted { // now it is for the host's roster to name it
		c.timer("hello "+string(p.id), helloWait)
	}
}

// emit appends an event.
func (c *core) emit(ev Event) {
	c.events = append(c.events, ev)
	c.dirty = true
	switch ev := ev.(type) {
	case Notice:
		c.st.Log = pushed(c.st.Log, LogLine{At: c.now, Level: ev.Level, Text: ev.Text}, MaxLog)
	case Lap:
		c.st.Lap = &ev
	}
}

// notice emits a line for the log.
func (c *core) notice(l Level, code, text string) {
	c.emit(Notice{Level: l, Code: code, Text: cleanLine(text, maxLine)})
}

// A peer may cause so many lines of the log in that time; more are left out.
const (
	lineBurst = 20
	lineTime  = 10 * time.Second
)

// noticeOf is notice for what a peer can make this device say as often as it likes.
func (c *core) noticeOf(p *peer, l Level, code, text string) {
	if c.now.Sub(p.linesAt) > lineTime {
		p.lines, p.linesAt = 0, c.now
	}
	if p.lines++; p.lines <= lineBurst {
		c.notice(l, code, text)
	}
}

// phase changes where this device stands.
func (c *core) phase(p Phase) {
	if c.st.Phase == p {
		return
	}
	if now := loadPhase(p); now != loadPhase(c.st.Phase) {
		c.do(busy{now})
	}
	c.st.Phase = p
	c.dirty = true
	switch p {
	case Online:
		c.st.OnlineAt = c.now
	case Loading:
		c.st.LoadingAt = c.now
		c.st.OnlineAt = time.Time{}
	default:
		c.st.OnlineAt = time.Time{}
	}
}

// loadPhase: layers are loading somewhere in the room.
func loadPhase(p Phase) bool { return p == Loading || p == Loaded }

func (c *core) do(e effect) { c.effects = append(c.effects, e) }

// send queues a control message. It takes over the map. Errors in it lose the folders of this computer.
func (c *core) send(to PeerID, t string, msg map[string]any) {
	if msg == nil {
		msg = make(map[string]any, 1)
	}
	for _, key := range []string{"message", "why", "err"} {
		if text, is := msg[key].(string); is {
			msg[key] = withoutFolders(text)
		}
	}
	msg["t"] = t
	c.do(send{to, msg})
}

func (c *core) timer(name string, d time.Duration) { c.do(timer{name, d}) }

// run queues an engine job and returns its id.
func (c *core) run(w work) uint64 {
	c.jobs++
	c.do(start{c.jobs, w})
	return c.jobs
}

// close ends the room for this device: the role's last words, the last event, the end of the loop.
func (c *core) close(reason string, p *Problem) {
	if c.closed {
		return
	}
	if reason == "" {
		reason = "left"
	}
	c.phase(Leaving)
	c.role.closing(reason)
	c.phase(Closed)
	c.st.Problem = p
	c.emit(RoomClosed{Reason: cleanLine(reason, maxReason), Problem: p})
	c.do(end{})
	c.closed = true
}

// peers returns the members that are in, this device left out, sorted by id.
func (c *core) peers() []*peer {
	var ps []*peer
	for _, p := range c.members {
		if p.greeted {
			ps = append(ps, p)
		}
	}
	slices.SortFunc(ps, func(a, b *peer) int { return strings.Compare(string(a.id), string(b.id)) })
	return ps
}
