package gpu

import (
	"errors"
	"slices"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
)

// store is a buffer that holds the arrays of one piece, or of several matrices that were merged. It belongs to the device
// goroutine.
type store struct {
	buf   *wgpu.Buffer
	users int
}

func (s *store) drop(d *Device) {
	if s.users--; s.users == 0 {
		d.freeBuffer(s.buf)
	}
}

// merge puts matrices of the same layout and columns behind each other in one store, so that one kernel can read them all, and
// says whether that worked. It copies on the device and frees what the matrices were in; a matrix's values and its pieces'
// rows stay. Matrices that are behind each other already, from an earlier program, are left there; programs that were built before
// keep the buffers they know.
func (d *Device) merge(ws []*weight) (bool, error) {
	for i, w := range ws {
		if len(w.pieces) != 1 || w.format.layout != ws[0].format.layout || w.format.any() || w.spec.Cols != ws[0].spec.Cols ||
			slices.Contains(ws[:i], w) {
			return false, nil
		}
	}
	if follow(ws) {
		return true, nil
	}
	var sizes []int64 // of each array
	for a := range ws[0].format.arrays {
		var sum int64
		for i, w := range ws {
			if n := w.arrayBytes(a); n%4 == 0 || i == len(ws)-1 {
				sum += n
			} else {
				return false, nil
			}
			if w.pieces[0].store.users != 1 {
				return false, nil
			}
		}
		if sum > d.info.MaxBinding {
			return false, nil
		}
		sizes = append(sizes, sum)
	}
	if total(sizes) > d.info.MaxBuffer {
		return false, nil
	}
	switch err := d.gather(ws, sizes); {
	case errors.Is(err, op.ErrMemory): // no room for both copies at once: they stay where they are, and the bits stay too
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// follow says whether the matrices lie behind each other in one store.
func follow(ws []*weight) bool {
	rows := ws[0].pieces[0].before
	for _, w := range ws {
		if p := w.pieces[0]; p.store != ws[0].pieces[0].store || p.before != rows {
			return false
		}
		rows += w.spec.Rows
	}
	return true
}

// arrayBytes is the size of array a of a matrix of one piece, without padding.
func (w *weight) arrayBytes(a int) int64 {
	q, _ := w.spec.Type.Format()
	return int64(w.spec.Rows) * int64(w.spec.Cols/q.BlockLen) * w.format.arrays[a]
}

// total is the size of a buffer that holds arrays of those sizes.
func total(sizes []int64) (sum int64) {
	for _, n := range sizes {
		sum = align(sum+n, alignment)
	}
	return sum
}

// gather makes the new store and copies.
func (d *Device) gather(ws []*weight, sizes []int64) error {
	var views []view
	for i, n := range sizes {
		views = append(views, view{off: total(sizes[:i]), size: align(n, 4)})
	}
	b, err := d.createBuffer("merged "+ws[0].spec.Name, total(sizes), weightUsage)
	if err != nil {
		return err
	}
	var spans []span
	at := make([]int64, len(sizes))
	for _, w := range ws {
		for a, v := range w.pieces[0].arrays {
			n := align(w.arrayBytes(a), 4)
			spans = append(spans, makeSpan(v.buf, uint64(v.off), b, uint64(views[a].off+at[a]), uint64(n)))
			at[a] += w.arrayBytes(a)
		}
	}
	if err := d.sh.submit(nil, nil, spans); err != nil {
		d.freeBuffer(b)
		return err
	}
	s, before := &store{b, len(ws)}, 0
	for i := range views {
		views[i].buf = b
	}
	for _, w := range ws {
		p := &w.pieces[0]
		d.used.Add(-int64(p.store.buf.GetSize()))
		p.store.buf.Release() // not destroyed: programs that know it may run on
		p.store, p.arrays, p.before = s, views, before
		before += w.spec.Rows
	}
	return nil
}
