package compute_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"pooled/compute"
	"pooled/compute/op"
	"pooled/compute/token"
)

// miniPath is the model that the program embeds.
var miniPath = filepath.Join("..", "catalog", "mini", "pooled-mini.gguf")

func mini(t testing.TB) *compute.Model {
	t.Helper()
	m, err := openModel(t, miniPath)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// answer asks a question, greedily or not, and returns the text up to a stop token.
func answer(t testing.TB, dev op.Device, m *compute.Model, s *compute.Sampler, question string) string {
	t.Helper()
	tok, err := m.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := m.Profile()
	if err != nil {
		t.Fatal(err)
	}
	ask := profile.Render(token.Chat{Turns: []token.Turn{{Role: "user", Text: question}}})
	tokens, err := tok.Segments(nil, ask)
	if err != nil {
		t.Fatal(err)
	}
	const most = 60
	shard := whole(t, dev, m, len(tokens)+most)
	defer shard.Close()
	ctx, pos := context.Background(), 0
	for ; len(tokens)-pos > op.MaxCols; pos += op.MaxCols {
		if _, err := shard.Embed(ctx, pos, tokens[pos:pos+op.MaxCols]); err != nil {
			t.Fatal(err)
		}
	}
	next := tokens[pos:]
	var picked []int32
	for len(picked) < most {
		top, err := shard.EmbedTop(ctx, pos, next, s.K())
		if err != nil {
			t.Fatal(err)
		}
		pos += len(next)
		id := s.Next(top)
		if tok.IsStop(id) {
			break
		}
		picked = append(picked, id)
		next = picked[len(picked)-1:]
	}
	return tok.Decode(picked)
}

const (
	planet       = "Name the largest planet in our solar system. One sentence."
	planetAnswer = "Jupiter"
)

func TestMiniAnswers(t *testing.T) {
	m := mini(t)
	if m.Layers != 12 || m.Width != 192 || m.Vocab != 2048 || !m.Tied() {
		t.Errorf("got %+v", m)
	}
	onAll(t, func(t *testing.T, dev op.Device) {
		for name, s := range map[string]*compute.Sampler{
			"greedy":  compute.NewSampler(compute.Sampling{}, 1),
			"focused": compute.NewSampler(compute.Sampling{Temp: 0.4, TopK: 20}, 1),
		} {
			text := answer(t, dev, m, s, planet)
			t.Logf("%s: %q", name, text)
			if !strings.Contains(text, planetAnswer) {
				t.Errorf("%s: got %q, want %s in it", name, text, planetAnswer)
			}
		}
	})
}

// BenchmarkMini is a decoded token, and a token of a 16-column prefill, of the embedded model.
func BenchmarkMini(b *testing.B) {
	m, ctx := mini(b), context.Background()
	tokens := ids(m, op.MaxCols)
	for _, k := range kinds {
		for _, c := range []struct {
			name    string
			columns int
		}{{"decode", 1}, {"prefill", op.MaxCols}} {
			b.Run(k.name+" "+c.name, func(b *testing.B) {
				s := whole(b, k.device(b), m, 256)
				for i := 0; b.Loop(); i++ {
					if _, err := s.EmbedTop(ctx, i*c.columns%(256-c.columns), tokens[:c.columns], 1); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N*c.columns)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}
