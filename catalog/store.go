package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Store is the folder that models are kept in (spec cli.md 4.3):
//
//	<Dir>/<key>/<file>             a finished file
//	<Dir>/<key>/<file>.part        one that is being downloaded
//	<Dir>/<key>/<file>.part.json   which ranges of it are there
//
// This package reads it; it makes neither the folder nor anything in it. The embedded model needs no folder.
type Store struct{ Dir string }

// older has the places where earlier programs kept single-file models, read when the file is not at its usual place.
var older = map[string]string{
	"qwen3-0.6b":      "qwen/model.gguf",
	"qwen3-1.7b":      "qwen17/model.gguf",
	"qwen3.8-27b":     "q38/model.gguf",
	"qwen3.6-35b-moe": "q36moe/Qwen_Qwen3.6-35B-A3B-Q4_0.gguf",
}

// maxRecord bounds a .part.json file.
const maxRecord = 1 << 16

// OpenStore names the store: dir, else the folder in POOLED_MODELS, else ~/.pooled/models. The folder need not exist.
func OpenStore(dir string) (*Store, error) {
	if dir == "" {
		dir = os.Getenv("POOLED_MODELS")
	}
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("catalog: folder for models: %w", err)
		}
		dir = filepath.Join(home, ".pooled", "models")
	}
	return &Store{Dir: dir}, nil
}

// Status says how much of a model is on this computer.
type Status struct {
	Present bool  // every file is there at its exact size, or the model is embedded
	Bytes   int64 // there, unfinished downloads included
	Total   int64
	Err     error // why a file could not be looked at; nil when it is just not there
}

// Status looks at the model's files. Sizes are compared, contents are not read.
func (s *Store) Status(e Entry) Status {
	st := Status{Total: e.Bytes()}
	if e.Embedded {
		st.Present, st.Bytes = true, st.Total
		return st
	}
	st.Present = len(e.Files) > 0
	for _, f := range e.Files {
		_, err := s.find(e, f)
		if err == nil {
			st.Bytes += f.Bytes
			continue
		}
		st.Present = false
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrAbsent) {
			st.Err = errors.Join(st.Err, err)
		}
		st.Bytes += partial(s.path(e, f)+".part", f.Bytes)
	}
	return st
}

func (s *Store) path(e Entry, f File) string { return filepath.Join(s.Dir, e.Key, f.Name) }

// find returns the path of a finished file.
func (s *Store) find(e Entry, f File) (string, error) {
	path := s.path(e, f)
	err := whole(path, f.Bytes)
	if old, ok := older[e.Key]; ok && err != nil {
		if old = filepath.Join(s.Dir, filepath.FromSlash(old)); whole(old, f.Bytes) == nil {
			return old, nil
		}
	}
	return path, err
}

// whole checks that path is a file of exactly that many bytes.
func whole(path string, bytes int64) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s: %w: not a file", path, ErrAbsent)
	case st.Size() != bytes:
		return fmt.Errorf("%s: %w: %d bytes instead of %d", path, ErrAbsent, st.Size(), bytes)
	}
	return nil
}

// partial is how many bytes of a started download are there: what its record says, else the size of what there is. A
// record that can't be right means that nothing is known to be there.
func partial(part string, total int64) int64 {
	st, err := os.Stat(part)
	if err != nil || !st.Mode().IsRegular() {
		return 0
	}
	file, err := os.Open(part + ".json")
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return min(st.Size(), total)
		}
		return 0
	}
	text, err := io.ReadAll(io.LimitReader(file, maxRecord+1))
	if closed := file.Close(); err != nil || closed != nil || len(text) > maxRecord {
		return 0
	}
	return recorded(text, total)
}

// recorded adds up a .part.json record: bytes [0, base) and the first done bytes of each range [start, end).
func recorded(text []byte, total int64) int64 {
	var r struct {
		Total, Base int64
		Segs        []struct{ Start, End, Done int64 }
	}
	if json.Unmarshal(text, &r) != nil || r.Total != total || r.Base < 0 || r.Base > total {
		return 0
	}
	n := r.Base
	for _, g := range r.Segs {
		if g.Start < 0 || g.End < g.Start || g.End > total || g.Done < 0 || g.Done > g.End-g.Start || g.Done > total-n {
			return 0
		}
		n += g.Done
	}
	return n
}

// Blob is one file of an open model.
type Blob struct {
	Name  string
	R     io.ReaderAt
	Size  int64
	close func() error
}

// Close closes the file. R can't be used afterwards.
func (b Blob) Close() error {
	if b.close == nil {
		return nil
	}
	return b.close()
}

// Open opens the model's files in order; the caller closes them. The error wraps ErrAbsent when the model is not
// complete on this computer.
func (s *Store) Open(e Entry) ([]Blob, error) {
	if e.Embedded {
		return []Blob{miniBlob(e.Files[0])}, nil
	}
	var blobs []Blob
	for _, f := range e.Files {
		b, err := s.open(e, f)
		if err != nil {
			for _, b := range blobs {
				err = errors.Join(err, b.Close())
			}
			return nil, fmt.Errorf("catalog: %s: %w", e.Key, err)
		}
		blobs = append(blobs, b)
	}
	return blobs, nil
}

func (s *Store) open(e Entry, f File) (Blob, error) {
	path, err := s.find(e, f)
	if errors.Is(err, fs.ErrNotExist) {
		return Blob{}, fmt.Errorf("%w: no %s", ErrAbsent, path)
	}
	if err != nil {
		return Blob{}, err
	}
	file, err := os.Open(path)
	if err != nil {
		return Blob{}, err
	}
	return Blob{Name: f.Name, R: file, Size: f.Bytes, close: file.Close}, nil
}
