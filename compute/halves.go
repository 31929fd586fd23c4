package compute

import (
	"io"

	"pooled/compute/gguf"
)

// rows is the number of rows that are wanted.
func (w want) rows() int {
	n := 1
	for _, d := range w.dims[1:] {
		n *= d
	}
	return n
}

// reader reads what is wanted of tensor t.
func (w want) reader(f *gguf.File, t gguf.Tensor) io.Reader {
	all := f.Reader(t)
	if w.half == 0 {
		return all
	}
	size := t.Bytes / int64(2*w.dims[2])
	return &halves{all: all, size: size, at: size * int64(w.half-1), left: size}
}

// halves reads every second piece of size bytes.
type halves struct {
	all            io.ReaderAt
	size, at, left int64 // left of the present piece
}

func (h *halves) Read(p []byte) (int, error) {
	if h.left == 0 {
		h.at, h.left = h.at+h.size, h.size
	}
	n, err := h.all.ReadAt(p[:min(int64(len(p)), h.left)], h.at)
	h.at, h.left = h.at+int64(n), h.left-int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}
