//go:build unix

package capture

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// streams are duplicates of the descriptors that were redirected.
type streams struct{ out, err *os.File }

// redirect makes descriptors 1 and 2 write to w and closes w.
func redirect(w *os.File) (*streams, error) {
	out, err := duplicate(1, "stdout")
	if err != nil {
		return nil, err
	}
	errOut, err := duplicate(2, "stderr")
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	s := &streams{out, errOut}
	if err := errors.Join(unix.Dup2(int(w.Fd()), 1), unix.Dup2(int(w.Fd()), 2)); err != nil {
		return nil, errors.Join(err, s.restore())
	}
	return s, w.Close()
}

func duplicate(fd int, name string) (*os.File, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("dup "+name, err)
	}
	return os.NewFile(uintptr(n), name), nil
}

// restore puts the descriptors back and closes the duplicates.
func (s *streams) restore() error {
	return errors.Join(unix.Dup2(int(s.out.Fd()), 1), unix.Dup2(int(s.err.Fd()), 2), s.out.Close(), s.err.Close())
}
