// Command pooled pools the GPUs of a few computers and runs, together, a language model that none of them could run
// alone. This file is the command line: the grammar, the wiring of the packages below it, and the exit codes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"pooled/catalog"
	"pooled/screens"
	"pooled/screens/capture"
	"pooled/session"
	"pooled/session/demo"
	"pooled/session/headless"
	"pooled/session/launch"
	"pooled/session/usage"
)

// Set by the linker.
var version, commit, date = "dev", "", ""

// grammar is the whole command line. A command or flag that does nothing is not in it.
type grammar struct {
	Host    hostCmd              `cmd:"" help:"Open a room on this computer and lend it a GPU."`
	Join    joinCmd              `cmd:"" help:"Lend this computer's GPU to a room."`
	Chat    chatCmd              `cmd:"" help:"Talk to a room's model."`
	List    launch.ListCommand   `cmd:"" aliases:"ls" help:"The models, and which are on this computer."`
	Signal  launch.SignalCommand `cmd:"" help:"Run the server that introduces a room's devices to each other."`
	Bench   benchCmd             `cmd:"" help:"Measure how fast this computer runs a model."`
	Demo    demoCmd              `cmd:"" help:"A room of two devices on this computer, with the built-in model."`
	Version versionCmd           `cmd:"" help:"Print the version."`
	Debug   launch.DebugCommand  `cmd:"" hidden:"" help:"Tools for comparing engines."`
}

type joinCmd struct {
	launch.JoinFlags
	ExitOnEOF bool `hidden:"" help:"Leave when standard input ends."`
}

type demoCmd struct {
	Question string `short:"q" help:"Ask this, print the answer and end." placeholder:"TEXT"`
}
type (
	hostCmd    struct{ launch.HostFlags }
	chatCmd    struct{ launch.ChatFlags }
	benchCmd   struct{ launch.BenchCommand }
	versionCmd struct{}
)

// program is what the commands share.
type program struct{ launch.Streams }

func main() { os.Exit(run(os.Args[1:], launch.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})) }

// run is the whole program without the process around it.
func run(args []string, streams launch.Streams) int {
	var g grammar
	ctx, stop := launch.UntilSignal(func() {
		screens.Restore()
		os.Exit(session.ExitInterrupted)
	})
	defer stop()
	k, err := kong.New(&g, kong.Name("pooled"), kong.NoDefaultHelp(), kong.Writers(streams.Out, streams.Err),
		kong.Vars{"signal": launch.DefaultSignal}, kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}),
		kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		panic(err) // the grammar above is wrong
	}
	a := usage.Door("pooled", commandLines(k.Model.Node), args)
	_, _ = io.WriteString(streams.Err, a.Stderr)
	if a.Stdout != "" {
		_, err = io.WriteString(streams.Out, a.Stdout)
	}
	if a.Help != "" {
		err = printHelp(k, a.Help)
	}
	if err != nil {
		_, _ = fmt.Fprintf(streams.Err, "pooled: %v\n", err)
		return session.ExitFailed
	}
	if a.Done() {
		return a.Exit
	}
	parsed, err := k.Parse(a.Args)
	if err != nil {
		said := usage.Mistake("pooled", a.Args[0], err)
		_, _ = fmt.Fprintf(streams.Err, "%s\n%s\n", said[0], said[1])
		return session.ExitUsage
	}
	if err := parsed.Run(&program{streams}, streams); err != nil {
		if !errors.Is(err, context.Canceled) {
			headless.Problem(streams.Err, "pooled "+a.Args[0], session.AsProblem(err))
		}
		return launch.ExitOf(ctx, err)
	}
	return session.ExitOK
}

func printHelp(k *kong.Kong, command string) error {
	ctx, err := kong.Trace(k, []string{command})
	if err != nil {
		return err
	}
	return ctx.PrintUsage(false)
}

// commandLines describes the grammar's commands.
func commandLines(root *kong.Node) []usage.Line {
	var lines []usage.Line
	for _, node := range root.Children {
		l := usage.Line{Prog: "pooled", Command: node.Name, Names: node.Aliases, Hidden: node.Hidden,
			Group: len(node.Children) > 0, Argument: "argument"}
		if node.Name == "list" {
			l.Argument = "model" // what people try there
		}
		for _, p := range node.Positional {
			if l.Max == 0 {
				l.Argument = p.Name
			}
			if l.Max++; p.Required {
				l.Min++
			}
			if p.IsSlice() {
				l.Max = -1
			}
		}
		l.Need = "a " + l.Argument + " is needed"
		if l.Argument == "room" {
			l.Need += ": its code, like 4TK-G9P, or its invite link in quotes"
		}
		for _, f := range node.Flags {
			l.Options = append(l.Options, usage.Option{Name: f.Name, Aliases: f.Aliases, Short: f.Short, Bool: f.IsBool()})
		}
		lines = append(lines, l)
	}
	return lines
}

// interactive reports whether there is a terminal for a screen.
func (p *program) interactive() bool {
	return term.IsTerminal(int(p.In.Fd())) && term.IsTerminal(int(p.Err.Fd())) && os.Getenv("TERM") != "dumb"
}

