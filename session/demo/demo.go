// Package demo plays a whole room on one computer: it starts the other processes that a room needs, a signaling server
// and a joining device, beside the host that the caller runs in its own process.
//
// Every child is this same program. A child ends when Close is called, when the context it was started under ends, or
// when this process dies (its standard input closes). Nothing of a child reaches the terminal: its last lines are kept
// for the error that tells why it ended.
package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// ErrChild: a process of the demo ended by itself.
var ErrChild = errors.New("a process of the demo ended")

// keepLines is how many of a child's last lines are kept.
const keepLines = 6

// closeTime is how long a child may take to end after it was asked to.
const closeTime = 3 * time.Second

// Child is a running process of the demo.
type Child struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	first chan string   // its first line on standard output
	done  chan struct{} // closed when it was waited for
	err   error         // of Wait, valid once done is closed

	mu    sync.Mutex
	lines []string
}

// Start runs exe with args under ctx; name is for people. The caller calls Close.
func Start(ctx context.Context, name, exe string, args ...string) (*Child, error) {
	c := &Child{name: name, first: make(chan string, 1), done: make(chan struct{})}
	c.cmd = exec.CommandContext(ctx, exe, args...)
	c.cmd.Cancel = func() error { return terminate(c.cmd.Process) }
	c.cmd.WaitDelay = closeTime
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("demo: %s: %w", name, err)
	}
	c.stdin = stdin
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("demo: %s: %w", name, err)
	}
	stderr, err := c.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("demo: %s: %w", name, err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("demo: %s: %w", name, err)
	}
	go c.wait(stdout, stderr)
	return c, nil
}

// wait reads both outputs to their ends, then the exit status. Close waits for it.
func (c *Child) wait(stdout, stderr io.Reader) {
	defer close(c.done)
	var readers sync.WaitGroup
	readers.Go(func() { c.read(stdout, true) })
	readers.Go(func() { c.read(stderr, false) })
	readers.Wait()
	c.err = c.cmd.Wait()
}

// read keeps the last lines of one output and hands on the first of standard output.
func (c *Child) read(r io.Reader, out bool) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if out {
			select {
			case c.first <- line:
			default:
			}
		}
		c.mu.Lock()
		if len(c.lines) == keepLines {
			c.lines = append(c.lines[:0], c.lines[1:]...)
		}
		c.lines = append(c.lines, line)
		c.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, r) // a line too long for the scanner must not block the child
}

// FirstLine waits for the child's first line on standard output.
func (c *Child) FirstLine(ctx context.Context) (string, error) {
	select {
	case line := <-c.first:
		return line, nil
	case <-c.done:
		select {
		case line := <-c.first:
			return line, nil
		default:
			return "", c.Err()
		}
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Done is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err says why the child ended, with its last lines. It is nil while the child runs.
func (c *Child) Err() error {
	select {
	case <-c.done:
	default:
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	why := "it ended by itself"
	if c.err != nil {
		why = c.err.Error()
	}
	if len(c.lines) > 0 {
		why += "; its last lines:\n  " + strings.Join(c.lines, "\n  ")
	}
	return fmt.Errorf("%w: %s: %s", ErrChild, c.name, why)
}

// Close asks the child to end and waits, killing it when it takes too long. It may be called more than once.
func (c *Child) Close() {
	_ = c.stdin.Close()
	select {
	case <-c.done:
		return
	default:
	}
	_ = terminate(c.cmd.Process)
	late := time.NewTimer(closeTime)
	defer late.Stop()
	select {
	case <-c.done:
	case <-late.C:
		_ = c.cmd.Process.Kill()
		<-c.done
	}
}
