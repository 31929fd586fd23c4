package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"pooled/compute"
	"pooled/compute/op"
)

var (
	// ErrOptions: options that make no sense, or not for this model.
	ErrOptions = errors.New("impossible measurement")
	// ErrDiffer: two runs of the same prompt picked different tokens.
	ErrDiffer = errors.New("runs differ")
)

// Spec says which proposals are measured beside plain decoding.
type Spec string

// The kinds of proposals.
const (
	SpecOff    Spec = "off"
	SpecLookup Spec = "lookup" // what followed an earlier copy of the last tokens
	SpecDraft  Spec = "draft"  // the model's draft block
	SpecAll    Spec = "all"    // both, as rooms do; without a draft block only the lookup
)

// Options say what is measured.
type Options struct {
	Prompts []int         // lengths of prompts to read
	Gen     int           // tokens to decode; 0: decoding is not measured
	Depths  []int         // positions that come before the decoded tokens
	Reps    int           // runs that count, after one that does not
	Warm    time.Duration // the runs that don't count go on for so long: clocks of GPUs rise slowly
	Ctx     int           // positions of the caches; 0: as many as are needed
	KV      op.KVType
	Spec    Spec
	Chunk   int     // prompt tokens per call of the engine; 0: all in one
	Most    int64   // device memory that there is, in bytes; 0: nobody knows
	Text    []int32 // what is continued, behind the positions of Depths; nil: tokens at random
	Note    func(phase string)
	Loaded  func(done, total int64) // progress of loading, from any goroutine
}

const (
	seed     = 1    // of prompts
	spare    = 32   // positions behind the decoded tokens, for proposals and the margin of Generate
	ctxStep  = 256  // contexts are multiples of it
	maxReps  = 1000 // far more than anybody waits for
	textLen  = 32   // random tokens to continue when there is no text
	tags     = 64   // ids at the end of a vocabulary that prompts leave out: most have a meaning there
	maxWants = 64   // entries of a list
)

// most is the number of positions that the longest run needs.
func (o *Options) most() int {
	n := 0
	for _, p := range o.Prompts {
		n = max(n, p+1)
	}
	if o.Gen > 0 {
		n = max(n, slices.Max(o.Depths)+o.textLen()+o.Gen)
	}
	return n + spare
}

func (o *Options) textLen() int {
	if o.Text != nil {
		return len(o.Text)
	}
	return textLen
}

// check completes the options for a model or says what is wrong with them.
func (o *Options) check(m *compute.Model) error {
	if len(o.Depths) == 0 {
		o.Depths = []int{0}
	}
	if o.Spec == "" {
		o.Spec = SpecAll
	}
	bad := func(n int) bool { return n < 1 || n > 1<<24 }
	switch {
	case o.Reps < 1 || o.Reps > maxReps:
		return fmt.Errorf("%w: %d runs, 1 to %d are possible", ErrOptions, o.Reps, maxReps)
	case len(o.Prompts) > maxWants || len(o.Depths) > maxWants:
		return fmt.Errorf("%w: %d prompts and %d depths, at most %d each", ErrOptions, len(o.Prompts), len(o.Depths), maxWants)
	case slices.ContainsFunc(o.Prompts, bad):
		return fmt.Errorf("%w: prompts of %v tokens, each must have at least 1", ErrOptions, o.Prompts)
	case slices.ContainsFunc(o.Depths, func(n int) bool { return bad(n + 1) }):
		return fmt.Errorf("%w: decoding behind %v positions", ErrOptions, o.Depths)
	case o.Gen < 0 || o.Gen > 0 && bad(o.Gen):
		return fmt.Errorf("%w: %d tokens to decode", ErrOptions, o.Gen)
	case len(o.Prompts) == 0 && o.Gen == 0:
		return fmt.Errorf("%w: no prompt to read and nothing to decode", ErrOptions)
	case o.Spec == SpecDraft && !m.Drafts():
		return fmt.Errorf("%w: the model has no draft block", ErrOptions)
	case o.Chunk < 0:
		return fmt.Errorf("%w: %d prompt tokens a call", ErrOptions, o.Chunk)
	}
	return o.checkCtx(m)
}

func (o *Options) checkCtx(m *compute.Model) error {
	need := o.most()
	if need > m.CtxMax {
		return fmt.Errorf("%w: %d positions are needed (%d of them to spare), the model has %d", ErrOptions, need, spare, m.CtxMax)
	}
	if o.Ctx == 0 {
		o.Ctx = min((need+ctxStep-1)/ctxStep*ctxStep, m.CtxMax)
	}
	if o.Ctx < need || o.Ctx > m.CtxMax {
		return fmt.Errorf("%w: a context of %d positions, %d are needed (%d of them to spare) and the model has %d",
			ErrOptions, o.Ctx, need, spare, m.CtxMax)
	}
	return nil
}

// tokens are n token ids, the same every time, then the text.
func (o *Options) tokens(m *compute.Model, n int, text bool) []int32 {
	r := rand.New(rand.NewPCG(seed, 0))
	ids := make([]int32, 0, n+o.textLen())
	draw := func(n int) {
		for range n {
			ids = append(ids, r.Int32N(int32(max(1, m.Vocab-tags))))
		}
	}
	draw(n)
	switch {
	case text && o.Text != nil:
		ids = append(ids, o.Text...)
	case text:
		draw(textLen)
	}
	return ids
}
