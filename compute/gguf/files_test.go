package gguf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestOpenFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"whole.gguf", "m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf", "n-00001-of-00002.gguf"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, first string
		parts       int
	}{
		{"whole.gguf", "whole.gguf", 1},
		{"m-00001-of-00003.gguf", "m-00001-of-00003.gguf", 3},
		{"m-00003-of-00003.gguf", "m-00001-of-00003.gguf", 3},
	} {
		parts, files, err := OpenFiles(filepath.Join(dir, c.name))
		if err != nil {
			t.Fatal(err)
		}
		if len(parts) != c.parts || parts[0].Name != c.first || parts[0].Size != int64(len(c.first)) {
			t.Errorf("%s: got %d parts, the first %q of %d bytes", c.name, len(parts), parts[0].Name, parts[0].Size)
		}
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"none.gguf", "n-00001-of-00002.gguf"} {
		if _, _, err := OpenFiles(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want a file that doesn't exist", name, err)
		}
	}
	for _, name := range []string{"m-00001-of-00000.gguf", "m-00001-of-99999.gguf"} {
		if _, _, err := OpenFiles(filepath.Join(dir, name)); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
