package compute

import (
	"math"
	"math/rand/v2"

	"pooled/compute/op"
)

// Sampling says how a token is picked (spec room.md 5.9). The zero value is greedy.
type Sampling struct {
	Temp float64 // 0: the best candidate
	TopK int     // candidates drawn from, 1 to op.MaxTopK; not used when greedy
	TopP float64 // of these, the fewest best whose share of all weights reaches it; 1 and what can't be a share: all of them
}

const (
	defaultTemp = 0.8
	defaultTopK = 40
)

// presets are the samplings that people choose by name.
var presets = map[string]Sampling{
	"creative": {Temp: 0.8, TopK: 40},
	"focused":  {Temp: 0.4, TopK: 20},
	"exact":    {},
}

// Preset returns the sampling called name: "creative", "focused" or "exact".
func Preset(name string) (Sampling, bool) {
	s, ok := presets[name]
	return s, ok
}

// NewSampling makes a sampling of numbers from outside; nil is a number that was not given. A temperature that was not
// given is 0.8, one that is not above 0 is greedy. The top-k is rounded, is 40 when it is 0, NaN or not given, and kept
// within 1 to op.MaxTopK.
func NewSampling(temp, topK *float64) Sampling {
	t, k := defaultTemp, float64(defaultTopK)
	if temp != nil {
		t = *temp
	}
	if !(t > 0) {
		return Sampling{}
	}
	if topK != nil {
		if v := math.Floor(*topK + 0.5); v != 0 && v == v {
			k = v
		}
	}
	return Sampling{Temp: t, TopK: int(max(1, min(k, op.MaxTopK)))}
}

// Or is what an ask that names these numbers gets in a room: the room's own sampling when it names neither, else
// NewSampling's (spec room.md 6.8).
func (s Sampling) Or(temp, topK *float64) Sampling {
	if temp == nil && topK == nil {
		return s
	}
	return NewSampling(temp, topK)
}

// K is the number of candidates that the sampling looks at.
func (s Sampling) K() int {
	if !(s.Temp > 0) {
		return 1
	}
	return max(1, min(s.TopK, op.MaxTopK))
}

// Pick picks one of the candidates c, which are ordered by logit descending, then id ascending, with r drawn uniformly
// from [0, 1). A temp not above 0 picks the first. Otherwise the first topK candidates weigh exp((logit-max)/temp), and
// the one at which their running sum reaches r times the whole is picked. Without candidates the result is -1.
func Pick(c []op.Candidate, temp float64, topK int, r float64) int32 {
	return Sampling{Temp: temp, TopK: topK}.Pick(c, r)
}

// Pick is the function Pick with this sampling. TopP cuts the candidates after TopK has, by their weights at this temperature;
// the best one always stays.
func (s Sampling) Pick(c []op.Candidate, r float64) int32 {
	if len(c) == 0 {
		return -1
	}
	if !(s.Temp > 0) {
		return c[0].ID
	}
	c = c[:max(1, min(s.TopK, len(c)))]
	weight := func(i int) float64 { return math.Exp((float64(c[i].Logit) - float64(c[0].Logit)) / s.Temp) }
	sum := 0.0
	for i := range c {
		sum += weight(i)
	}
	if s.TopP > 0 && s.TopP < 1 {
		part, n := weight(0), 1
		for ; n < len(c) && part < s.TopP*sum; n++ {
			part += weight(n)
		}
		c, sum = c[:n], part
	}
	rest := r * sum
	for i := range c {
		if rest -= weight(i); rest <= 0 {
			return c[i].ID
		}
	}
	return c[0].ID
}

// Sampler picks tokens with a seeded stream of random numbers: one number per token, also when greedy, so that a token's
// number depends only on the seed and on how many tokens came before it. It serves one answer and one goroutine.
type Sampler struct {
	Sampling
	random *rand.Rand
}

// NewSampler starts a stream.
func NewSampler(s Sampling, seed uint64) *Sampler {
	return &Sampler{s, rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
}

// Next picks a token from at least K candidates ordered as Pick wants them.
func (s *Sampler) Next(c []op.Candidate) int32 {
	return s.Pick(c, s.random.Float64())
}
