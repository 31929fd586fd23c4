package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// two is a model of two small files.
var two = Entry{Key: "two", Files: []File{{Name: "a.gguf", Bytes: 10}, {Name: "b.gguf", Bytes: 100}}}

// put writes a file of n bytes below dir.
func put(t *testing.T, dir, name string, n int) {
	t.Helper()
	write(t, dir, name, bytes.Repeat([]byte{name[0]}, n))
}

func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestOpenStorePlaces(t *testing.T) {
	t.Setenv("HOME", "/somewhere")
	t.Setenv("POOLED_MODELS", "")
	for _, c := range []struct{ name, env, dir, want string }{
		{"nothing said", "", "", filepath.Join("/somewhere", ".pooled", "models")},
		{"variable", "/env", "", "/env"},
		{"flag wins", "/env", "/flag", "/flag"},
	} {
		t.Setenv("POOLED_MODELS", c.env)
		s, err := OpenStore(c.dir)
		if err != nil || s.Dir != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, s.Dir, err, c.want)
		}
	}
	t.Setenv("POOLED_MODELS", "")
	t.Setenv("HOME", "")
	if _, err := OpenStore(""); err == nil {
		t.Error("no home folder: no error")
	}
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		name    string
		files   map[string]string // name -> content; "n:" stands for n bytes
		present bool
		bytes   int64
	}{
		{"nothing", nil, false, 0},
		{"both", map[string]string{"two/a.gguf": size(10), "two/b.gguf": size(100)}, true, 110},
		{"one", map[string]string{"two/b.gguf": size(100)}, false, 100},
		{"one byte short", map[string]string{"two/a.gguf": size(10), "two/b.gguf": size(99)}, false, 10},
		{"one byte too many", map[string]string{"two/a.gguf": size(11), "two/b.gguf": size(100)}, false, 100},
		{"part without a record", map[string]string{"two/a.gguf": size(10), "two/b.gguf.part": size(40)}, false, 50},
		{"part longer than the file", map[string]string{"two/b.gguf.part": size(400)}, false, 100},
		{"part with a record", map[string]string{"two/b.gguf.part": size(100),
			"two/b.gguf.part.json": `{"total":100,"base":20,"segs":[{"start":20,"end":60,"done":7},{"start":60,"end":100,"done":40}]}`}, false, 67},
		{"record without a part", map[string]string{"two/b.gguf.part.json": `{"total":100,"base":20,"segs":[]}`}, false, 0},
		{"record of another size", map[string]string{"two/b.gguf.part": size(100), "two/b.gguf.part.json": `{"total":99,"base":20}`}, false, 0},
		{"record that is no JSON", map[string]string{"two/b.gguf.part": size(100), "two/b.gguf.part.json": `{`}, false, 0},
		{"record with more than a range holds", map[string]string{"two/b.gguf.part": size(100),
			"two/b.gguf.part.json": `{"total":100,"base":0,"segs":[{"start":0,"end":10,"done":11}]}`}, false, 0},
		{"record with more than the file", map[string]string{"two/b.gguf.part": size(100),
			"two/b.gguf.part.json": `{"total":100,"base":90,"segs":[{"start":0,"end":50,"done":50}]}`}, false, 0},
		{"record with a negative count", map[string]string{"two/b.gguf.part": size(100),
			"two/b.gguf.part.json": `{"total":100,"base":-5,"segs":[]}`}, false, 0},
		{"endless record", map[string]string{"two/b.gguf.part": size(100),
			"two/b.gguf.part.json": `{"total":100,"base":20,"segs":[]` + strings.Repeat(" ", maxRecord) + "}"}, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range c.files {
				write(t, dir, name, []byte(content))
			}
			got := (&Store{Dir: dir}).Status(two)
			if want := (Status{Present: c.present, Bytes: c.bytes, Total: 110}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	dir := t.TempDir()
	put(t, dir, "two/a.gguf", 10)
	if err := os.Mkdir(filepath.Join(dir, "two", "b.gguf"), 0o755); err != nil {
		t.Fatal(err)
	}
	if st := (&Store{Dir: dir}).Status(two); st.Present {
		t.Error("a folder counts as a file")
	}
	put(t, dir, "file", 1)
	if st := (&Store{Dir: filepath.Join(dir, "file")}).Status(two); st.Present || st.Err == nil {
		t.Errorf("store inside a file: %+v, want an error", st)
	}
}

func size(n int) string { return strings.Repeat("x", n) }

// The layout of earlier programs is read; a file at the usual place wins.
func TestOlderLayout(t *testing.T) {
	e := Entry{Key: "qwen3-1.7b", Files: []File{{Name: "Qwen3-1.7B-Q8_0.gguf", Bytes: 4}}}
	dir := t.TempDir()
	s := &Store{Dir: dir}
	write(t, dir, "qwen17/model.gguf", []byte("old!"))
	if st := s.Status(e); !st.Present || st.Bytes != 4 {
		t.Errorf("older layout: %+v", st)
	}
	if got := read(t, s, e); got != "old!" {
		t.Errorf("read %q", got)
	}
	write(t, dir, "qwen3-1.7b/Qwen3-1.7B-Q8_0.gguf", []byte("new!"))
	if got := read(t, s, e); got != "new!" {
		t.Errorf("read %q, want the file at its usual place", got)
	}
	write(t, dir, "qwen17/model.gguf", []byte("longer"))
	write(t, dir, "qwen3-1.7b/Qwen3-1.7B-Q8_0.gguf", []byte("x"))
	if st := s.Status(e); st.Present {
		t.Errorf("both of a wrong size: %+v", st)
	}
}

func read(t *testing.T, s *Store, e Entry) string {
	t.Helper()
	blobs, err := s.Open(e)
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, b := range blobs {
		data, err := io.ReadAll(io.NewSectionReader(b.R, 0, b.Size))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data...)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	return string(all)
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	s := &Store{Dir: dir}
	put(t, dir, "two/a.gguf", 10)
	_, err := s.Open(two)
	if !errors.Is(err, ErrAbsent) || !strings.HasPrefix(err.Error(), "catalog: two: not on this computer") || !strings.Contains(err.Error(), "b.gguf") {
		t.Errorf("one file missing: %v", err)
	}
	put(t, dir, "two/b.gguf", 99)
	if _, err := s.Open(two); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "99 bytes instead of 100") {
		t.Errorf("one byte short: %v", err)
	}
	put(t, dir, "two/b.gguf", 100)
	if got, want := read(t, s, two), strings.Repeat("t", 110); got != want {
		t.Errorf("read %q", got)
	}
	blobs, err := s.Open(two)
	if err != nil || len(blobs) != 2 || blobs[1].Name != "b.gguf" || blobs[1].Size != 100 {
		t.Fatalf("%+v, %v", blobs, err)
	}
	for _, b := range blobs {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := b.R.ReadAt(make([]byte, 1), 0); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("read after Close: %v", err)
		}
	}
}

