//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pooled/compute/golden"
)

// noHang is the longest that anything may take that can't work.
const noHang = 15 * time.Second

func TestCommandLine(t *testing.T) {
	t.Setenv("POOLED_MODELS", "")
	t.Setenv("HOME", t.TempDir())
	const roomNeeded = "a room is needed|4TK-G9P|quotes"
	for _, c := range []struct {
		name  string
		args  string // split at |
		exit  int
		wants string // all in the output, split at |
	}{
		{"nothing", "", 0, "pooled demo|pooled host mini"},
		{"help", "help", 0, "pooled demo|pooled host mini"},
		{"--help", "--help", 0, "pooled demo"},
		{"-h", "-h", 0, "pooled demo"},
		{"help of a command", "help|host", 0, "Usage: pooled host|--wait"},
		{"command --help", "join|--help", 0, "Usage: pooled join|--gb"},
		{"command -h", "chat|FEA-Q38|-h", 0, "Usage: pooled chat"},
		{"help of nonsense", "help|nonsense", 2, `unknown command "nonsense"|pooled --help`},
		{"version", "version", 0, version},
		{"--version", "--version", 0, version},
		{"-v", "-v", 0, version},
		{"C1 hsot", "hsot", 2, "did you mean pooled host?|pooled --help"},
		{"C1 jion", "jion", 2, "did you mean pooled join?"},
		{"C1 chta", "chta", 2, "did you mean pooled chat?"},
		{"C1 lst", "lst", 2, "did you mean pooled list?"},
		{"C2 frobnicate", "frobnicate", 2, `unknown command "frobnicate"` + "\n"},
		{"C2 xyzzy", "xyzzy", 2, `unknown command "xyzzy"` + "\n"},
		{"C3 models", "models", 2, "did you mean pooled list?"},
		{"C3 connect", "connect", 2, "did you mean pooled join?"},
		{"C3 talk", "talk", 2, "did you mean pooled chat?"},
		{"C4 hel", "hel", 2, "did you mean pooled help?"},
		{"hidden commands are not suggested", "debgu", 2, `unknown command "debgu"` + "\n"},
		{"a leading option", "--foo", 2, `unknown option "--foo"|pooled --help`},
		{"C5", "host|--gbb|4", 2, `pooled host: unknown option "--gbb": did you mean --gb?|pooled host --help`},
		{"C6 host", "host|--gb", 2, "pooled host: --gb needs a value|pooled host --help"},
		{"C6 signal", "signal|--port", 2, "--port needs a value|pooled signal --help"},
		{"chat without a room", "chat", 2, roomNeeded},
		{"join without a room", "join", 2, roomNeeded},
		{"C7 five characters", "join|FEAQ3", 2, `"FEAQ3"|6 characters|4TK-G9P`},
		{"neither code nor link", "chat|XYZ!|hello", 2, `"XYZ!"|4TK-G9P`},
		{"two rooms", "join|FEA-Q38|ABC-DEF", 2, "one room, not 2"},
		{"two models", "host|mini|qwen3-4b", 2, "one model, not 2"},
		{"list takes none", "list|x", 2, "takes no model"},
		{"C8 0", "host|--gb|0", 2, `--gb takes|"0"`},
		{"C8 -1", "host|--gb|-1", 2, "--gb"},
		{"C8 abc", "host|--gb|abc", 2, `--gb takes|"abc"`},
		{"C8 0.5", "join|FEA-Q38|--gb|0.5", 2, `--gb takes|"0.5"`},
		{"C16", "host|35b|--model|27b", 2, `"35b"|"27b"`},
		{"C17", "host|--model|list", 0, "mini|qwen3-0.6b|qwen3-1.7b|qwen3-4b|qwen3.8-27b|qwen3.6-35b-moe|qwen3.5-122b-moe"},
		{"C35", "chat|FEA-Q38", 2, "nothing to ask"},
		{"C40", "host|--code|ABCDEI", 2, `"ABCDEI"|characters`},
		{"C44", "host|--gb=-3", 2, `--gb takes|"-3"`},
		{"unknown model", "host|gpt", 2, `"gpt"|qwen3-0.6b|pooled list`},
		{"a name of several models", "host|qwen3-", 2, `"qwen3-"|qwen3-0.6b, qwen3-1.7b, qwen3-4b|mini`},
		{"a model that is not here", "host|qwen3-4b", 1, "Qwen3 4B|not on this computer|pooled list"},
		{"--wait of a host", "host|mini|--wait|65", 2, "--wait takes|65"},
		{"--ctx too small", "host|mini|--ctx|8", 2, "--ctx takes|8"},
		{"--max-tokens", "chat|FEA-Q38|--max-tokens|0|hello", 2, "--max-tokens takes|0"},
		{"--temperature", "chat|FEA-Q38|--temperature|2.5|hello", 2, "--temperature takes|2.5"},
		{"a port out of range", "signal|--port|65536", 2, "--port takes|65536"},
		{"an address of another computer", "signal|--host|192.0.2.1|--port|0", 1, "signaling server can't start|192.0.2.1"},
		{"two ways to log", "host|mini|--json-log|--quiet", 2, "--json-log|--quiet|pooled host --help"},
		{"a name of nothing", "host|mini|--name|\x1b\x07", 2, "--name"},
		{"signaling over the network", "host|mini|--signal|192.0.2.1:9000", 2, "no gate|pooled signal"},
		{"signaling by name", "host|mini|--signal|wss://signal.example", 2, "no gate|pooled signal"},
		{"signaling of no sort", "host|mini|--signal|ftp://127.0.0.1", 2, "signal|ftp://127.0.0.1|ws://"},
		{"list", "list", 0, "mini|qwen3.5-122b-moe|67.5 GB"},
		{"bench alone", "bench", 2, "a model is needed|--shape|qwen3-1.7b"},
		{"bench of two", "bench|mini|--shape|27b", 2, `"mini"|"27b"`},
		{"bench of an unknown shape", "bench|--shape|gpt", 2, `"gpt"|qwen3-0.6b|qwen3.5-122b-moe`},
		{"bench of some shape", "bench|--shape|qwen3-", 2, `"qwen3-" fits more than one`},
		{"bench with too many layers", "bench|--shape|0.6b|--layers|99", 2, "99 layers|1 to 28"},
		{"bench: layers of a file", "bench|mini|--layers|2", 2, "--layers|--shape"},
		{"bench: a prompt past the model", "bench|--shape|tiny-dense|--prompt|5000|--backend|ref", 2, "5033 positions|4096"},
		{"bench: past the context", "bench|mini|--prompt|300|--ctx|256|--backend|ref", 2, "256 positions|333"},
		{"bench: draft without a block", "bench|mini|--spec|draft|--backend|ref", 2, "no draft block"},
		{"bench: no such proposals", "bench|mini|--spec|magic", 2, `--spec|"magic"`},
		{"bench: a prompt of letters", "bench|mini|--prompt|x", 2, `--prompt|"x"`},
		{"bench: warm for ever", "bench|mini|--warm|NaN", 2, "--warm takes|NaN"},
		{"bench: no runs", "bench|mini|--reps|0", 2, "--reps"},
		{"bench of a model that is not here", "bench|4b", 1, "Qwen3 4B|not on this computer"},
		{"bench of no file", "bench|/nonexistent/m.gguf", 1, "/nonexistent/m.gguf"},
		{"debug alone", "debug", 2, "eval|tokenize"},
		{"debug eval of a file that is not there", "debug|eval|/nonexistent/m.gguf|--tokens|1", 2, "/nonexistent/m.gguf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var args []string
			if c.args != "" {
				args = strings.Split(c.args, "|")
			}
			exit, stdout, stderr := inProcess(t, "", args...)
			said, silent := stdout, stderr
			if c.exit != 0 {
				said, silent = stderr, stdout
			}
			if exit != c.exit || silent != "" {
				t.Errorf("exit %d, want %d; stdout %q, stderr %q", exit, c.exit, stdout, stderr)
			}
			for _, want := range strings.Split(c.wants, "|") {
				if !strings.Contains(said, want) {
					t.Errorf("%q is missing in %q", want, said)
				}
			}
			if n := strings.Count(said, "\n"); c.exit == 2 && n > 2 {
				t.Errorf("%d lines about a mistake: %q", n, said)
			}
		})
	}
}

