package gguf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// Files are the parts of a model on disk, open for reading.
type Files []*os.File

// Close closes all of them.
func (f Files) Close() error {
	var errs []error
	for _, one := range f {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// partName is how the files of a split model are called: name-00001-of-00003.gguf.
var partName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// maxNames bounds the number of files that a name may ask for.
const maxNames = 999

// OpenFiles opens the file at path, or, when its name is that of any part of a split model, all parts in order. Who calls
// it closes them.
func OpenFiles(path string) ([]Part, Files, error) {
	names := []string{path}
	if m := partName.FindStringSubmatch(path); m != nil {
		count, err := strconv.Atoi(m[3])
		if err != nil || count < 1 || count > maxNames {
			return nil, nil, fmt.Errorf("gguf: %s: %s parts, at most %d allowed", filepath.Base(path), m[3], maxNames)
		}
		names = names[:0]
		for i := range count {
			names = append(names, fmt.Sprintf("%s-%05d-of-%05d.gguf", m[1], i+1, count))
		}
	}
	var parts []Part
	var files Files
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, errors.Join(err, files.Close())
		}
		files = append(files, f)
		info, err := f.Stat()
		if err != nil {
			return nil, nil, errors.Join(err, files.Close())
		}
		parts = append(parts, Part{Name: filepath.Base(name), R: f, Size: info.Size()})
	}
	return parts, files, nil
}