// The embedded model opens without a folder.
func TestOpenMini(t *testing.T) {
	s := &Store{Dir: filepath.Join(t.TempDir(), "nowhere")}
	e := byKey("mini")
	if st := s.Status(e); !st.Present || st.Bytes != 5995200 || st.Total != 5995200 {
		t.Errorf("status %+v", st)
	}
	sum := sha256.Sum256([]byte(read(t, s, e)))
	if got := hex.EncodeToString(sum[:]); got != e.Files[0].SHA256 {
		t.Errorf("SHA-256 %s", got)
	}
	if _, err := os.Stat(s.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the store made its folder")
	}
}

func TestList(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	dir := filepath.Join(home, ".pooled", "models")
	var out bytes.Buffer
	if err := List(&out, &Store{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	want := `on this computer
  mini               Pooled Mini · Q8             6 MB  part of this program; tiny: for first runs and tests

not on this computer
  qwen3-0.6b         Qwen3 0.6B · Q8            610 MB  Qwen3-0.6B-Q8_0.gguf
  qwen3-1.7b         Qwen3 1.7B · Q8            1.7 GB  Qwen3-1.7B-Q8_0.gguf
  qwen3-4b           Qwen3 4B · Q8              4.0 GB  Qwen3-4B-Q8_0.gguf
  qwen3.8-27b        Qwen3.8 27B · Q4          15.0 GB  Qwen3.8-27B-Q4_0.gguf
  qwen3.6-35b-moe    Qwen3.6 35B MoE · Q4      19.4 GB  Qwen_Qwen3.6-35B-A3B-Q4_0.gguf
  qwen3.5-122b-moe   Qwen3.5 122B MoE · Q4     67.5 GB  Qwen_Qwen3.5-122B-A10B-Q4_0-00001-of-00002.gguf and 1 more

no downloaded model in ~/.pooled/models
a model's file goes into the folder of its name there, like qwen3-0.6b/Qwen3-0.6B-Q8_0.gguf
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	// A whole file and a partial one; sparse, so that they cost nothing.
	sparse(t, filepath.Join(dir, "qwen3-1.7b", "Qwen3-1.7B-Q8_0.gguf"), 1834426016)
	sparse(t, filepath.Join(dir, "qwen3-0.6b", "Qwen3-0.6B-Q8_0.gguf.part"), 300<<20)
	out.Reset()
	if err := List(&out, &Store{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"for first runs and tests\n  qwen3-1.7b         Qwen3 1.7B · Q8            1.7 GB\n\nnot on",
		"\n  qwen3-0.6b         Qwen3 0.6B · Q8            610 MB  300 MB of it here; Qwen3-0.6B-Q8_0.gguf\n",
		"\nmodels are kept in ~/.pooled/models\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwithout\n%s", out.String(), want)
		}
	}
	if strings.Contains(out.String(), "pull") {
		t.Error("names a command that does not exist")
	}
	if err := List(failing{}, &Store{Dir: dir}); !errors.Is(err, errWrite) {
		t.Errorf("write error: %v", err)
	}
}

func sparse(t *testing.T, path string, n int64) {
	t.Helper()
	write(t, filepath.Dir(path), filepath.Base(path), nil)
	if err := os.Truncate(path, n); err != nil {
		t.Fatal(err)
	}
}

var errWrite = errors.New("no more paper")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errWrite }

// `host --model list` prints key and label (spec cli.md 11, C17).
func TestKeys(t *testing.T) {
	var out bytes.Buffer
	if err := Keys(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 7 || lines[2] != "qwen3-1.7b         Qwen3 1.7B · Q8" || lines[6] != "qwen3.5-122b-moe   Qwen3.5 122B MoE · Q4" {
		t.Errorf("got\n%s", out.String())
	}
}
