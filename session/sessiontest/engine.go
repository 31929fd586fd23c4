package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"pooled/compute/op"
	"pooled/compute/token"
	"pooled/session"
)

// Shape of the made-up model.
const (
	Key    = "toy"
	Layers = 12
	Width  = 8

	LayerBytes = 100 << 20
	HostBytes  = 50 << 20
	KVBytes    = 1024
	CtxDefault = 512
	CtxMax     = 2048

	modulus = 1009
)

// Ids of the special tokens; 0 to 255 are the bytes.
const (
	Start int32 = 256 + iota
	End
	Think
	ThinkEnd
	vocabulary
)

// Engine is a session.Engine that computes the made-up model.
type Engine struct {
	mu     sync.Mutex
	before func(ctx context.Context, call string) error
	script []int32
	said   bool // the script is used instead of the computed head
	spec   session.LoadSpec
	loaded bool
	cache  [][][Width]int // layer, position
	loads  int
}

var _ session.Engine = (*Engine)(nil)

// Hook sets a function that runs before every call ("model", "load", "embed", "embedtop", "hidden", "top"); it can wait,
// on ctx too, or make the call fail. nil ends that.
func (e *Engine) Hook(before func(ctx context.Context, call string) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.before = before
}

// Say makes the head say these tokens and then end every turn; nil lets it compute again.
func (e *Engine) Say(script []int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.script, e.said = script, script != nil
}

// Loads returns how often layers were loaded.
func (e *Engine) Loads() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.loads
}

// Holds returns what is loaded.
func (e *Engine) Holds() (session.LoadSpec, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.spec, e.loaded
}

func (e *Engine) hook(ctx context.Context, call string) error {
	e.mu.Lock()
	before := e.before
	e.mu.Unlock()
	if before != nil {
		return before(ctx, call)
	}
	return ctx.Err()
}

// Info describes a device that doesn't exist.
func (e *Engine) Info() op.Info {
	return op.Info{Backend: "fake", Name: "Fake GPU", MaxBuffer: 1 << 30, MaxBinding: 128 << 20}
}

// Model knows Key only.
func (e *Engine) Model(ctx context.Context, key string) (session.ModelInfo, error) {
	if err := e.hook(ctx, "model"); err != nil {
		return session.ModelInfo{}, err
	}
	if key != Key {
		return session.ModelInfo{}, fmt.Errorf("no model %q", key)
	}
	return session.ModelInfo{Key: Key, Label: "Toy 1M \u00b7 F32", Layers: Layers, Width: Width, LayerBytes: LayerBytes,
		KVBytes: KVBytes, HostBytes: HostBytes, CtxDefault: CtxDefault, CtxMax: CtxMax}, nil
}

// Load makes empty caches.
func (e *Engine) Load(ctx context.Context, s session.LoadSpec, progress func(int)) error {
	progress(0)
	if err := e.hook(ctx, "load"); err != nil {
		return err
	}
	progress(50)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spec, e.loaded, e.cache = s, true, make([][][Width]int, Layers)
	for i := s.Lo; i < s.Hi; i++ {
		e.cache[i] = make([][Width]int, s.Ctx)
	}
	e.loads++
	progress(100)
	return nil
}

// Text returns a tokenizer with a token per byte.
func (e *Engine) Text() (*token.Tokenizer, token.Profile, error) {
	t, err := Tokenizer()
	return t, token.Profile{Known: true}, err
}

// Tokenizer returns the model's tokenizer: a token per byte and the chat tags.
func Tokenizer() (*token.Tokenizer, error) {
	v := token.Vocab{Pre: "qwen2", EOS: End, Pad: -1, BOS: -1}
	next := rune(256)
	for b := range rune(256) {
		r := b
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			r = next
			next++
		}
		v.Tokens, v.Types = append(v.Tokens, string(r)), append(v.Types, 1)
	}
	v.Tokens = append(v.Tokens, "<|im_start|>", "<|im_end|>", "<think>", "</think>")
	v.Types = append(v.Types, 3, 3, 4, 4)
	return token.New(v)
}

var errNothingLoaded = errors.New("nothing is loaded")

