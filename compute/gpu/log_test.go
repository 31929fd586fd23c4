package gpu

import (
	"fmt"
	"testing"
)

func TestLogSink(t *testing.T) {
	var passed []string
	s := &logSink{out: func(level, text string) { passed = append(passed, level+" "+text) }}
	s.add("warn", "Unable to find extension: VK_KHR_surface")
	for i := range logLines + 2 {
		s.add("error", fmt.Sprint("line ", i))
	}
	if got, want := s.tail(), "line 2; line 3; line 4; line 5; line 6; line 7; line 8; line 9"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(passed) != logLines+2 || passed[0] != "error line 0" {
		t.Errorf("passed on: %q", passed)
	}
	s.verbose = true
	s.add("warn", "Unable to find extension: VK_KHR_surface")
	if got, want := passed[len(passed)-1], "warn Unable to find extension: VK_KHR_surface"; got != want {
		t.Errorf("verbose: got %q, want %q", got, want)
	}
}
