package shape

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Numbers of value types in a GGUF header (spec engine.md 1.1).
const (
	typeU32    = 4
	typeI32    = 5
	typeF32    = 6
	typeBool   = 7
	typeString = 8
	typeArray  = 9
)

const (
	alignment = 32
	taps      = 4 // of the convolution
	epsilon   = 1e-6
)

// header is the beginning of a model file under construction.
type header struct {
	keys bytes.Buffer
	n    uint64 // keys so far
	arch string
}

func (h *header) u32(v uint32)    { h.put(binary.LittleEndian.AppendUint32(nil, v)) }
func (h *header) u64(v uint64)    { h.put(binary.LittleEndian.AppendUint64(nil, v)) }
func (h *header) put(b []byte)    { h.keys.Write(b) }
func (h *header) text(s string)   { h.u64(uint64(len(s))); h.keys.WriteString(s) }
func (h *header) key(name string) { h.n++; h.text(name) }

func (h *header) str(name, v string) { h.key(name); h.u32(typeString); h.text(v) }

func (h *header) num(name string, v int) { h.key(name); h.u32(typeU32); h.u32(uint32(v)) }

func (h *header) float(name string, v float32) {
	h.key(name)
	h.u32(typeF32)
	_ = binary.Write(&h.keys, binary.LittleEndian, v) // to memory
}

func (h *header) array(name string, typ uint32, n int) {
	h.key(name)
	h.u32(typeArray)
	h.u32(typ)
	h.u64(uint64(n))
}

func (h *header) strings(name string, list []string) {
	h.array(name, typeString, len(list))
	for _, s := range list {
		h.text(s)
	}
}

func (h *header) ints(name string, list []int32) {
	h.array(name, typeI32, len(list))
	_ = binary.Write(&h.keys, binary.LittleEndian, list) // to memory
}

// own is the name of one of the architecture's keys.
func (h *header) own(name string) string { return h.arch + "." + name }

// describe writes all keys of a shape (spec engine.md 1.2, 9.2).
func (h *header) describe(s *Shape) {
	h.str("general.architecture", s.Arch)
	h.str("general.name", fmt.Sprintf("random weights in the shape of %s, %d layers", s.Name, s.Layers))
	h.num("general.file_type", int(s.mix.file))
	h.num("general.quantization_version", 2)
	h.num("general.alignment", alignment)
	blocks := s.Layers
	if s.Draft {
		blocks++
		h.num(h.own("nextn_predict_layers"), 1)
	}
	h.num(h.own("block_count"), blocks)
	h.num(h.own("context_length"), s.Ctx)
	h.num(h.own("embedding_length"), s.Width)
	if s.FF > 0 {
		h.num(h.own("feed_forward_length"), s.FF)
	}
	h.num(h.own("attention.head_count"), s.Heads)
	h.num(h.own("attention.head_count_kv"), s.KVHeads)
	h.num(h.own("attention.key_length"), s.Head)
	h.num(h.own("attention.value_length"), s.Head)
	h.float(h.own("attention.layer_norm_rms_epsilon"), epsilon)
	h.float(h.own("rope.freq_base"), s.Theta)
	if s.hybrid() {
		h.hybrid(s)
	}
	h.vocabulary(s)
}

func (h *header) hybrid(s *Shape) {
	h.num(h.own("rope.dimension_count"), s.Rot)
	pairs := int32(s.Rot / 2)
	third := (pairs + 2) / 3 // text has the same position in all sections
	h.ints(h.own("rope.dimension_sections"), []int32{third, third, pairs - 2*third, 0})
	h.num(h.own("full_attention_interval"), s.Interval)
	h.num(h.own("ssm.conv_kernel"), taps)
	h.num(h.own("ssm.state_size"), s.Dim)
	h.num(h.own("ssm.group_count"), s.KeyHeads)
	h.num(h.own("ssm.time_step_rank"), s.ValueHeads)
	h.num(h.own("ssm.inner_size"), s.ValueHeads*s.Dim)
	if s.Experts > 0 {
		h.num(h.own("expert_count"), s.Experts)
		h.num(h.own("expert_used_count"), s.Used)
		h.num(h.own("expert_feed_forward_length"), s.Expert)
		h.num(h.own("expert_shared_feed_forward_length"), s.Shared)
	}
}

// bytes is the whole header with the records of tensors at these offsets, padded to the alignment.
func (h *header) bytes(tensors []Tensor, offsets []int64) []byte {
	all := &header{}
	all.put([]byte("GGUF"))
	all.u32(3)
	all.u64(uint64(len(tensors)))
	all.u64(h.n)
	all.put(h.keys.Bytes())
	for i, t := range tensors {
		all.text(t.Name)
		all.u32(uint32(len(t.Dims)))
		for _, d := range t.Dims {
			all.u64(uint64(d))
		}
		all.u32(uint32(t.Type))
		all.u64(uint64(offsets[i]))
	}
	all.put(make([]byte, aligned(int64(all.keys.Len()))-int64(all.keys.Len())))
	return all.keys.Bytes()
}

func aligned(n int64) int64 { return (n + alignment - 1) / alignment * alignment }
