package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"pooled/compute"
	"pooled/compute/gguf"
	"pooled/compute/golden"
	"pooled/compute/op"
)

// EvalSpec is what Eval runs.
type EvalSpec struct {
	Model  string // path of a GGUF file
	Prompt []int32
	Greedy int
	Ref    bool // on the processor instead of the GPU
	KV     op.KVType
}

// Eval runs a prompt through a model file and writes one JSON object in the form of the golden files to out.
func Eval(ctx context.Context, s EvalSpec, out io.Writer) (err error) {
	return withModel(s.Model, func(m *compute.Model) (err error) {
		dev := compute.OpenRef()
		if !s.Ref {
			if dev, err = compute.OpenGPU(ctx, compute.GPUOptions{}); err != nil {
				return gpuProblem(err)
			}
		}
		defer func() { err = errors.Join(err, dev.Close()) }()
		result, err := golden.Eval(ctx, dev, m, s.Prompt, s.Greedy, s.KV)
		if err != nil {
			return err
		}
		return writeJSON(out, result)
	})
}

// Tokenize writes {"ids":[…]} for a text, special tokens parsed, with the tokenizer of a model file.
func Tokenize(model string, text io.Reader, out io.Writer) error {
	return withModelFile(model, func(f *gguf.File) error {
		t, err := compute.ReadTokenizer(f)
		if err != nil {
			return fmt.Errorf("%s: %w", model, err)
		}
		b, err := io.ReadAll(text)
		if err != nil {
			return fmt.Errorf("read the text: %w", err)
		}
		ids := t.EncodeSpecial([]int32{}, string(b))
		return writeJSON(out, struct {
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
	return withPart(path, func(part gguf.Part) error {
		m, err := compute.OpenModel(part)
		if err != nil {
			return err
		}
		return do(m)
	})
}

// withModelFile is withModel for files without weights, such as a bare vocabulary.
func withModelFile(path string, do func(*gguf.File) error) error {
	return withPart(path, func(part gguf.Part) error {
		f, err := gguf.Open(part)
		if err != nil {
			return err
		}
		return do(f)
	})
}

func withPart(path string, do func(gguf.Part) error) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return do(gguf.Part{Name: filepath.Base(path), R: f, Size: info.Size()})
}
