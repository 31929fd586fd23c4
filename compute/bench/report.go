package bench

import (
	"cmp"
	"slices"
)

// Report is what was measured; its JSON form is described in docs/bench.md.
type Report struct {
	Adapter  string    `json:"adapter"`
	Backend  string    `json:"backend"`
	Software bool      `json:"software"` // a CPU pretending to be a GPU
	Model    Model     `json:"model"`
	Context  int       `json:"context"` // positions of the caches
	KV       string    `json:"kv"`
	Wide     int       `json:"wide"` // columns of a wide pass for prompts; 0: none
	Reps     int       `json:"reps"`
	Memory   Memory    `json:"memory"`
	Load     Load      `json:"load"`
	Prefill  []Prefill `json:"prefill"`
	Decode   []Decode  `json:"decode"`
	Checked  string    `json:"checked"` // what held in all runs
}

// Model is the file that was measured.
type Model struct {
	Name       string `json:"name"`
	Arch       string `json:"arch"`
	Layers     int    `json:"layers"`
	Width      int    `json:"width"`
	Vocab      int    `json:"vocab"`
	DraftBlock bool   `json:"draft_block"`
	Bytes      int64  `json:"bytes"` // of weights in the file that the engine uses
}

// Memory is device memory in bytes.
type Memory struct {
	Need int64 `json:"need"` // computed before loading
	Used int64 `json:"used"`
}

// Load is how long loading took.
type Load struct {
	Seconds     float64 `json:"seconds"` // weights and programs
	Bytes       int64   `json:"bytes"`   // read from the file
	BytesPerSec float64 `json:"bytes_per_sec"`
}

// Range is the median of several runs with the extremes.
type Range struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Prefill is the reading of a prompt from position 0.
type Prefill struct {
	Tokens     int   `json:"tokens"`
	TokPerSec  Range `json:"tok_per_sec"`
	FirstToken Range `json:"first_token_sec"` // from the prompt to the first token of the answer
	Each       Each  `json:"per_prompt"`
}

// Decode is the continuing of a text, token by token.
type Decode struct {
	Depth         int          `json:"depth"` // positions before the first token
	Tokens        int          `json:"tokens"`
	TokPerSec     Range        `json:"tok_per_sec"`
	Each          Each         `json:"per_token"`
	BytesPerToken int64        `json:"bytes_per_token"`
	WeightBytes   int64        `json:"weight_bytes"` // of BytesPerToken
	StateBytes    int64        `json:"state_bytes"`
	CacheBytes    int64        `json:"cache_bytes"`
	BytesPerSec   Range        `json:"bytes_per_sec"`
	Proposals     *Speculative `json:"speculative,omitempty"`
}

// Each is what the device did per token or prompt, if it counts: a mean over all runs that count.
type Each struct {
	Counted   bool    `json:"counted"`
	Launches  float64 `json:"launches"`
	Submits   float64 `json:"submits"`
	Readbacks float64 `json:"readbacks"`
	EncodeSec float64 `json:"encode_sec"`
	WaitSec   float64 `json:"wait_sec"`
}

// Speculative is decoding with proposals.
type Speculative struct {
	TokPerSec Range   `json:"tok_per_sec"`
	Speedup   float64 `json:"speedup"`         // of the medians, over plain decoding
	PerStep   float64 `json:"tokens_per_step"` // tokens per verify
	Draft     Tally   `json:"draft"`
	Lookup    Tally   `json:"lookup"`
	Each      Each    `json:"per_token"`
}

// Tally counts proposals in all runs that count.
type Tally struct {
	Proposed int `json:"proposed"`
	Accepted int `json:"accepted"`
}

// newRange sorts values, which has at least one, and reads it off. The median of an even number is the mean of two.
func newRange(values []float64) Range {
	v := slices.Clone(values)
	slices.SortFunc(v, cmp.Compare)
	n := len(v)
	return Range{Median: (v[(n-1)/2] + v[n/2]) / 2, Min: v[0], Max: v[n-1]}
}

// times is the range of values that are each multiplied.
func (r Range) times(f float64) Range { return Range{r.Median * f, r.Min * f, r.Max * f} }
