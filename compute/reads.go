package compute

import "pooled/compute/op"

// Reads is what running one token alone reads and writes of the device's memory, in bytes. It is counted from the file's
// formats, so that it compares across programs; a device may store a format in more bytes.
type Reads struct {
	Weights int64 // matrices and vectors; of a mixture of experts only those that a token uses, of the embedding table one row
	States  int64 // recurrent states, read and written
	Caches  int64 // keys and values of the positions so far
}

// Total is all of it.
func (r Reads) Total() int64 { return r.Weights + r.States + r.Caches }

// Reads counts what a token at position pos takes of the whole model, head included.
func (m *Model) Reads(pos int, t op.KVType) Reads {
	var r Reads
	for i := range m.Layers {
		for _, w := range m.graph.tensors(m.file, i) {
			r.Weights += m.usedBytes(w)
		}
		if d, ok := m.graph.mixers[i].(*deltanet); ok {
			r.States += 2 * d.spec().Bytes()
		}
		if a, ok := m.graph.mixers[i].(*attention); ok {
			r.Caches += int64(pos) * a.kvPerPos(t)
		}
	}
	r.Weights += m.EmbedBytes/int64(m.Vocab) + m.usedBytes(m.norm) + m.usedBytes(m.head)
	return r
}

// usedBytes is how much of a tensor one token reads.
func (m *Model) usedBytes(w want) int64 {
	t, ok := m.file.Tensor(w.name)
	if !ok {
		return 0
	}
	n := w.bytes(t)
	if e, ok := m.graph.ff.(*experts); ok && len(w.dims) == 3 {
		n = n / int64(e.experts) * int64(e.used)
	}
	return n
}

// WeightBytes is the size of all tensors in the file that the model uses, the draft block's included.
func (m *Model) WeightBytes() int64 {
	n := m.EmbedBytes + m.HeadBytes + m.DraftBytes + m.usedBytes(m.norm)
	for _, b := range m.layerBytes {
		n += b
	}
	return n
}
