package golden

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pooled/compute"
	"pooled/compute/gguf"
	"pooled/compute/op"
)

const modelName = "tiny-qwen3-q8"

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", "models", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t *testing.T, b []byte) *Result {
	t.Helper()
	r := &Result{}
	if err := json.Unmarshal(b, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func openTiny(t *testing.T) *compute.Model {
	t.Helper()
	b := read(t, modelName+".gguf")
	m, err := compute.OpenModel(gguf.Part{Name: modelName, R: bytes.NewReader(b), Size: int64(len(b))})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Reading a golden file and writing it again gives the same bytes.
func TestJSONForm(t *testing.T) {
	b := bytes.TrimSpace(read(t, modelName+".golden.json"))
	r := parse(t, b)
	if len(r.Prompt) != 30 || len(r.Logits) != 30 || len(r.Logits[7].Top) != 8 || len(r.Greedy) != 24 {
		t.Fatalf("%d prompt tokens, %d positions, %d greedy tokens", len(r.Prompt), len(r.Logits), len(r.Greedy))
	}
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, b) {
		t.Errorf("got\n%.300s\nwant\n%.300s", got, b)
	}
	r.Logits[0].LSE = Logit(math.NaN())
	if _, err := json.Marshal(r); err == nil {
		t.Error("NaN was written")
	}
	for _, bad := range []string{`{"greedy":[[1]]}`, `{"greedy":[[1.5,2]]}`, `{"greedy":[["a",2]]}`, `{"greedy":[[99999999999,2]]}`, `{"logits":[{"top":[[1,2,3]]}]}`} {
		if err := json.Unmarshal([]byte(bad), &Result{}); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

// What Eval returns is in the form of the golden file, without following it and in any prompt width.
func TestEval(t *testing.T) {
	m, want := openTiny(t), parse(t, read(t, modelName+".golden.json"))
	dev := compute.OpenRef()
	got, err := Eval(context.Background(), dev, m, want.Prompt, 24, op.KVF32)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compare(got, want, F32); err != nil {
		t.Error(err)
	}
	first, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	one, err := EvalWith(context.Background(), dev, m, Options{Prompt: want.Prompt, Greedy: 24, KV: op.KVF32, Columns: 1})
	if err != nil {
		t.Fatal(err)
	}
	if second, err := json.Marshal(one); err != nil || !bytes.Equal(first, second) {
		t.Errorf("one token at a time differs (%v)", err)
	}
	if dev.Used() != 0 {
		t.Errorf("%d bytes in use after Eval", dev.Used())
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}

func TestEvalRefuses(t *testing.T) {
	m, dev := openTiny(t), compute.OpenRef()
	defer dev.Close()
	for name, o := range map[string]Options{
		"no prompt":        {},
		"negative count":   {Prompt: []int32{1}, Greedy: -1},
		"past the context": {Prompt: []int32{1}, Greedy: 4096},
		"huge count":       {Prompt: []int32{1}, Greedy: math.MaxInt},
		"unknown token":    {Prompt: []int32{1024}},
		"negative token":   {Prompt: []int32{-1}},
	} {
		if r, err := EvalWith(context.Background(), dev, m, o); err == nil || r != nil {
			t.Errorf("%s: got %v, %v", name, r, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Eval(ctx, dev, m, []int32{1}, 1, op.KVF16); err == nil {
		t.Error("a cancelled evaluation gave no error")
	}
}

// Follow feeds the given tokens whatever was picked.
func TestFollow(t *testing.T) {
	var fed []int32
	logits := func(pos int, tokens []int32) ([]float32, error) {
		fed = append(fed, tokens...)
		out := make([]float32, 4*len(tokens))
		out[len(out)-1] = 1 // always token 3
		return out, nil
	}
	r, err := Options{Prompt: []int32{0, 1}, Greedy: 4, Follow: []int32{2, 1}}.Run(4, logits)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{0, 1, 2, 1, 3}; !slices.Equal(fed, want) {
		t.Errorf("fed %v, want %v", fed, want)
	}
	for _, s := range r.Greedy {
		if s != (Step{3, 1}) {
			t.Errorf("picked %+v", s)
		}
	}
}

func TestCompare(t *testing.T) {
	b := read(t, modelName+".golden.json")
	for _, c := range []struct {
		name   string
		change func(got, want *Result)
		says   string // "" for equal
	}{
		{"the same", func(got, want *Result) {}, ""},
		{"lse within", func(got, want *Result) { got.Logits[3].LSE += 1.9e-3 }, ""},
		{"lse off", func(got, want *Result) { got.Logits[3].LSE += 2.1e-3 }, "position 3: lse"},
		{"lse NaN", func(got, want *Result) { got.Logits[3].LSE = Logit(math.NaN()) }, "position 3: lse"},
		{"logit off", func(got, want *Result) { got.Logits[29].Top[7].Logit -= 3e-3 }, "position 29: logit number 8"},
		{"close ones changed places", func(got, want *Result) {
			top := got.Logits[0].Top
			want.Logits[0].Top[4].Logit = top[3].Logit - 1e-3
			top[3], top[4] = Pair{top[4].ID, top[3].Logit}, Pair{top[3].ID, top[3].Logit - 1e-3}
		}, ""},
		{"distant ones changed places", func(got, want *Result) {
			top := got.Logits[0].Top
			top[0].ID, top[1].ID = top[1].ID, top[0].ID
		}, "position 0: logit of token"},
		{"a far token instead of a near one", func(got, want *Result) { got.Logits[0].Top[0].ID = 1023 }, "is not among the best"},
		{"a close token at the end", func(got, want *Result) { got.Logits[0].Top[7].ID = 1023 }, ""},
		{"another prompt", func(got, want *Result) { got.Prompt[0]++ }, "another prompt"},
		{"fewer positions", func(got, want *Result) { got.Logits = got.Logits[:29] }, "29 positions, want 30"},
		{"fewer logits", func(got, want *Result) { got.Logits[0].Top = got.Logits[0].Top[:7] }, "7 logits, want 8"},
		{"fewer greedy tokens", func(got, want *Result) { got.Greedy = got.Greedy[:23] }, "23 greedy tokens, want 24"},
		{"another token", func(got, want *Result) { got.Greedy[6].ID = 1 }, "greedy token 7 is 1, want 490"},
		{"another token at a close call", func(got, want *Result) { want.Greedy[6].Margin = 0.09; got.Greedy[6].ID = 1 }, ""},
		{"another token after one close call", func(got, want *Result) { want.Greedy[6].Margin = 0.09; got.Greedy[7].ID = 1 }, "greedy token 8"},
		{"another token after two close calls", func(got, want *Result) {
			for _, r := range []*Result{got, want} {
				r.Greedy[6].Margin, r.Greedy[7].Margin = 0.09, 0.01
			}
			got.Greedy[8].ID = 1
		}, ""},
		{"close calls apart", func(got, want *Result) {
			for _, r := range []*Result{got, want} {
				r.Greedy[4].Margin, r.Greedy[6].Margin = 0.09, 0.01
			}
			got.Greedy[8].ID = 1
		}, "greedy token 9"},
		{"another margin", func(got, want *Result) { got.Greedy[2].Margin += 0.1 }, "greedy token 3: margin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, want := parse(t, b), parse(t, b)
			c.change(got, want)
			_, err := Compare(got, want, F32)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("got %v, want no difference", err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("got %v, want %q in it", err, c.says)
			}
		})
	}
}

func TestCompareBoundsItsReport(t *testing.T) {
	b := read(t, modelName+".golden.json")
	got, want := parse(t, b), parse(t, b)
	for i := range got.Logits {
		got.Logits[i].LSE += 5
	}
	r, err := Compare(got, want, F32)
	if err == nil || strings.Count(err.Error(), "\n") != maxReports || !strings.Contains(err.Error(), "and 18 more") {
		t.Errorf("got %v", err)
	}
	if math.Abs(r.WorstLogit-5) > 1e-9 || r.Steps != 24 {
		t.Errorf("got %+v", r)
	}
}
