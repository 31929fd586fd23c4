// Package capture keeps native output off the screen: while a capture runs, what anything in this process writes to
// its standard output and error (a GPU driver, a native library, a stray print) goes to a function, line by line.
//
// The screen itself is not affected: it writes to the terminal device it opened. A crash of the runtime is still
// written to the real standard error. There is at most one capture at a time; the process's standard streams are what
// they were before once Stop returns.
//
// On Unix file descriptors 1 and 2 themselves are redirected. On Windows the standard handles are replaced, which
// covers Go and everything that asks the system for them; a C runtime that opened its streams before keeps them.
package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// ErrRunning: there is a capture already.
var ErrRunning = errors.New("capture: already running")

// MaxLine is the longest line handed on, in bytes; longer ones are split.
const MaxLine = 4096

// drainTime is how long Stop waits for what was written last; a child process may hold the pipe open for longer.
const drainTime = 200 * time.Millisecond

var running sync.Mutex

// Capture is a running redirection.
type Capture struct {
	saved *streams
	read  *os.File
	done  chan struct{}
	once  sync.Once
	err   error
}

// Start redirects the standard streams. line gets every line without its line break, from one goroutine; it must not
// block and must not write to the standard streams.
func Start(line func(string)) (*Capture, error) {
	if !running.TryLock() {
		return nil, ErrRunning
	}
	read, write, err := os.Pipe()
	if err != nil {
		running.Unlock()
		return nil, fmt.Errorf("capture: %w", err)
	}
	saved, err := redirect(write)
	if err != nil {
		_ = read.Close()
		_ = write.Close()
		running.Unlock()
		return nil, fmt.Errorf("capture: %w", err)
	}
	_ = debug.SetCrashOutput(saved.err, debug.CrashOptions{})
	c := &Capture{saved: saved, read: read, done: make(chan struct{})}
	go c.copyLines(line)
	return c, nil
}

// copyLines reads until the pipe ends. Stop waits for it.
func (c *Capture) copyLines(line func(string)) {
	defer close(c.done)
	r := bufio.NewReaderSize(c.read, MaxLine)
	for {
		s, _, err := r.ReadLine()
		if len(s) > 0 {
			line(string(s))
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
				_, _ = io.Copy(io.Discard, c.read)
			}
			return
		}
	}
}

// Stderr is the process's real standard error, to be used only while the capture runs.
func (c *Capture) Stderr() *os.File { return c.saved.err }

// Stop puts the standard streams back and waits until what was written before has been handed on. It may be called
// more than once.
func (c *Capture) Stop() error {
	c.once.Do(func() {
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
		c.err = c.saved.restore()
		_ = c.read.SetReadDeadline(time.Now().Add(drainTime))
		<-c.done
		_ = c.read.Close()
		running.Unlock()
	})
	if c.err != nil {
		return fmt.Errorf("capture: %w", c.err)
	}
	return nil
}