// Embed runs tokens from their ids through the layers held.
func (e *Engine) Embed(ctx context.Context, pos int, tokens []int32) ([]float32, error) {
	if err := e.hook(ctx, "embed"); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.embed(pos, tokens)
}

func (e *Engine) embed(pos int, tokens []int32) ([]float32, error) {
	if !e.loaded || !e.spec.Head || e.spec.Lo != 0 {
		return nil, errNothingLoaded
	}
	in := make([]float32, 0, len(tokens)*Width)
	for _, id := range tokens {
		if id < 0 || id >= vocabulary {
			return nil, fmt.Errorf("token %d is not in the vocabulary", id)
		}
		for j := range Width {
			in = append(in, float32((int(id)*(31+j)+17*j)%modulus))
		}
	}
	return e.layers(pos, len(tokens), in)
}

// EmbedTop is Embed and the head on the last column.
func (e *Engine) EmbedTop(ctx context.Context, pos int, tokens []int32, k int) ([]op.Candidate, error) {
	if err := e.hook(ctx, "embedtop"); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.spec.Hi != Layers {
		return nil, fmt.Errorf("the head needs all %d layers, %d are here", Layers, e.spec.Hi)
	}
	h, err := e.embed(pos, tokens)
	if err != nil {
		return nil, err
	}
	return e.head(h[len(h)-Width:], k), nil
}

// Hidden runs columns through the layers held.
func (e *Engine) Hidden(ctx context.Context, pos, n int, in []float32) ([]float32, error) {
	if err := e.hook(ctx, "hidden"); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.loaded || len(in) != n*Width {
		return nil, errNothingLoaded
	}
	return e.layers(pos, n, in)
}

// layers: every layer keeps its inputs by position and mixes all of them up to the present one into its output.
func (e *Engine) layers(pos, n int, in []float32) ([]float32, error) {
	if n < 1 || n > op.MaxWide || pos < 0 || pos+n > e.spec.Ctx {
		return nil, fmt.Errorf("columns %d to %d, a context of %d and %d at once at most", pos, pos+n-1, e.spec.Ctx, op.MaxWide)
	}
	out := make([]float32, len(in))
	for c := range n {
		var h [Width]int
		for j := range h {
			h[j] = int(in[c*Width+j])
		}
		for i := e.spec.Lo; i < e.spec.Hi; i++ {
			e.cache[i][pos+c] = h
			var sum [Width]int
			for q := range pos + c + 1 {
				for j := range sum {
					sum[j] += (q + 1) * e.cache[i][q][j]
				}
			}
			last := h
			for j := range h {
				h[j] = (3*last[(j+1)%Width] + sum[j] + 7*i + j) % modulus
			}
		}
		for j := range h {
			out[c*Width+j] = float32(h[j])
		}
	}
	return out, nil
}

// Top runs the head on one hidden state.
func (e *Engine) Top(ctx context.Context, hidden []float32, k int) ([]op.Candidate, error) {
	if err := e.hook(ctx, "top"); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.loaded || !e.spec.Head || len(hidden) != Width {
		return nil, errNothingLoaded
	}
	return e.head(hidden, k), nil
}

// head prefers a printable character that depends on every value, the turn's end now and then.
func (e *Engine) head(hidden []float32, k int) []op.Candidate {
	sum := 0
	for j, v := range hidden {
		sum += (2*j + 3) * int(v)
	}
	first := int32(' ' + sum%95)
	switch {
	case e.said && len(e.script) > 0:
		first, e.script = e.script[0], e.script[1:]
	case e.said || sum%37 == 0:
		first = End
	}
	top := []op.Candidate{{ID: first, Logit: 10}}
	for i := int32(1); len(top) < k; i++ {
		top = append(top, op.Candidate{ID: ' ' + (first+i)%95, Logit: 10 - float32(i)})
	}
	return top
}

// Used counts the bytes of the layers held.
func (e *Engine) Used() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.loaded {
		return 0
	}
	return int64(e.spec.Hi-e.spec.Lo) * (LayerBytes + int64(e.spec.Ctx)*KVBytes)
}

// Free forgets the layers.
func (e *Engine) Free() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.loaded, e.cache, e.spec = false, nil, session.LoadSpec{}
}

// Close frees.
func (e *Engine) Close() error {
	e.Free()
	return nil
}
