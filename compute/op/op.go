// Package op is the vocabulary that the model graphs of package compute are written in and that the two backends
// (compute/ref in plain Go, compute/gpu in WGSL) speak. It holds no arithmetic.
//
// A graph is recorded once, when layers are loaded, and run many times:
//
//	dev.Load / dev.Buffer / dev.KV / dev.Rope     memory, made once
//	b := dev.Program("layers 0-5", MaxCols)        records operations in order
//	b.RMSNorm(xn, x, w, eps); b.MatVec(q, wq, xn)  ...
//	p, err := b.Build()                            pipelines and bind groups are made here
//	p.Run(ctx, frame, in, out)                     one submit, one readback
//
// Columns. Every activation buffer holds a number of columns of the same width, column after column: value i of
// column c is element c*width+i. A run works on the first Frame.N columns; column c is the token at position
// Frame.Pos+c. Operations recorded after Tail work on the head columns only (see Tail), of which there are at most MaxCols.
//
// Bit contract. For one device and one program of at most MaxCols columns, a column's result depends on the column's input,
// its position and the cache, never on how many other columns the run has: decode (1 column) and verify (several) agree bit
// for bit.
//
// Wide programs, of more than MaxCols columns, read prompts. They may sum in another order than the narrow ones (relative
// 1e-5 per operation; spec engine.md 6.4 for whole models), and their columns can't be undone. What is recorded after Tail
// has the bits of a narrow program.
//
// State. A Recurrent remembers what its layer has read so far. Unlike a KV cache it can't be rewound by writing a
// position again: state.go says how columns are undone and how states are kept in slots.
//
// Ownership. Everything a Device returns belongs to it and dies with Device.Close; Weight, KV, Recurrent, Memory,
// Buffer, Rope and Program can be released earlier with their own Close, programs first. A Device may be used from any goroutine, one
// call at a time per Program; the GPU backend serializes all work on one goroutine of its own.
package op

import (
	"context"
	"io"

	"pooled/compute/quant"
)

// MaxCols is the most columns that a run of a narrow program may have (spec room.md 5.4: frames of up to 16 columns).
const MaxCols = 16

// MaxWide is the most columns that a run of a wide program may have; a program's number of columns is a multiple of ColStep.
const (
	MaxWide = 512
	ColStep = 16
)

// MaxTopK is the most candidates TopK can return per column (spec engine.md 5.7).
const MaxTopK = 64

// KVType says how cached keys and values are stored.
type KVType uint8

// Storage of cached keys and values. F16 rounds each value to the nearest half (ties to even).
const (
	KVF16 KVType = iota
	KVF32
)

// String returns "f16" or "f32".
func (t KVType) String() string {
	if t == KVF32 {
		return "f32"
	}
	return "f16"
}

// Info describes a device to people and to the planner.
type Info struct {
	Backend       string // "ref", "Vulkan", "Metal", "D3D12"
	Name          string // as a person would name it, for example "NVIDIA H200" or "llvmpipe"
	Software      bool   // a CPU pretending to be a GPU
	Wide          bool   // wide programs are faster here than narrow ones
	MaxBuffer     int64  // bytes of the largest buffer that can be made
	MaxBinding    int64  // bytes of the largest storage binding; a KV cache of one layer must fit in it
	DefaultLimits bool   // true when the device was opened with WebGPU's default limits on purpose
}

// WeightSpec names a stored tensor of Rows rows of Cols contiguous values each (Cols is GGUF's ne0). A vector has
// Rows 1. Src yields exactly quant.Bytes(Type, Cols, Rows) bytes in file order.
type WeightSpec struct {
	Name string
	Type quant.Type
	Rows int
	Cols int
	Src  io.Reader
}

// Weight is a read-only tensor on a device.
type Weight interface {
	Spec() WeightSpec // Src is nil
	Bytes() int64     // device memory it takes
	Close()
}

// Buffer is Cols columns of Width float32 values on a device.
type Buffer interface {
	Width() int
	Cols() int
	Close()
}

// KV is the cache of one attention layer: Capacity rows of keys and of values, Width values per row.
type KV interface {
	Capacity() int
	Width() int
	Bytes() int64
	Close()
}

