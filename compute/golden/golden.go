// Package golden compares a model with numbers that another engine computed from the same weights.
//
// A golden file is one JSON object (spec engine.md 9.4):
//
//	{"prompt": [ids],
//	 "logits": [{"lse": 14.463050, "top": [[id, logit], ... 8]}, ... one per prompt position],
//	 "greedy": [[id, margin], ...]}
//
// lse is the logarithm of the sum of exp(logit) over the whole vocabulary. greedy continues the prompt: each entry is
// the best token and how far its logit is above the second's. Logits have six decimals, margins five.
//
// Eval computes such an object, Compare says where two differ. Greedy tokens need care: an engine that is right within
// a tolerance may pick the other of two close tokens, and then continues another text. So Options.Follow feeds the
// golden tokens, whatever the engine picked, and Compare stops after two close calls in a row.
package golden

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"pooled/compute"
	"pooled/compute/op"
	"pooled/compute/ref"
)

// topN is the number of logits kept per position.
const topN = 8

// Result is the content of a golden file.
type Result struct {
	Prompt []int32    `json:"prompt"`
	Logits []Position `json:"logits"`
	Greedy []Step     `json:"greedy"`
}

// Position is what the model says after one prompt token.
type Position struct {
	LSE Logit  `json:"lse"`
	Top []Pair `json:"top"` // largest first, at most eight
}

// Logit is a number that is written with six decimals.
type Logit float64

// MarshalJSON writes six decimals.
func (l Logit) MarshalJSON() ([]byte, error) { return decimals(nil, float64(l), 6) }

// Pair is a token and its logit, written as [id, logit].
type Pair struct {
	ID    int32
	Logit float64
}

// MarshalJSON writes [id, logit] with six decimals.
func (p Pair) MarshalJSON() ([]byte, error) { return pair(p.ID, p.Logit, 6) }

// UnmarshalJSON reads [id, logit].
func (p *Pair) UnmarshalJSON(b []byte) (err error) { p.ID, p.Logit, err = unpair(b); return err }

// Step is a greedy token and the distance of its logit from the second's, written as [id, margin].
type Step struct {
	ID     int32
	Margin float64
}

// MarshalJSON writes [id, margin] with five decimals.
func (s Step) MarshalJSON() ([]byte, error) { return pair(s.ID, s.Margin, 5) }

// UnmarshalJSON reads [id, margin].
func (s *Step) UnmarshalJSON(b []byte) (err error) { s.ID, s.Margin, err = unpair(b); return err }

func decimals(dst []byte, v float64, n int) ([]byte, error) {
	if v-v != 0 {
		return nil, fmt.Errorf("golden: %w", op.ErrNotFinite)
	}
	return strconv.AppendFloat(dst, v, 'f', n, 64), nil
}

func pair(id int32, v float64, n int) ([]byte, error) {
	b := append(strconv.AppendInt([]byte{'['}, int64(id), 10), ',')
	b, err := decimals(b, v, n)
	return append(b, ']'), err
}

func unpair(b []byte) (int32, float64, error) {
	var list []json.Number
	if err := json.Unmarshal(b, &list); err != nil {
		return 0, 0, fmt.Errorf("golden: pair: %w", err)
	}
	if len(list) != 2 {
		return 0, 0, fmt.Errorf("golden: pair of %d values", len(list))
	}
	id, err := strconv.ParseInt(list[0].String(), 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("golden: token: %w", err)
	}
	v, err := list[1].Float64()
	if err != nil {
		return 0, 0, fmt.Errorf("golden: number: %w", err)
	}
	return int32(id), v, nil
}

// Options say what to evaluate.
type Options struct {
	Prompt  []int32
	Greedy  int // tokens after the prompt
	KV      op.KVType
	Follow  []int32 // fed instead of the engine's own greedy tokens, as far as it goes; nil: its own
	Columns int     // prompt tokens per run, 1 to op.MaxCols; 0: op.MaxCols
}

// Eval runs a whole model on a device over a prompt and continues it greedily.
func Eval(ctx context.Context, dev op.Device, m *compute.Model, prompt []int32, greedy int, kv op.KVType) (*Result, error) {
	return EvalWith(ctx, dev, m, Options{Prompt: prompt, Greedy: greedy, KV: kv})
}

// EvalWith is Eval with all options.
func EvalWith(ctx context.Context, dev op.Device, m *compute.Model, o Options) (*Result, error) {
	if err := o.check(m); err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	spec := compute.ShardSpec{Hi: m.Layers, Head: true, Ctx: len(o.Prompt) + max(0, o.Greedy-1), KV: o.KV}
	shard, err := compute.LoadShard(ctx, dev, m, spec, nil)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	defer shard.Close()
	return o.Run(m.Vocab, func(pos int, tokens []int32) ([]float32, error) { return shard.EmbedLogits(ctx, pos, tokens) })
}

func (o Options) check(m *compute.Model) error {
	switch {
	case len(o.Prompt) == 0:
		return errors.New("no prompt tokens")
	case o.Greedy < 0 || o.Greedy > m.CtxMax || len(o.Prompt) > m.CtxMax-o.Greedy:
		return fmt.Errorf("%d prompt tokens and %d more, the model's context is %d", len(o.Prompt), o.Greedy, m.CtxMax)
	}
	for _, id := range o.Prompt {
		if id < 0 || int(id) >= m.Vocab {
			return fmt.Errorf("token %d, the model has 0 to %d", id, m.Vocab-1)
		}
	}
	return nil
}

// Run evaluates with any means that gives all logits (len(tokens) x vocab) of tokens at positions pos and up.
func (o Options) Run(vocab int, logits func(pos int, tokens []int32) ([]float32, error)) (*Result, error) {
	columns := o.Columns
	if columns < 1 || columns > op.MaxCols {
		columns = op.MaxCols
	}
	r := &Result{Prompt: o.Prompt, Logits: []Position{}, Greedy: []Step{}}
	var last []float32
	for pos := 0; pos < len(o.Prompt); pos += columns {
		tokens := o.Prompt[pos:min(pos+columns, len(o.Prompt))]
		all, err := logits(pos, tokens)
		if err != nil {
			return nil, fmt.Errorf("golden: prompt position %d: %w", pos, err)
		}
		for c := range tokens {
			last = all[c*vocab : (c+1)*vocab]
			r.Logits = append(r.Logits, position(last))
		}
	}
	top := make([]op.Candidate, min(2, vocab))
	for i := range o.Greedy {
		ref.TopK(top, last)
		s := Step{ID: top[0].ID, Margin: float64(top[0].Logit) - float64(top[len(top)-1].Logit)}
		r.Greedy = append(r.Greedy, s)
		if i+1 == o.Greedy {
			break
		}
		next := s.ID
		if i < len(o.Follow) {
			next = o.Follow[i]
		}
		var err error
		if last, err = logits(len(o.Prompt)+i, []int32{next}); err != nil {
			return nil, fmt.Errorf("golden: greedy token %d: %w", i+1, err)
		}
	}
	return r, nil
}

func position(logits []float32) Position {
	top := make([]op.Candidate, min(topN, len(logits)))
	ref.TopK(top, logits)
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - float64(top[0].Logit))
	}
	p := Position{LSE: Logit(float64(top[0].Logit) + math.Log(sum))}
	for _, c := range top {
		p.Top = append(p.Top, Pair{c.ID, float64(c.Logit)})
	}
	return p
}
