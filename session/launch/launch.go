// Package launch puts a role together: it opens the GPU and the models, registers with the signaling server, makes the
// room and runs all of it. Screens and scripts get the same thing, a session.View.
//
//	Open(ctx, spec)   everything that can fail before the room: usage first, then the GPU, then signaling
//	Room.Begin(ctx)   the network and the room's loop, until the room closes
//	Room.Wait()       the end, and why
//
// What Open returns as an error is a *session.Problem, ready for a person.
package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"pooled/catalog"
	"pooled/compute"
	"pooled/netmesh"
	"pooled/netmesh/invite"
	"pooled/netmesh/signal"
	"pooled/session"
)

// DefaultSignal is the signaling server when --signal is not given. Rooms have no gate yet, so they are found on this
// computer only.
const DefaultSignal = "127.0.0.1:9000"

// Spec is what the command line says about a role. Role and the options that the flags fill come in Options; Open adds
// code, name, model and pledge.
type Spec struct {
	session.Options
	Room   string // joiner and asker: a code or an invite link
	Model  string // host: part of a name; empty for the default
	Signal string // comma list of servers
	Models string // folder; empty for the default
	GB     GB
	Log    func(line string) // what drivers and libraries say; from any goroutine; nil drops it
}

// Room is a room in progress with all it stands on.
type Room struct {
	*session.Room
	Code   invite.Code
	Notes  []string // lines to show first: what was chosen and why
	engine *engine
	mesh   *netmesh.Mesh
	done   chan struct{}
	err    error
}

// codeTries is how often a fresh code that turns out to be taken is drawn again.
const codeTries = 5

// Open prepares a room: the GPU (unless the role only asks), then the signaling server. ctx bounds all of it.
func Open(ctx context.Context, s Spec) (*Room, error) {
	servers, local, err := servers(&s)
	if err != nil {
		return nil, err
	}
	fresh := s.Role == session.Host && s.Code == ""
	if err := s.fill(); err != nil {
		return nil, err
	}
	r := &Room{done: make(chan struct{})}
	if s.Role != session.Asker {
		if err := r.openEngine(ctx, &s); err != nil {
			return nil, err
		}
	}
	err = s.register(fresh, func() error { return r.connect(ctx, s, servers, local) })
	if err != nil {
		if r.engine != nil {
			err = errors.Join(err, r.engine.Close())
		}
		return nil, meshProblem(err, s, servers)
	}
	return r, nil
}

// register connects; while a fresh code turns out to be taken, it draws another one.
func (s *Spec) register(fresh bool, connect func() error) error {
	for try := 1; ; try++ {
		err := connect()
		if !errors.Is(err, netmesh.ErrIDTaken) || !fresh || try == codeTries {
			return err
		}
		s.Code = string(invite.NewCode())
	}
}

// fill settles code and name.
func (s *Spec) fill() error {
	switch {
	case s.Role != session.Host:
		inv, err := invite.Parse(s.Room)
		if err != nil {
			return usageProblem("room", err, "give the room's code, like 4TK-G9P, or its invite link in quotes")
		}
		s.Code = string(inv.Code)
	case s.Code == "":
		s.Code = string(invite.NewCode())
	default:
		code, err := invite.ParseCode(s.Code)
		if err != nil {
			return usageProblem("code", err, "codes have 6 characters of "+invite.Alphabet)
		}
		s.Code = string(code)
	}
	name, err := deviceName(s.Role, s.Name)
	if err != nil {
		return usageProblem("name", err, "give --name some letters or digits")
	}
	s.Name = name
	return nil
}

// deviceName cleans a given name, or makes the default one (spec cli.md 2.1): from the hostname for devices, random for
// clients that only ask.
func deviceName(role session.Role, given string) (string, error) {
	if given != "" {
		if name := invite.CleanName(given, ""); name != "" {
			return name, nil
		}
		return "", fmt.Errorf("--name %q has nothing that can be shown", given)
	}
	if role == session.Asker {
		return "pooled chat " + strings.ToLower(rand.Text()[:4]), nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = "" // a device without a name gets the same letters every time too
	}
	return invite.DeviceName(host, runtime.GOOS), nil
}

// servers reads the list and says whether all of it is on this computer. A host must stay there while rooms have no gate.
func servers(s *Spec) ([]signal.Server, bool, error) {
	list, err := signal.ParseList(s.Signal, signal.BareFlag)
	if err != nil {
		return nil, false, usageProblem("signal", err, "give host:port, or a ws:// or wss:// address, or several with commas")
	}
	local := true
	for _, server := range list {
		local = local && loopback(server.Host)
	}
	if s.Role == session.Host && !local {
		return nil, false, &session.Problem{
			Code: "not-loopback", What: "a room can't be opened on that signaling server",
			Why:  "this version has no gate that keeps strangers out, so rooms stay on this computer",
			Do:   "leave --signal out, or run 'pooled signal' here and name it",
			Exit: session.ExitUsage,
		}
	}
	return list, local, nil
}

// loopback reports whether a server's host is this computer.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}

