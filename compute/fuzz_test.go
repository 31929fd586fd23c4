package compute_test

import (
	"bytes"
	"testing"

	"pooled/compute"
	"pooled/compute/gguf"
	"pooled/compute/gguf/gguftest"
)

// FuzzOpenModel: whatever a file's header claims, opening it ends in a model or an error, and a model that opened says
// what it needs without trouble. The input says which bytes of which model are turned over.
func FuzzOpenModel(f *testing.F) {
	var files [][]byte
	for i, s := range []*synth{newSynth(f), newHybrid(f, "qwen35"), newHybrid(f, "qwen35moe").fuseExperts()} {
		b, err := gguftest.Bytes(s.keys, s.tensors)
		if err != nil {
			f.Fatal(err)
		}
		files = append(files, b)
		for _, at := range []int{0, 8, 16, 60, 200, 300, 500, 900, bytes.Index(b, []byte("token_embd")) + 30, bytes.Index(b, []byte("blk.1"))} {
			f.Add(uint8(i), uint16(at), uint64(0xff), uint16(0), uint64(0))
			f.Add(uint8(i), uint16(at), ^uint64(0), uint16(at+40), uint64(3))
		}
	}
	dev := compute.OpenRef()
	f.Cleanup(func() { dev.Close() })
	f.Fuzz(func(t *testing.T, which uint8, at uint16, flip uint64, at2 uint16, flip2 uint64) {
		b := bytes.Clone(files[int(which)%len(files)])
		turn := func(at uint16, flip uint64) {
			for i := 0; i < 8 && int(at)+i < len(b); i++ {
				b[int(at)+i] ^= byte(flip >> (8 * i))
			}
		}
		turn(at, flip)
		turn(at2, flip2)
		m, err := compute.OpenModel(gguf.Part{Name: "fuzz", R: bytes.NewReader(b), Size: int64(len(b))})
		if err != nil {
			return
		}
		spec := compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: 1}
		if m.Drafts() {
			spec.Draft = compute.DraftNorm
		}
		if need, err := spec.Need(dev, m); err != nil || need.Total() <= 0 {
			t.Errorf("a model that opened needs %+v, %v", need, err)
		}
	})
}
