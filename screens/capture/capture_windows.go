package capture

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// streams are the standard handles that were replaced.
type streams struct{ out, err, pipe *os.File }

// redirect makes w the process's standard output and error, for Go and for who asks the system.
func redirect(w *os.File) (*streams, error) {
	s := &streams{os.Stdout, os.Stderr, w}
	if err := setHandles(w, w); err != nil {
		return nil, errors.Join(err, setHandles(s.out, s.err))
	}
	os.Stdout, os.Stderr = w, w
	return s, nil
}

func setHandles(out, errOut *os.File) error {
	return errors.Join(
		windows.SetStdHandle(windows.STD_OUTPUT_HANDLE, windows.Handle(out.Fd())),
		windows.SetStdHandle(windows.STD_ERROR_HANDLE, windows.Handle(errOut.Fd())))
}

// restore puts the handles back and closes the pipe's end.
func (s *streams) restore() error {
	os.Stdout, os.Stderr = s.out, s.err
	return errors.Join(setHandles(s.out, s.err), s.pipe.Close())
}
