// Package shaders holds the WGSL kernels, one file per operation, embedded in the program.
//
// A kernel's source is put together by Source: the constants the file expects, the decode helpers it names, the file.
// There is no preprocessor. The dialect is what the compiler of the WebGPU binding takes (spec engine.md 0.1): no
// override, no f16, no subgroups, no packed integer dot product. Every kernel has one entry point, main; bind group 0 is
// the frame (frame.wgsl), bind group 1 the kernel's own bindings in the order inputs, weights, output, Params.
// Names are <op>[_<format>][_<form>]; the form _cols treats several columns at once and gives the same bits as the
// plain one.
//
// Weight formats. A kernel that reads a matrix of any format is one file; each format has a decode file, put in front of
// it, which declares the matrix's arrays (bindings WeightBinding and up) and the functions quants and scale_of that eight consecutive
// weights come from. So a format is one file and one line in Formats.
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

// WeightBinding is the first binding of the arrays of a matrix.
const WeightBinding = 8

// Kernel says what a kernel's file needs.
type Kernel struct {
	Name     string
	File     string   // without .wgsl; in the tables: "" when it is the name
	Helpers  []string // decode helper files put in front, without .wgsl
	Consts   []string // constants the file expects, all u32
	Bindings string   // bind group 1 in order: r storage read, w storage read-write, u uniform
	near     bool     // there is a form that reads its first inputs from uniform bindings
	Weights  int      // arrays that helpers declare, of a matrix or a cache, storage read, from WeightBinding on
}

// Uniform ends the names of the forms that read their first inputs from uniform bindings.
const Uniform = "_uniform"

// Format is a layout of weights: its decode file is decode_<Name>.wgsl.
type Format struct {
	Name   string
	Arrays int
}

// Formats lists the layouts that kernels read.
var Formats = []Format{
	{"bf16", 1}, {"f16", 1}, {"f32", 1}, {"q4_0", 2}, {"q4_1", 2}, {"q4_k", 2}, {"q5_1", 3}, {"q5_k", 3}, {"q6_k", 3}, {"q8_0", 2},
}

// fixed lists the kernels that read no matrix, or a matrix of one format only.
var fixed = []Kernel{
	{Name: "attn_combine", Helpers: []string{"splits"}, Consts: []string{"HEADS", "HD", "SPLITS", "STEP", "DIRECT_MAX", "WG"}, Bindings: "rw"},
	{Name: "concat", Consts: []string{"FIRST", "WIDTH", "WG"}, Bindings: "rrw"},
	{Name: "conv_causal", Consts: []string{"CHANNELS", "TAPS", "WG"}, Bindings: "rrwwww"},
	{Name: "conv_undo", Consts: []string{"CHANNELS", "TAPS", "WG"}, Bindings: "rrw"},
	{Name: "copy_cols", Consts: []string{"WIDTH", "WG"}, Bindings: "rw"},
	{Name: "deinterleave", Consts: []string{"WIDTH", "HD", "WG"}, Bindings: "rww"},
	{Name: "deltanet_step", Helpers: []string{"reduce"}, Consts: []string{"HEADS", "KEYHEADS", "DIM", "COLUMNS", "GROUPS", "WG"}, Bindings: "rrrrrwww"},
	{Name: "embed_any", Consts: []string{"COLS", "LIST", "WG"}, Bindings: "rrwu"},
	{Name: "experts_down_any", Consts: []string{"COLS", "F", "USED", "WG"}, Bindings: "rrrwu"},
	{Name: "experts_rows_any", Consts: []string{"COLS", "F", "USED", "WG"}, Bindings: "rrrwu"},
	{Name: "experts_sort", Consts: []string{"EXPERTS", "USED", "WORDS", "TILE", "WG"}, Bindings: "rwwwww"},
	{Name: "experts_sum", Consts: []string{"WIDTH", "USED", "WG"}, Bindings: "rrrw"},
	{Name: "gate_add", Consts: []string{"WIDTH", "WG"}, Bindings: "rrw"},
	{Name: "half_probe", Consts: []string{"WG"}, Bindings: "w"},
	{Name: "kv_store_f16", Helpers: []string{"half"}, Consts: []string{"WIDTH", "WG"}, Bindings: "rrww"},
	{Name: "kv_store_f32", Consts: []string{"WIDTH", "WG"}, Bindings: "rrww"},
	{Name: "matvec_any", Consts: []string{"COLS", "WG", "LANES", "ACC"}, Bindings: "rrwu"},
	{Name: "matvec_any_cols", Consts: []string{"COLS", "WG", "LANES", "ACC"}, Bindings: "rrwu"},
	{Name: "norm_gate", Helpers: []string{"reduce"}, Consts: []string{"HEADS", "HD", "WG"}, Bindings: "rrwwu"},
	{Name: "norm_rope", Helpers: []string{"reduce"}, Consts: []string{"HEADS", "HD", "NROT", "NORM", "WG"}, Bindings: "rrwu"},
	{Name: "rmsnorm", Helpers: []string{"reduce"}, Consts: []string{"WIDTH", "WG"}, Bindings: "rrwu"},
	{Name: "route", Consts: []string{"EXPERTS", "USED", "WG"}, Bindings: "rw"},
	{Name: "sigmoid_mul", Consts: []string{"WIDTH", "WG"}, Bindings: "rw"},
	{Name: "silu_mul", Consts: []string{"WIDTH", "WG"}, Bindings: "rrw"},
	{Name: "topk_merge", Consts: []string{"SLICES"}, Bindings: "rrw"},
	{Name: "topk_slice", Consts: []string{"WIDTH", "SLICES"}, Bindings: "rrww"},
}

