package compute_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"pooled/compute"
	"pooled/compute/op"
	"pooled/compute/ref"
)

// number is a JSON number, "Infinity", "-Infinity", "NaN", any other text (not a number) or null (not given).
type number struct{ v *float64 }

func (n *number) UnmarshalJSON(b []byte) error {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	x := math.NaN()
	switch v := v.(type) {
	case nil:
		n.v = nil
		return nil
	case float64:
		x = v
	case string:
		switch v {
		case "Infinity":
			x = math.Inf(1)
		case "-Infinity":
			x = math.Inf(-1)
		}
	default:
		return fmt.Errorf("%s is no number", b)
	}
	n.v = &x
	return nil
}

func floats(list []number) []float32 {
	out := make([]float32, len(list))
	for i, n := range list {
		out[i] = float32(math.NaN())
		if n.v != nil {
			out[i] = float32(*n.v)
		}
	}
	return out
}

// picked is a sampling as the vectors write it.
type picked struct {
	Kind string
	Temp float64
	TopK int
}

func (p picked) sampling() compute.Sampling { return compute.Sampling{Temp: p.Temp, TopK: p.TopK} }

type samplingVectors struct {
	Draw struct {
		Cases []struct {
			In struct {
				Logits []number
				Temp   float64
				TopK   int
				R      float64
			}
			Out int32
		}
	}
	Greedy struct {
		Cases []struct {
			In  []number
			Out int32
		}
	}
	Normalize struct {
		Cases []struct {
			In  struct{ Temp, TopK number }
			Out picked
		}
	}
	APISampler struct {
		Cases []struct {
			In struct {
				Temperature, TopK number
				RoomPreset        string
			}
			Out json.RawMessage
		}
	} `json:"api_sampler"`
}

func readSampling(t *testing.T) (v samplingVectors) {
	t.Helper()
	vectors(t, "sampling.json", &v)
	return v
}