// TestOverviewFits: at most 20 lines of 80 columns, 12 lines without a terminal.
func TestOverviewFits(t *testing.T) {
	_, out, _ := inProcess(t, "")
	if n := strings.Count(out, "\n"); n > 12 {
		t.Errorf("%d lines, at most 12", n)
	}
	for line := range strings.Lines(out) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// fails checks that a process ends with a code in time and says certain things on standard error only.
func (pr *process) fails(code int, says ...string) {
	pr.t.Helper()
	began := time.Now()
	pr.exits(code)
	if took := time.Since(began); took > noHang {
		pr.t.Errorf("pooled %s: it took %v", pr.name, took)
	}
	if out := pr.out.String(); out != "" {
		pr.t.Errorf("pooled %s: stdout %q", pr.name, out)
	}
	for _, s := range says {
		if !strings.Contains(pr.log.String(), s) {
			pr.t.Errorf("pooled %s: %q is missing in %q", pr.name, s, pr.log)
		}
	}
}

func TestNobodyHoldsTheCode(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 60*time.Second)
	p.opensSignal()
	join := p.member("join", "abc-def")
	chat := p.chat("ABC-DEF", "hello")
	logged := p.member("join", "ABCDEF", "--json-log")
	join.fails(4, "there is no room ABC-DEF", "check the code")
	chat.fails(4, "there is no room ABC-DEF", "check the code")
	logged.fails(4)
	if e := logged.sees("room.closed"); e.Problem == nil || e.Problem.Code != "no-room" || e.Problem.Do == "" {
		t.Errorf("room.closed says %+v", e.Problem)
	}
}

