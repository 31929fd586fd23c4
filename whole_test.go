package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pooled/session/launch"
)

// censusEnv makes the test binary be the program; its value is the address where the process reports. The children of
// a process inherit it, so what demo starts is this binary too.
const censusEnv = "POOLED_TEST_CENSUS"

// people are all program processes that the tests started, and those that these started.
var people *census

func TestMain(m *testing.M) {
	if addr := os.Getenv(censusEnv); addr != "" {
		os.Exit(beProgram(addr))
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	people = newCensus(l)
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue { // the longest tests mostly wait
		_ = p.Value.Set(strconv.Itoa(runtime.NumCPU() + 1))
	}
	code := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, r := range people.all() {
		if !r.isGone(ctx) {
			fmt.Fprintf(os.Stderr, "process %d still runs: pooled %s\n", r.PID, strings.Join(r.Args, " "))
			code = 1
		}
	}
	people.close()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// beProgram reports to the census and is the program. The connection stays open as long as the process lives, and the
// process ends when the tests do.
func beProgram(addr string) int {
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		err = json.NewEncoder(conn).Encode(resident{PID: os.Getpid(), Parent: os.Getppid(), Args: os.Args[1:]})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report to the tests:", err)
		return 99
	}
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		os.Exit(98)
	}()
	return run(os.Args[1:], launch.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}

// resident is a process of the program.
type resident struct {
	PID, Parent int
	Args        []string
	gone        chan struct{} // closed when the process is
}

// isGone waits for the end of the process until ctx ends.
func (r *resident) isGone(ctx context.Context) bool {
	select {
	case <-r.gone:
		return true
	case <-ctx.Done():
		return false
	}
}

// census knows every process of the program that was ever started.
type census struct {
	l       net.Listener
	readers sync.WaitGroup

	mu        sync.Mutex
	residents []*resident
	changed   chan struct{}
}

func newCensus(l net.Listener) *census {
	c := &census{l: l, changed: make(chan struct{})}
	c.readers.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.readers.Go(func() { c.follow(conn) })
		}
	})
	return c
}

// follow notes a process and waits for its end.
func (c *census) follow(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r := &resident{gone: make(chan struct{})}
	defer close(r.gone)
	lines := bufio.NewReader(conn)
	line, err := lines.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, r) != nil {
		return
	}
	c.mu.Lock()
	c.residents = append(c.residents, r)
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	_, _ = io.Copy(io.Discard, lines)
}

func (c *census) all() []*resident {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.residents)
}

// child waits for a child of a process with the given command.
func (c *census) child(ctx context.Context, parent int, command string) *resident {
	for {
		c.mu.Lock()
		changed := c.changed
		at := slices.IndexFunc(c.residents, func(r *resident) bool { return r.Parent == parent && r.Args[0] == command })
		var found *resident
		if at >= 0 {
			found = c.residents[at]
		}
		c.mu.Unlock()
		if found != nil {
			return found
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *census) close() {
	_ = c.l.Close()
	c.readers.Wait()
}