// cached lists the kernels that exist once per kind of cache; Name is the file, the helpers' names end with the kind.
var cached = []Kernel{
	{Name: "attn_decode", Helpers: []string{"reduce", "pairs_"}, Consts: []string{"HEADS", "KVHEADS", "HD", "WG"}, Bindings: "rwu", Weights: 2},
	{Name: "attn_lanes", near: true, Helpers: []string{"splits", "kv_octet_", "kv_"}, Consts: lanesConsts, Bindings: "rwwu", Weights: 2},
	{Name: "attn_rope", Helpers: []string{"half", "splits", "kv_octet_", "kv_io_", "attn_team"}, Consts: append(slices.Clip(teamConsts), "NROT"), Bindings: "rrrrwwuuwwu"},
	{Name: "attn_split", Helpers: []string{"splits", "kv_octet_", "kv_", "attn_team"}, Consts: teamConsts, Bindings: "rwwu", Weights: 2},
	{Name: "attn_tile", Helpers: []string{"kv_octet_", "kv_"}, Consts: []string{"HEADS", "KVHEADS", "HD", "MATES", "QUERIES", "BD", "BV"}, Bindings: "rwu", Weights: 2},
	{Name: "norm_rope_store", Helpers: []string{"half", "reduce", "store_"}, Consts: []string{"HEADS", "KVHEADS", "HD", "NROT", "NORM", "WG"}, Bindings: "rrrrwwwwu"},
}

// kinds are the kinds of caches: what op.KVType.String returns.
var kinds = []string{"f16", "f32"}

// families lists the kernels that exist once per format; Name is the file.
var families = []Kernel{
	{Name: "embed", Consts: []string{"COLS", "FAST_HALF", "LIST", "WG"}, Bindings: "rwu"},
	{Name: "experts_down", Helpers: []string{"rows"}, Consts: expertConsts, Bindings: "rrrwu"},
	{Name: "experts_rows", Helpers: []string{"rows"}, Consts: expertConsts, Bindings: "rrrwu"},
	{Name: "experts_gate_up", Helpers: []string{"rows"}, Consts: expertConsts, Bindings: "rrrwu"},
	{Name: "experts_tile", Consts: []string{"COLS", "F", "USED", "BY_COLUMN", "ACT", "TX", "BK", "FAST_HALF"}, Bindings: "rrrwu"},
	{Name: "gate_up", near: true, Helpers: []string{"rows"}, Consts: mergedConsts, Bindings: "rrwwwu"},
	{Name: "gate_up_cols", near: true, Helpers: []string{"rows_cols"}, Consts: mergedConsts, Bindings: "rrwwwu"},
	{Name: "gemm", Helpers: []string{"tile"}, Consts: append(slices.Clip(tileConsts), "ACC"), Bindings: "rwu"},
	{Name: "gemm3", Helpers: []string{"tile"}, Consts: tileConsts, Bindings: "rwwwu"},
	{Name: "gemm_gate_up", Helpers: []string{"tile"}, Consts: tileConsts, Bindings: "rwwwu"},
	{Name: "matvec", near: true, Helpers: []string{"rows"}, Consts: matvecConsts, Bindings: "rrwu"},
	{Name: "matvec_cols", near: true, Helpers: []string{"rows_cols"}, Consts: matvecConsts, Bindings: "rrwu"},
	{Name: "matvec3", near: true, Helpers: []string{"rows"}, Consts: mergedConsts, Bindings: "rrwwwu"},
	{Name: "matvec3_cols", near: true, Helpers: []string{"rows_cols"}, Consts: mergedConsts, Bindings: "rrwwwu"},
}

