//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestMakeDemoAsksWhatWasTyped runs `make demo` in a copy of the Makefile with stand-ins for what it builds and calls:
// the question arrives as it was typed, and nothing but the program writes to standard output.
func TestMakeDemoAsksWhatWasTyped(t *testing.T) {
	dir := t.TempDir()
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, ".ci"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"Makefile": string(makefile), ".ci/setup": "#!/bin/sh\n", "go": "#!/bin/sh\n",
		"pooled": "#!/bin/sh\nprintf '%s|' \"$#\" \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const hard = `It's "Köln" for $5: $HOME $(shell echo no) ` + "`date`" + ` \ % # & ; x`
	for _, c := range []struct {
		name      string
		env, args []string
		want      string
	}{
		{"no question", nil, nil, "1|demo|"},
		{"an empty one", nil, []string{"Q="}, "1|demo|"},
		{"quotes, dollars and umlauts", nil, []string{"Q=" + hard}, "2|demo|--question=" + hard + "|"},
		{"from the environment", []string{"Q=" + hard}, nil, "2|demo|--question=" + hard + "|"},
		{"like an option", nil, []string{"Q=--help"}, "2|demo|--question=--help|"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory", "demo", "GO=./go"}, c.args...)...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), append([]string{"Q=", "MAKEFLAGS=", "MAKELEVEL="}, c.env...)...)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if got := string(out); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
