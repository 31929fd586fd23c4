package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pooled/compute/bench"
)

// The whole command on the built-in model: figures as JSON and as text.
func TestBench(t *testing.T) {
	if os.Getenv("POOLED_NO_GPU") == "1" {
		t.Skip("SKIPPED, NOT TESTED: POOLED_NO_GPU=1, and the measurement needs a GPU adapter")
	}
	args := []string{"bench", "mini", "--prompt", "3,20", "--gen", "4", "--reps", "2", "--warm", "0"}
	exit, stdout, stderr := inProcess(t, "", append(args, "--json")...)
	if exit != 0 || stderr != "" || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("exit %d, stdout %q, stderr %q", exit, stdout, stderr)
	}
	var r bench.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if r.Adapter == "" || r.Backend == "" || r.Model.Name != "Pooled Mini" || r.Model.Bytes < 5<<20 || r.Load.Bytes != r.Model.Bytes {
		t.Errorf("%+v", r)
	}
	if len(r.Prefill) != 2 || r.Prefill[1].Tokens != 20 || r.Prefill[1].TokPerSec.Median <= 0 {
		t.Errorf("prompts: %+v", r.Prefill)
	}
	if len(r.Decode) != 1 || r.Decode[0].Tokens != 4 || r.Decode[0].Each.Submits != 1 || r.Decode[0].Proposals == nil {
		t.Errorf("decoding: %+v", r.Decode)
	}
	exit, stdout, stderr = inProcess(t, "", append(args, "--spec", "off")...)
	for _, want := range []string{r.Adapter, "Pooled Mini", "load ", "memory ", "prompt 3 ", "prompt 20 ", "decode @", "launches", "checked"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in %q", want, stdout)
		}
	}
	if exit != 0 || stderr != "" || strings.Contains(stdout, "proposals") {
		t.Errorf("exit %d, stdout %q, stderr %q", exit, stdout, stderr)
	}
}

// A shape that was written is a file that can be measured.
func TestBenchWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if exit, stdout, stderr := inProcess(t, "", "bench", "--shape", "tiny-moe", "--layers", "1", "--write", path); exit != 0 || !strings.Contains(stdout, path) {
		t.Fatalf("exit %d, stdout %q, stderr %q", exit, stdout, stderr)
	}
	exit, stdout, stderr := inProcess(t, "", "bench", path, "--backend", "ref", "--prompt", "2", "--gen", "2", "--reps", "1")
	if exit != 0 || !strings.Contains(stdout, "shape of tiny-moe, 1 layer") {
		t.Errorf("exit %d, stdout %q, stderr %q", exit, stdout, stderr)
	}
	if exit, _, stderr := inProcess(t, "", "bench", "--shape", "tiny-moe", "--write", path); exit != 1 || !strings.Contains(stderr, "exists") {
		t.Errorf("a file that is there: exit %d, stderr %q", exit, stderr)
	}
}
