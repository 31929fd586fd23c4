package shape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrSpace: the file system has too little room for the file.
var ErrSpace = errors.New("not enough space on disk")

// saveChunk is how much is made and written at a time.
const saveChunk = 4 << 20

// Save writes the file to path, which must not exist yet. After a failure, and when ctx ends, nothing is left there.
// progress (nil for none) gets the bytes written so far.
func (f *File) Save(ctx context.Context, path string, progress func(done, total int64)) (err error) {
	if free, ok := freeSpace(filepath.Dir(path)); ok && free < uint64(f.size) {
		return fmt.Errorf("shape: %s: %w: %d bytes are needed, %d are free", path, ErrSpace, f.size, free)
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("shape: %w", err)
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	buf := make([]byte, saveChunk)
	for done := int64(0); done < f.size; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("shape: write %s: %w", path, err)
		}
		n, err := f.ReadAt(buf[:min(saveChunk, f.size-done)], done)
		if err != nil {
			return err
		}
		if _, err := out.Write(buf[:n]); err != nil {
			return fmt.Errorf("shape: %w", err)
		}
		if done += int64(n); progress != nil {
			progress(done, f.size)
		}
	}
	return nil
}