func TestSignalingNotThere(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 60*time.Second)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.signal = l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"host", "mini"}, {"join", "ABC-DEF"}, {"chat", "ABC-DEF", "hello"}} {
		pr := p.member(args...)
		pr.fails(1, p.signal, "the signaling server can't be reached", "'pooled signal'", "--signal")
		if strings.Contains(pr.log.String(), "driver") {
			t.Errorf("pooled %s: the GPU has nothing to do with it: %q", pr.name, pr.log)
		}
	}
}

func TestSecondHostOnTheSameCode(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 60*time.Second)
	p.opensSignal()
	first := p.opensRoom("FEA-Q38", "2")
	p.member("host", "mini", "--code", "fea-q38").fails(1, "room code FEA-Q38 is taken", p.signal, "--code")
	p.member("join", "FEA-Q38", "--json-log").sees("room.online")
	first.signals(interrupt)
	first.exits(0)
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 60*time.Second)
	p.opensSignal()
	_, port, err := net.SplitHostPort(p.signal)
	if err != nil {
		t.Fatal(err)
	}
	p.start("signal", "--port", port).fails(1, "the signaling server can't start", port, "--port")
}

// models are the golden files beside the engines.
func models(t *testing.T, name string) string {
	dir := filepath.Join("compute", "testdata", "models")
	if other := os.Getenv("POOLED_GOLDENS"); other != "" {
		dir = other
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Skipf("POOLED_GOLDENS has no %s", name)
		}
	}
	return filepath.Join(dir, name)
}

