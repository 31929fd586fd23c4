package gpu

/*
#include "shim.h"
*/
import "C"

import (
	"strings"
	"sync"
)

// logLines is how many of the library's last lines an error quotes.
const logLines = 8

// library collects what wgpu says; one per process, as wgpu's own log is.
var library = &logSink{}

// logSink keeps the last lines for error texts and passes lines on to the program's log.
type logSink struct {
	mu      sync.Mutex
	last    []string
	out     func(level, text string)
	verbose bool
}

// aboutWindows: we draw nothing, so that warnings about missing window support say nothing.
func aboutWindows(text string) bool {
	return strings.HasPrefix(text, "Unable to find extension") &&
		(strings.Contains(text, "surface") || strings.Contains(text, "swapchain"))
}

// install routes the library's log to the sink. Nothing reaches file descriptors 1 or 2 from then on (T17).
func (s *logSink) install(out func(level, text string), verbose bool) {
	s.mu.Lock()
	s.out, s.last, s.verbose = out, s.last[:0], verbose
	s.mu.Unlock()
	level := 2 // warnings
	if verbose {
		level = 3
	}
	C.pl_log_install(C.int(level))
}

// tail returns the last lines, oldest first, as one text; "" when nothing was said.
func (s *logSink) tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.last, "; ")
}

func (s *logSink) add(level, text string) {
	s.mu.Lock()
	if aboutWindows(text) && !s.verbose {
		s.mu.Unlock()
		return
	}
	if len(s.last) == logLines {
		s.last = append(s.last[:0], s.last[1:]...)
	}
	s.last = append(s.last, text)
	out := s.out
	s.mu.Unlock()
	if out != nil {
		out(level, text)
	}
}

// levels are WGPULogLevel in words.
var levels = [...]string{"off", "error", "warn", "info", "debug", "trace"}

//export pooledGPULog
func pooledGPULog(level C.uint32_t, message *C.char) {
	name := "info"
	if int(level) < len(levels) {
		name = levels[level]
	}
	library.add(name, C.GoString(message))
}