// Rope is a table of cosines and sines for NRot/2 pairs at every position below its capacity, computed in float64:
// angle(pos, i) = pos * Theta^(-2i/NRot) (spec engine.md 3.2).
type Rope interface {
	NRot() int
	Close()
}

// Device makes memory and programs.
type Device interface {
	Info() Info
	// Load copies a weight to the device, converting its layout where the backend needs that, never its values.
	Load(ctx context.Context, w WeightSpec) (Weight, error)
	// Buffer makes cols columns of width values; cols is a multiple of ColStep, MaxCols to MaxWide. A program uses as many of
	// them as it needs.
	Buffer(name string, width, cols int) (Buffer, error)
	KV(name string, capacity, width int, t KVType) (KV, error)
	Rope(nRot int, theta float64, capacity int) (Rope, error)
	// Recurrent makes a zeroed state.
	Recurrent(name string, r RecurrentSpec) (Recurrent, error)
	// Memory groups what a shard remembers, so that it is undone, saved and restored together.
	Memory(kv []KV, rec []Recurrent) (Memory, error)
	// Program records a program whose runs have up to cols columns, a multiple of ColStep from MaxCols to MaxWide.
	Program(name string, cols int) Builder
	// WeightBytes is what Load would take for a weight of that format and size, 0 for a format without a kernel.
	WeightBytes(t quant.Type, rows, cols int) int64
	// ProgramBytes is what a program would take for itself.
	ProgramBytes(s Sketch) int64
	// Used is the number of bytes of device memory held now.
	Used() int64
	Close() error
}

// Builder records operations. A wrong argument (widths that don't match, a type without a kernel) is kept and
// returned by Build.
type Builder interface {
	// Embed sets out's columns to the rows of table named by Frame.Tokens.
	Embed(out Buffer, table Weight)
	// Input sets out's columns to the values given to Run (N x width). A program may have one Embed and one Input.
	Input(out Buffer)
	// RMSNorm: out = x / sqrt(mean(x^2) + eps) * w, per column.
	RMSNorm(out, x Buffer, w Weight, eps float32)
	// MatVec: out = w x, per column. w has Rows = out.Width() and Cols = x.Width().
	MatVec(out Buffer, w Weight, x Buffer)
	// MatVecRows: out = the first rows of w x, as many as out has values, per column. Not of a wide program.
	MatVecRows(out Buffer, w Weight, x Buffer)
	// MatVecAdd: out += w x, per column.
	MatVecAdd(out Buffer, w Weight, x Buffer)
	// NormRope works in place on x, seen as heads of x.Width()/heads values: each head is RMS-normalized with w (nil:
	// not normalized) and its first r.NRot() values are rotated for the column's position, pairs (i, i+NRot/2).
	NormRope(x Buffer, w Weight, heads int, r Rope, eps float32)
	// StoreKV writes k and v (both of cache.Width()) to row Frame.Pos+c of the cache.
	StoreKV(cache KV, k, v Buffer)
	// Attend: causal attention of q over cache rows 0..Frame.Pos+c; q has heads heads of cache.Width()/kvHeads values;
	// head h reads kv head h / (heads/kvHeads); scores are scaled by 1/sqrt(head width).
	Attend(out, q Buffer, cache KV, heads, kvHeads int)
	// SiluMul: out = gate/(1+exp(-gate)) * up, elementwise.
	SiluMul(out, gate, up Buffer)
	// Deinterleave splits x, seen as heads pairs of two halves of w values each, into all first halves and all second
	// halves: a and b are heads x w (the q | gate rows of gated attention, spec engine.md 3.4).
	Deinterleave(a, b, x Buffer, heads int)
	// SigmoidMul: x *= 1/(1+exp(-g)), elementwise.
	SigmoidMul(x, g Buffer)
	// Conv: out = silu(sum over t of w[t] * (window, x)[t]), per channel, the oldest of st's Taps-1 remembered inputs
	// first; then the window moves on. w has Rows = Channels and Cols = Taps, stored as F32 (spec engine.md 3.5 step 2).
	Conv(out, x Buffer, w Weight, st Recurrent)
	// Delta: steps 3 to 6 of spec engine.md 3.5. y is [q | k | v]: q and k keyHeads x Dim, v and out Heads x Dim; alpha
	// and beta have Heads values, as the matrices gave them; a (ssm_a) and dt (ssm_dt) are vectors of Heads. Value head h
	// uses key head h mod keyHeads. Columns are read one after the other, each moving the state on.
	Delta(out, y, alpha, beta Buffer, a, dt Weight, st Recurrent, keyHeads int)
	// NormGate: out = rms(x, w) * silu(z), per head of x.Width()/heads values; w is a vector of one head.
	NormGate(out, x, z Buffer, w Weight, heads int, eps float32)
	// Route picks the used largest logits of each column, the lower index first on a tie, in that order. sel has
	// 2*used values: the indices as the bits of a uint32, then the softmax over the chosen logits.
	Route(sel, logits Buffer, used int)
	// Experts: out += sum over k of weight_k * down_k (silu(gate_k x) * (up_k x)), in the order of sel, which Route made.
	// gate and up have experts blocks of rows for x.Width() columns, down has experts blocks of out.Width() rows.
	Experts(out, x, sel Buffer, gate, up, down Weight, experts, used int)
	// GateAdd: x += y / (1+exp(-s)), s being one value per column.
	GateAdd(x, y, s Buffer)
	// Concat: out = [a | b], per column.
	Concat(out, a, b Buffer)
	// Output makes x (all N columns) available to Run as Out.Hidden.
	Output(x Buffer)
	// Tail copies columns Frame.HeadFrom..N-1 of x to out's first columns. Every operation recorded after it works on
	// those N-HeadFrom columns and is skipped when there are none.
	Tail(out, x Buffer)
	// Logits makes x available to Run as Out.Logits and, reduced to candidates, as Out.Top. Comes last, once.
	Logits(x Buffer)
	Build() (Program, error)
}