// openEngine opens the GPU and settles model and pledge.
func (r *Room) openEngine(ctx context.Context, s *Spec) error {
	store, err := catalog.OpenStore(s.Models)
	if err != nil {
		return session.AsProblem(err)
	}
	if s.Role == session.Host {
		if s.ModelKey, err = r.chooseModel(store, s.Model); err != nil {
			return err
		}
	}
	dev, err := compute.OpenGPU(ctx, compute.GPUOptions{Log: s.Log})
	if err != nil {
		return gpuProblem(err)
	}
	pledge := PledgeFor(dev.Info(), s.GB)
	s.PledgeBytes, s.PledgeWhy = pledge.Bytes, pledge.Why
	r.engine = newEngine(dev, store)
	return nil
}

// chooseModel finds the model a host was asked for. Without one it is the seed's default when that is here, else the
// embedded one.
func (r *Room) chooseModel(store *catalog.Store, typed string) (string, error) {
	if typed == "" {
		const preferred, embedded = "qwen3-1.7b", "mini"
		entry, err := catalog.Match(catalog.Builtin(), preferred)
		if err == nil && store.Status(entry).Present {
			r.Notes = append(r.Notes, "no model named: "+entry.Label)
			return preferred, nil
		}
		r.Notes = append(r.Notes, fmt.Sprintf("no model named and %s is not on this computer: the built-in mini", preferred))
		return embedded, nil
	}
	entry, err := findModel(store, typed)
	return entry.Key, err
}

// findModel is the model that typed means, which must be on this computer.
func findModel(store *catalog.Store, typed string) (catalog.Entry, error) {
	entry, err := catalog.Match(catalog.Builtin(), typed)
	if errors.Is(err, catalog.ErrAmbiguous) {
		return entry, usageProblem("model", err, "name one of: "+strings.Join(modelKeys(), ", "))
	}
	if err != nil {
		return entry, usageProblem("model", err, "'pooled list' shows them and where their files go")
	}
	if status := store.Status(entry); !status.Present {
		return entry, &session.Problem{
			Code: "model-absent", What: entry.Label + " is not on this computer",
			Why:  fmt.Sprintf("%s of %s are in %s", catalog.FormatBytes(status.Bytes), catalog.FormatBytes(status.Total), store.Dir),
			Do:   "put its file there ('pooled list' says where), or take another model",
			Exit: session.ExitFailed,
		}
	}
	return entry, nil
}

func modelKeys() []string {
	var keys []string
	for _, e := range catalog.Builtin() {
		keys = append(keys, e.Key)
	}
	return keys
}

// connect registers with the signaling server and makes the room.
func (r *Room) connect(ctx context.Context, s Spec, servers []signal.Server, local bool) error {
	var eng session.Engine
	if r.engine != nil {
		eng = r.engine
	}
	room, err := session.New(s.Options, eng)
	if err != nil {
		return err
	}
	cfg := netmesh.Config{
		Servers: servers, Loopback: local, AcceptLinks: s.Role != session.Asker, Deliver: room.Deliver,
		Log: s.Log,
	}
	if s.Role == session.Host {
		cfg.ID = netmesh.PeerID(invite.Code(s.Code).HostID())
	}
	mesh, err := netmesh.Open(ctx, cfg)
	if err != nil {
		return err
	}
	r.Room, r.mesh, r.Code = room, mesh, invite.Code(s.Code)
	return nil
}

// Begin runs the network and the room until the room closes or ctx ends. It is called once; Wait waits for it.
func (r *Room) Begin(ctx context.Context) {
	go func() {
		defer close(r.done)
		r.err = r.run(ctx)
	}()
}

func (r *Room) run(ctx context.Context) error {
	meshCtx, stop := context.WithCancel(context.WithoutCancel(ctx)) // the mesh outlives ctx: goodbyes go out on it
	defer stop()
	var g errgroup.Group
	g.Go(func() error {
		if err := r.mesh.Run(meshCtx); err != nil && meshCtx.Err() == nil {
			return err
		}
		return nil
	})
	err := r.Room.Run(ctx, r.mesh)
	stop()
	err = errors.Join(err, g.Wait())
	if r.engine != nil {
		err = errors.Join(err, r.engine.Close())
	}
	return err
}

// Wait returns once the room is closed and everything under it is released: nil after a wanted end.
func (r *Room) Wait() error {
	<-r.done
	return r.err
}

// Done is closed when Wait would return.
func (r *Room) Done() <-chan struct{} { return r.done }

// Leave closes the room and waits until it is closed.
func (r *Room) Leave() error {
	if err := r.Room.Close(); err != nil && !errors.Is(err, session.ErrClosed) {
		return errors.Join(err, r.Wait())
	}
	return r.Wait()
}

// Invite is the command with which another device on this computer gets in: "pooled join 4TK-G9P", with the signaling
// server when it is not the usual one.
func (r *Room) Invite(command string) string {
	s := "pooled " + command + " " + r.Code.Shown()
	if at := r.mesh.Server(); at.Label() != DefaultSignal {
		s += " --signal " + at.Label()
	}
	return s
}
