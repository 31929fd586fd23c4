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

// errChild: a process of the demo ended by itself.
var errChild = errors.New("a process of the demo ended")

// errSilent: a process of the demo ended before it said anything.
var errSilent = errors.New("it ended before it was ready")

// keepLines is how many of a child's last lines are kept.
const keepLines = 6

// closeTime is how long a child may take to end after it was asked to.
const closeTime = 3 * time.Second

// child is a running process of the demo.
type child struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	first chan string   // its first line on standard output
	done  chan struct{} // closed when it was waited for
	err   error         // of Wait, valid once done is closed

	mu    sync.Mutex
	lines []string
}

// startChild runs exe with args under ctx; name is for people. The caller calls close.
func startChild(ctx context.Context, name, exe string, args ...string) (*child, error) {
	c := &child{name: name, first: make(chan string, 1), done: make(chan struct{})}
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

// wait reads both outputs to their ends, then the exit status. close waits for it.
func (c *child) wait(stdout, stderr io.Reader) {
	defer close(c.done)
	var readers sync.WaitGroup
	readers.Go(func() { c.read(stdout, true) })
	readers.Go(func() { c.read(stderr, false) })
	readers.Wait()
	c.err = c.cmd.Wait()
}

// read keeps the last lines of one output and hands on the first of standard output.
func (c *child) read(r io.Reader, out bool) {
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

// firstLine waits for the child's first line on standard output.
func (c *child) firstLine(ctx context.Context) (string, error) {
	select {
	case line := <-c.first:
		return line, nil
	case <-c.done:
		select {
		case line := <-c.first:
			return line, nil
		default:
			return "", errors.Join(c.failure(), errSilent)
		}
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// failure says why the child ended, with its last lines. It is nil while the child runs, and when it ended in order.
func (c *child) failure() error {
	select {
	case <-c.done:
	default:
		return nil
	}
	if c.err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	why := c.err.Error()
	if len(c.lines) > 0 {
		why += "; its last lines:\n  " + strings.Join(c.lines, "\n  ")
	}
	return fmt.Errorf("%w: %s: %s", errChild, c.name, why)
}

// close asks the child to end and waits, killing it when it takes too long. It may be called more than once.
func (c *child) close() {
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