func TestGoldensDebugEval(t *testing.T) {
	b, err := os.ReadFile(models(t, "tiny-qwen3-q8.golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want golden.Result
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	prompt, err := json.Marshal(want.Prompt)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		engine, kv string
		tolerance  golden.Tolerance
	}{{"ref", "f32", golden.F32}, {"gpu", "f32", golden.F32}, {"gpu", "f16", golden.F16}} {
		t.Run(c.engine+" "+c.kv, func(t *testing.T) {
			exit, stdout, stderr := inProcess(t, "", "debug", "eval", models(t, "tiny-qwen3-q8.gguf"),
				"--tokens", strings.Trim(string(prompt), "[]"), "--greedy", "24", "--engine", c.engine, "--kv", c.kv)
			if exit == 3 && os.Getenv("POOLED_NO_GPU") == "1" {
				t.Skipf("SKIPPED, NOT TESTED: POOLED_NO_GPU=1: %s", stderr)
			}
			if exit != 0 || strings.Count(stdout, "\n") != 1 {
				t.Fatalf("exit %d, stdout %q, stderr %q", exit, stdout, stderr)
			}
			var got golden.Result
			d := json.NewDecoder(strings.NewReader(stdout))
			d.DisallowUnknownFields()
			if err := d.Decode(&got); err != nil {
				t.Fatalf("%v in %q", err, stdout)
			}
			report, err := golden.Compare(&got, &want, c.tolerance)
			if err != nil {
				t.Errorf("%+v: %v", report, err)
			}
			// The same form: as many decimals as the golden file has.
			if again, err := json.Marshal(&got); err != nil || string(again)+"\n" != stdout {
				t.Errorf("%v: written again it is another text", err)
			}
		})
	}
}

func TestGoldensDebugTokenize(t *testing.T) {
	b, err := os.ReadFile(models(t, "tokens-qwen3.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Text string
			IDs  []int32
		}
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	vocab := models(t, "vocab-qwen3.gguf")
	for i, c := range file.Cases {
		if i%8 != 0 && c.Text != "" { // each run reads the vocabulary; all cases are tested where the tokenizer is
			continue
		}
		text := filepath.Join(t.TempDir(), "text")
		if err := os.WriteFile(text, []byte(c.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(map[string]any{"ids": append([]int32{}, c.IDs...)})
		if err != nil {
			t.Fatal(err)
		}
		for way, args := range map[string][]string{"stdin": nil, "file": {"--file", text}} {
			exit, stdout, stderr := inProcess(t, c.Text, append([]string{"debug", "tokenize", vocab}, args...)...)
			if exit != 0 || stdout != string(want)+"\n" {
				t.Errorf("%q from %s: exit %d, stdout %q, want %s; stderr %q", c.Text, way, exit, stdout, want, stderr)
			}
		}
	}
}

func TestModelFileCut(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join("compute", "testdata", "models", "tiny-qwen3-q8.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		file []byte
	}{
		{"empty", nil},
		{"in the magic", whole[:3]},
		{"in the header", whole[:20]},
		{"in the metadata", whole[:200]},
		{"in the middle", whole[:len(whole)/2]},
		{"before the last byte", whole[:len(whole)-1]},
		{"another sort of file", bytes.Repeat([]byte("not a model\n"), 100)},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cut.gguf")
			if err := os.WriteFile(path, c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			exit, stdout, stderr := inProcess(t, "", "debug", "eval", path, "--tokens", "1,2", "--engine", "ref")
			if exit != 1 || stdout != "" || !strings.Contains(stderr, "cut.gguf") || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit %d, stdout %q, stderr %q", exit, stdout, stderr)
			}
		})
	}
}

// TestNothingIsLeft runs whole commands in this process and looks for goroutines afterwards.
func TestNothingIsLeft(t *testing.T) {
	p := newPlay(t, 60*time.Second)
	p.opensSignal()
	t.Setenv(censusEnv, people.l.Addr().String())
	for _, c := range []struct {
		name string
		args []string
		exit int
	}{
		{"a whole demo", []string{"demo", "-q", multiply}, 0},
		{"no room", []string{"join", "ABC-DEF", "--signal", p.signal, "--quiet"}, 4},
		{"no signaling", []string{"host", "mini", "--signal", "127.0.0.1:1"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, tests := goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction("pooled.(*census).follow")
			if exit, stdout, stderr := inProcess(t, "", c.args...); exit != c.exit {
				t.Errorf("exit %d, want %d; stdout %q, stderr %q", exit, c.exit, stdout, stderr)
			}
			if err := goleak.Find(before, tests); err != nil {
				t.Error(err)
			}
		})
	}
}