var (
	matvecConsts = []string{"COLS", "WG", "LANES", "ROWS", "ACC", "NORM", "FAST_HALF"}
	tileConsts   = []string{"COLS", "TY", "TX", "BK", "FAST_HALF"}
	mergedConsts = []string{"COLS", "WG", "LANES", "ROWS", "NORM", "FAST_HALF"}
	expertConsts = []string{"COLS", "F", "USED", "WG", "LANES", "ROWS", "NORM", "FAST_HALF"}
	lanesConsts  = []string{"HEADS", "KVHEADS", "HD", "SPLITS", "STEP", "DIRECT_MAX", "HELD"}
	teamConsts   = []string{"HEADS", "KVHEADS", "HD", "SPLITS", "STEP", "DIRECT_MAX", "HELD", "TEAM", "WG"}
)

var kernels = table()

// table is fixed and families times Formats, ordered by name.
func table() []Kernel {
	var all []Kernel
	for _, k := range fixed {
		if k.File == "" {
			k.File = k.Name
		}
		all = append(all, k)
	}
	for _, k := range cached {
		for _, kind := range kinds {
			all = append(all, k.of(kind)...)
		}
	}
	for _, k := range families {
		for _, f := range Formats {
			op, cols := strings.CutSuffix(k.Name, "_cols")
			n := Kernel{Name: op + "_" + f.Name, File: k.Name, Consts: k.Consts, Bindings: k.Bindings, Weights: f.Arrays}
			if cols {
				n.Name += "_cols"
			}
			n.Helpers = append([]string{"half", "half_of", "octet", "decode_" + f.Name}, k.Helpers...)
			if k.near {
				u := n
				u.Name, u.Bindings, u.Helpers = n.Name+Uniform, "uu"+n.Bindings[2:], append(slices.Clip(n.Helpers), "x_uniform")
				n.Helpers = append(n.Helpers, "x_storage")
				all = append(all, u)
			}
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b Kernel) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// of is the kernel for one kind of cache, in all its forms.
func (k Kernel) of(kind string) []Kernel {
	n := k
	n.Name, n.File, n.Helpers = k.Name+"_"+kind, k.Name, nil
	for _, h := range k.Helpers {
		if strings.HasSuffix(h, "_") {
			h += kind
		}
		n.Helpers = append(n.Helpers, h)
	}
	if !k.near {
		return []Kernel{n}
	}
	u := n
	u.Name, u.Bindings, u.Helpers = n.Name+Uniform, "u"+n.Bindings[1:], append(slices.Clip(n.Helpers), "x_query_uniform")
	n.Helpers = append(slices.Clip(n.Helpers), "x_query")
	return []Kernel{n, u}
}

// Consts are the values of a kernel's constants by name.
type Consts map[string]uint32

// Kernels returns the table, ordered by name. The caller must not change it.
func Kernels() []Kernel { return kernels }

// Lookup returns the kernel of that name.
func Lookup(name string) (Kernel, bool) {
	i, ok := slices.BinarySearchFunc(kernels, name, func(k Kernel, n string) int { return strings.Compare(k.Name, n) })
	if !ok {
		return Kernel{}, false
	}
	return kernels[i], true
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
	for _, f := range append(append([]string{"frame"}, k.Helpers...), k.File) {
		text, err := files.ReadFile(f + ".wgsl")
		if err != nil {
			return "", fmt.Errorf("shaders: kernel %s: %w", name, err)
		}
		b.Write(text)
	}
	return b.String(), nil
}