// Frame says what one run works on.
type Frame struct {
	Pos      int     // position of column 0; rows Pos..Pos+N-1 of every cache are written
	N        int     // columns, 1 up to those of the program
	HeadFrom int     // first column that goes on past Tail; N for none
	Tokens   []int32 // N ids when the program has Embed
	Allow    []Mask  // one for each head column, or none: what its candidates are picked from
	Spec     bool    // keep what is needed to undo every column but the last (see Control.Rollback); not of a wide program
}

// Mask says which tokens may be candidates: token i may when bit i%32 of word i/32 is set. A nil Mask allows all.
type Mask []uint32

// MaskWords is the length of a Mask for a vocabulary.
func MaskWords(vocab int) int { return (vocab + 31) / 32 }

// Allows says whether a token may be a candidate.
func (m Mask) Allows(id int) bool { return m == nil || m[id/32]>>(id%32)&1 == 1 }

// Candidate is a token and its logit.
type Candidate struct {
	ID    int32
	Logit float32
}

// Out names what to read back. A nil slice (or K 0) is not read. Slices are filled in place.
type Out struct {
	Hidden []float32     // N x width of Output's buffer
	Logits []float32     // (N-HeadFrom) x vocabulary
	K      int           // candidates per head column, 1..MaxTopK
	Top    [][]Candidate // one per head column, each resliced to K, or to fewer where a Mask allows fewer; by logit descending then id ascending
}

// Program is a recorded graph.
type Program interface {
	// Run executes the program: one submit, one wait. It fails with ErrNotFinite when a hidden value or logit that is
	// read back is NaN or infinite, with ErrLost when the device is gone.
	Run(ctx context.Context, f Frame, in []float32, out *Out) error
	// Chain picks len(ids) tokens, 1 to MaxCols, each after the other: it runs the program on f, which has one head column, then next
	// once for each further token, on one column at the next position, whose token is the best candidate of the run before.
	// Both have logits, next has an Embed and no Input. It is one submit and one wait, unless that would take the device too long.
	// Errors are those of Run; ErrNotFinite is for all of them.
	Chain(ctx context.Context, f Frame, in []float32, next Program, ids []int32) error
	Close()
}