// vectors reads a file of testdata/vectors, or of the folder that POOLED_VECTORS names; a file that is not there is
// skipped then.
func vectors(t *testing.T, name string, to any) {
	t.Helper()
	dir := os.Getenv("POOLED_VECTORS")
	if dir == "" {
		dir = filepath.Join("testdata", "vectors")
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("POOLED_VECTORS") != "" {
		t.Skipf("no %s in %s", name, dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, to); err != nil {
		t.Fatal(err)
	}
}

// candidates are the k best of logits, as a device returns them.
func candidates(logits []float32, k int) []op.Candidate {
	c := make([]op.Candidate, min(k, len(logits)))
	ref.TopK(c, logits)
	return c
}

func TestVectorsSamplingDraw(t *testing.T) {
	v := readSampling(t)
	for i, c := range v.Draw.Cases {
		s := compute.Sampling{Temp: c.In.Temp, TopK: c.In.TopK}
		got := compute.Pick(candidates(floats(c.In.Logits), s.K()), s.Temp, s.TopK, c.In.R)
		if got != c.Out {
			t.Errorf("draw %d (temp %g, top-k %d, r %g): got %d, want %d", i, c.In.Temp, c.In.TopK, c.In.R, got, c.Out)
		}
	}
	t.Logf("%d draws", len(v.Draw.Cases))
}

func TestVectorsSamplingGreedy(t *testing.T) {
	v := readSampling(t)
	for i, c := range v.Greedy.Cases {
		if got := compute.Pick(candidates(floats(c.In), 1), 0, 0, 0.5); got != c.Out {
			t.Errorf("greedy %d: got %d, want %d", i, got, c.Out)
		}
	}
}

func TestVectorsSamplingPresets(t *testing.T) {
	v := readSampling(t)
	for i, c := range v.Normalize.Cases {
		if got := compute.NewSampling(c.In.Temp.v, c.In.TopK.v); got != c.Out.sampling() {
			t.Errorf("normalize %d: got %+v, want %+v", i, got, c.Out)
		}
	}
	for i, c := range v.APISampler.Cases {
		preset, ok := compute.Preset(c.In.RoomPreset)
		if !ok {
			t.Errorf("ask %d: no preset %q", i, c.In.RoomPreset)
		}
		for _, room := range []compute.Sampling{preset, {Temp: 0.123, TopK: 7}} {
			want := room
			if string(c.Out) != `"room preset"` {
				var p picked
				if err := json.Unmarshal(c.Out, &p); err != nil {
					t.Fatal(err)
				}
				want = p.sampling()
			}
			if got := room.Or(c.In.Temperature.v, c.In.TopK.v); got != want {
				t.Errorf("ask %d in a room with %+v: got %+v, want %+v", i, room, got, want)
			}
		}
	}
}

func TestPresets(t *testing.T) {
	for name, want := range map[string]compute.Sampling{"creative": {Temp: 0.8, TopK: 40}, "focused": {Temp: 0.4, TopK: 20}, "exact": {}} {
		if got, ok := compute.Preset(name); !ok || got != want {
			t.Errorf("%s: got %+v, %v", name, got, ok)
		}
	}
	if _, ok := compute.Preset("wild"); ok {
		t.Error("a preset that doesn't exist")
	}
	for _, c := range []struct {
		s    compute.Sampling
		want int
	}{{compute.Sampling{}, 1}, {compute.Sampling{Temp: 1, TopK: 12}, 12}, {compute.Sampling{Temp: 1}, 1}, {compute.Sampling{Temp: 1, TopK: 999}, 64}, {compute.Sampling{Temp: math.NaN(), TopK: 9}, 1}} {
		if got := c.s.K(); got != c.want {
			t.Errorf("%+v looks at %d candidates, want %d", c.s, got, c.want)
		}
	}
}

func TestPickEdges(t *testing.T) {
	c := []op.Candidate{{ID: 9, Logit: 2}, {ID: 4, Logit: 1}}
	for _, e := range []struct {
		name string
		got  int32
		want int32
	}{
		{"no candidates", compute.Pick(nil, 1, 40, 0.5), -1},
		{"not a number is greedy", compute.Pick(c, math.NaN(), 40, 0.99), 9},
		{"more than there are", compute.Pick(c, 100, 40, 0.99), 4},
		{"none is one", compute.Pick(c, 100, 0, 0.99), 9},
		{"exactly at the border", compute.Pick([]op.Candidate{{ID: 3}, {ID: 5}}, 1, 2, 0.5), 3},
		{"rounding past the end takes the best", compute.Pick(c, 1, 2, 1.5), 9},
	} {
		if e.got != e.want {
			t.Errorf("%s: got %d, want %d", e.name, e.got, e.want)
		}
	}
}

// The n-th token is drawn with the n-th number of the seed's stream, whatever the sampling was for the tokens before.
func TestSamplerDrawsOncePerToken(t *testing.T) {
	c := make([]op.Candidate, 40)
	for i := range c {
		c[i] = op.Candidate{ID: int32(i), Logit: -float32(i) / 20}
	}
	stream := rand.New(rand.NewPCG(42, 0x9e3779b97f4a7c15))
	s := compute.NewSampler(compute.Sampling{Temp: 0.8, TopK: 40}, 42)
	other := compute.NewSampler(compute.Sampling{}, 42)
	seen := map[int32]bool{}
	for i := range 200 {
		want := compute.Pick(c, 0.8, 40, stream.Float64())
		if got := s.Next(c); got != want {
			t.Fatalf("token %d: got %d, want %d", i, got, want)
		}
		other.Sampling = compute.Sampling{}
		if i%3 == 0 {
			other.Sampling = s.Sampling
			if got := other.Next(c); got != want {
				t.Fatalf("token %d after greedy ones: got %d, want %d", i, got, want)
			}
		} else if got := other.Next(c[:1]); got != 0 {
			t.Fatalf("greedy token %d: got %d", i, got)
		}
		seen[want] = true
	}
	if len(seen) < 10 {
		t.Errorf("200 draws of 40 candidates gave only %d different tokens", len(seen))
	}
}

// TopP leaves the fewest of the best whose weights reach the share, and draws from them as if there were no others.
func TestTopP(t *testing.T) {
	c := make([]op.Candidate, 4)
	for i, p := range []float64{0.5, 0.25, 0.125, 0.125} {
		c[i] = op.Candidate{ID: int32(i), Logit: float32(math.Log(p))}
	}
	for _, e := range []struct {
		topP float64
		topK int
		left int // candidates that are drawn from
	}{
		{0, 4, 4}, {1, 4, 4}, {2, 4, 4}, {-1, 4, 4}, {math.NaN(), 4, 4}, {1e-9, 4, 1}, {0.49, 4, 1}, {0.51, 4, 2}, {0.74, 4, 2}, {0.8, 4, 3}, {0.99, 4, 4},
		{0.6, 2, 1}, {0.7, 2, 2}, // shares of the two that TopK leaves: two thirds and one
	} {
		s, total := compute.Sampling{Temp: 1, TopK: e.topK, TopP: e.topP}, 0.0
		for i := range e.left {
			total += math.Exp(float64(c[i].Logit))
		}
		part := 0.0
		for i := range e.left { // just inside of each candidate's part of the line
			low := part / total
			part += math.Exp(float64(c[i].Logit))
			for _, r := range []float64{low + 1e-6, part/total - 1e-6} {
				if got := s.Pick(c, r); got != int32(i) {
					t.Errorf("top-p %g of %d at %.3f: got %d, want %d", e.topP, e.topK, r, got, i)
				}
			}
		}
	}
	if got := (compute.Sampling{TopP: 0.5}).Pick(c, 0.99); got != 0 {
		t.Errorf("greedy with a top-p picks %d", got)
	}
}
