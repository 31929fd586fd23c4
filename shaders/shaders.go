// Package shaders holds the WGSL kernels, one file per operation and weight format, embedded in the program.
//
// A kernel's source is put together by Source: the constants the file expects, the decode helpers it names, the file.
// There is no preprocessor. The dialect is what the compiler of the WebGPU binding takes (spec engine.md 0.1): no
// override, no f16, no subgroups, no packed integer dot product. Every kernel has one entry point, main; bind group 0 is
// the frame (frame.wgsl), bind group 1 the kernel's own bindings in the order inputs, weights, output, Params.
// Names are <op>[_<format>][_<form>]; the form _cols treats several columns at once and gives the same bits as the
// plain one.
package shaders

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed *.wgsl
var files embed.FS

// Kernel says what a kernel's file needs.
type Kernel struct {
	Name     string
	Helpers  []string // decode helper files put in front, without .wgsl
	Consts   []string // constants the file expects, all u32
	Bindings string   // bind group 1 in order: r storage read, w storage read-write, u uniform
}

// kernels lists every kernel.
var kernels = []Kernel{
	{"attn_combine", []string{"splits", "reduce"}, []string{"HEADS", "HD", "SPLITS", "DIRECT_MAX", "WG"}, "rw"},
	{"attn_decode_f16", []string{"splits", "reduce"}, attnConsts, "rrrwu"},
	{"attn_decode_f32", []string{"splits", "reduce"}, attnConsts, "rrrwu"},
	{"copy_cols", nil, []string{"WIDTH", "WG"}, "rw"},
	{"embed_f32", nil, []string{"COLS", "WG"}, "rwu"},
	{"embed_q8_0", []string{"half", "decode_q8_0"}, []string{"COLS", "WG"}, "rrwu"},
	{"gate_up_q8_0", []string{"half", "decode_q8_0", "dot"}, []string{"COLS", "WG", "LANES"}, "rrrrrwwwu"},
	{"gate_up_q8_0_cols", []string{"half", "decode_q8_0", "dot"}, []string{"COLS", "WG", "LANES"}, "rrrrrwwwu"},
	{"kv_store_f16", []string{"half"}, []string{"WIDTH", "WG"}, "rrww"},
	{"kv_store_f32", nil, []string{"WIDTH", "WG"}, "rrww"},
	{"matvec_f32", nil, matvecConsts, "rrwu"},
	{"matvec_f32_cols", nil, matvecConsts, "rrwu"},
	{"matvec_q8_0", []string{"half", "decode_q8_0", "dot"}, matvecConsts, "rrrwu"},
	{"matvec_q8_0_cols", []string{"half", "decode_q8_0", "dot"}, matvecConsts, "rrrwu"},
	{"norm_rope", []string{"reduce"}, []string{"HEADS", "HD", "NROT", "NORM", "WG"}, "rrwu"},
	{"norm_rope_store_f16", []string{"half", "reduce"}, ropeStoreConsts, "rrrrwwwwu"},
	{"norm_rope_store_f32", []string{"reduce"}, ropeStoreConsts, "rrrrwwwwu"},
	{"rmsnorm", []string{"reduce"}, []string{"WIDTH", "WG"}, "rrwu"},
	{"silu_mul", nil, []string{"WIDTH", "WG"}, "rrw"},
	{"topk_merge", nil, []string{"SLICES"}, "rrw"},
	{"topk_slice", nil, []string{"WIDTH", "SLICES"}, "rww"},
}

var (
	matvecConsts    = []string{"COLS", "WG", "LANES", "ACC"}
	ropeStoreConsts = []string{"HEADS", "KVHEADS", "HD", "NROT", "NORM", "WG"}
	attnConsts      = []string{"HEADS", "KVHEADS", "HD", "SPLITS", "DIRECT", "DIRECT_MAX", "WG"}
)

// Consts are the values of a kernel's constants by name.
type Consts map[string]uint32

// Kernels returns the table, ordered by name. The caller must not change it.
func Kernels() []Kernel { return kernels }

// Lookup returns the kernel of that name.
func Lookup(name string) (Kernel, bool) {
	for _, k := range kernels {
		if k.Name == name {
			return k, true
		}
	}
	return Kernel{}, false
}

// Source returns the complete WGSL of a kernel. Every constant that its table entry lists must be given, and no other.
func Source(name string, consts Consts) (string, error) {
	k, ok := Lookup(name)
	if !ok {
		return "", fmt.Errorf("shaders: no kernel %q", name)
	}
	var b strings.Builder
	for _, c := range k.Consts {
		v, ok := consts[c]
		if !ok {
			return "", fmt.Errorf("shaders: kernel %s: constant %s is missing", name, c)
		}
		b.WriteString("const " + c + ": u32 = " + strconv.FormatUint(uint64(v), 10) + "u;\n")
	}
	for c := range consts {
		if !slices.Contains(k.Consts, c) {
			return "", fmt.Errorf("shaders: kernel %s: no constant %s", name, c)
		}
	}
	for _, f := range append(append([]string{"frame"}, k.Helpers...), name) {
		text, err := files.ReadFile(f + ".wgsl")
		if err != nil {
			return "", fmt.Errorf("shaders: kernel %s: %w", name, err)
		}
		b.Write(text)
	}
	return b.String(), nil
}
