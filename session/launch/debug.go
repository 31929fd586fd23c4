package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"pooled/compute"
	"pooled/compute/gguf"
	"pooled/compute/golden"
	"pooled/compute/op"
)

// DebugCommand holds the tools for comparing engines.
type DebugCommand struct {
	Eval     EvalCommand     `cmd:"" help:"Run a prompt through a model file; prints logits and greedy tokens as JSON."`
	Tokenize TokenizeCommand `cmd:"" help:"Tokenize a text with a model file's tokenizer; prints the ids as JSON."`
}

// EvalCommand runs a prompt through a model file.
type EvalCommand struct {
	Model  string  `arg:"" type:"existingfile" help:"A GGUF file."`
	Tokens []int32 `required:"" help:"The prompt's token ids." placeholder:"1,2,3"`
	Greedy int     `help:"Greedy tokens to add." default:"24" placeholder:"N"`
	Engine string  `help:"ref or gpu." default:"gpu" enum:"ref,gpu"`
	KV     string  `name:"kv" help:"f32 or f16." default:"f16" enum:"f32,f16"`
}

// Run prints one JSON object in the form of the golden files.
func (c *EvalCommand) Run(ctx context.Context, s Streams) error {
	return withModel(c.Model, func(m *compute.Model) (err error) {
		dev := compute.OpenRef()
		if c.Engine == "gpu" {
			if dev, err = compute.OpenGPU(ctx, compute.GPUOptions{}); err != nil {
				return gpuProblem(err)
			}
		}
		defer func() { err = errors.Join(err, dev.Close()) }()
		kv := op.KVF16
		if c.KV == "f32" {
			kv = op.KVF32
		}
		result, err := golden.Eval(ctx, dev, m, c.Tokens, c.Greedy, kv)
		if err != nil {
			return err
		}
		return writeJSON(s.Out, result)
	})
}

// TokenizeCommand tokenizes a text with the tokenizer of a model file.
type TokenizeCommand struct {
	Model string `arg:"" type:"existingfile" help:"A GGUF file."`
	File  string `help:"Read the text from this file instead of standard input." placeholder:"F"`
}

// Run prints {"ids":[…]}, special tokens parsed.
func (c *TokenizeCommand) Run(s Streams) (err error) {
	text := s.In
	if c.File != "" {
		if text, err = os.Open(c.File); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, text.Close()) }()
	}
	return withModelFile(c.Model, func(f *gguf.File) error {
		t, err := compute.ReadTokenizer(f)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Model, err)
		}
		b, err := io.ReadAll(text)
		if err != nil {
			return fmt.Errorf("read the text: %w", err)
		}
		ids := t.EncodeSpecial([]int32{}, string(b))
		return writeJSON(s.Out, struct {
			IDs []int32 `json:"ids"`
		}{ids})
	})
}

func writeJSON(out io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = out.Write(append(b, '\n'))
	return err
}

// withModel opens a model file for the length of one call.
func withModel(path string, do func(*compute.Model) error) error {
	return withParts(path, func(parts []gguf.Part) error {
		m, err := compute.OpenModel(parts...)
		if err != nil {
			return err
		}
		return do(m)
	})
}

// withModelFile is withModel for files without weights, such as a bare vocabulary.
func withModelFile(path string, do func(*gguf.File) error) error {
	return withParts(path, func(parts []gguf.Part) error {
		f, err := gguf.Open(parts...)
		if err != nil {
			return err
		}
		return do(f)
	})
}

func withParts(path string, do func([]gguf.Part) error) (err error) {
	parts, files, err := gguf.OpenFiles(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	return do(parts)
}