// open prepares a room; what drivers print meanwhile is kept for the error, or printed with --verbose.
func (p *program) open(ctx context.Context, spec launch.Spec, verbose bool) (*launch.Room, error) {
	if verbose {
		spec.Log = func(line string) { _, _ = fmt.Fprintln(p.Err, line) }
		defer launch.SayIfSlow(p.Err, spec.Signal)()
		return launch.Open(ctx, spec)
	}
	return quietly(func(stderr *os.File) (*launch.Room, error) {
		defer launch.SayIfSlow(stderr, spec.Signal)()
		return launch.Open(ctx, spec)
	})
}

// quietly keeps what drivers print during do for its error. do may use the real standard error, which it is given.
func quietly[T any](do func(stderr *os.File) (T, error)) (made T, err error) {
	var said []string
	c, err := capture.Start(func(line string) { said = append(said, line) })
	if err != nil {
		return made, err
	}
	made, err = do(c.Stderr())
	stopped := c.Stop() // after it, said is whole
	return made, errors.Join(launch.AppendLines(err, said), stopped)
}

// show runs a room on a screen, or prints what happens in it.
func (p *program) show(ctx context.Context, room *launch.Room, l launch.LogFlags, o screens.RunOptions) error {
	if !l.JSONLog && !l.Quiet && p.interactive() {
		room.Begin(ctx)
		o.View = room
		o.Closed = func(reason string) { _, _ = fmt.Fprintf(p.Err, "room %s: %s\n", room.Code.Shown(), reason) }
		exit, err := screens.Run(ctx, o)
		if exit == session.ExitInterrupted {
			os.Exit(exit)
		}
		left := room.Leave() // a terminal that broke has not closed it
		return errors.Join(launch.UnlessHungUp(ctx, err), left)
	}
	if !l.JSONLog && !l.Quiet {
		headless.Header(p.Err, room.Snapshot(), o.Invite)
	}
	watcher := headless.Watch(room, headless.Options{Log: p.Err, JSON: l.JSONLog, Quiet: l.Quiet})
	room.Begin(ctx)
	problem := watcher.Run(ctx)
	if err := room.Wait(); err != nil || problem == nil {
		return err
	}
	return problem
}

// Run opens a room.
func (c *hostCmd) Run(ctx context.Context, p *program) error {
	if c.Model == "list" || c.ModelOpt == "list" {
		return catalog.Keys(p.Out)
	}
	spec, err := c.Spec(p.interactive() && !c.JSONLog && !c.Quiet)
	if err != nil {
		return err
	}
	room, err := p.open(ctx, spec, c.Verbose)
	if err != nil {
		return err
	}
	return p.show(ctx, room, c.LogFlags, screens.RunOptions{Role: session.Host, Invite: room.Invite("join"), Chat: c.Chat})
}

// Run lends this computer's GPU to a room.
func (c *joinCmd) Run(ctx context.Context, p *program) error {
	spec, err := c.Spec()
	if err != nil {
		return err
	}
	ctx, stop := launch.UntilEOF(ctx, p.In, c.ExitOnEOF)
	defer stop()
	room, err := p.open(ctx, spec, c.Verbose)
	if err != nil {
		return err
	}
	return p.show(ctx, room, c.LogFlags, screens.RunOptions{Role: session.Worker})
}

// Run talks to a room.
func (c *chatCmd) Run(ctx context.Context, p *program) error {
	question, once, err := headless.Question(c.Prompt, p.In)
	if err != nil {
		return err
	}
	spec, err := c.Spec()
	if err != nil {
		return err
	}
	room, err := p.open(ctx, spec, false)
	if err != nil {
		return err
	}
	if !once && !p.interactive() {
		room.Begin(context.WithoutCancel(ctx))
		return errors.Join(headless.Converse(ctx, room, p.In, p.Out, p.Err), room.Leave())
	}
	if !once {
		o := screens.RunOptions{Role: session.Asker, Think: c.Think}
		if c.NoColor {
			o.Look = screens.LookFrom(os.Getenv, runtime.GOOS)
			o.Look.Color = false
		}
		return p.show(ctx, room, launch.LogFlags{}, o)
	}
	room.Begin(context.WithoutCancel(ctx))
	err = headless.Ask(ctx, room, question, time.Duration(c.Wait)*time.Second, p.Out)
	return errors.Join(err, room.Leave())
}

// Run measures and prints the report.
func (c *benchCmd) Run(ctx context.Context, p *program) error {
	report, err := quietly(func(stderr *os.File) (func(io.Writer) error, error) { return c.Measure(ctx, stderr) })
	if err == nil {
		err = report(p.Out)
	}
	return err
}

// Run prints the version.
func (versionCmd) Run(p *program) error {
	_, err := fmt.Fprintln(p.Out, strings.TrimSpace(strings.Join([]string{version, commit, date}, " ")))
	return err
}

// Run plays a room of two devices on this computer.
func (c *demoCmd) Run(ctx context.Context, p *program) error {
	d, err := demo.Open(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	room, err := p.open(ctx, d.Spec(), false)
	if err != nil {
		return err
	}
	if c.Question == "" && p.interactive() {
		d.JoinWhenOpen(ctx, room)
		err := p.show(ctx, room, launch.LogFlags{}, screens.RunOptions{Role: session.Host, Invite: room.Invite("join"), Chat: true})
		return errors.Join(err, d.Failed())
	}
	room.Begin(context.WithoutCancel(ctx))
	d.JoinWhenOpen(ctx, room)
	return errors.Join(d.Answer(ctx, room, c.Question, p.Out), room.Leave())
}
