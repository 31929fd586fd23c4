package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"pooled/catalog"
	"pooled/compute"
	"pooled/compute/bench"
	"pooled/compute/gguf"
	"pooled/compute/op"
	"pooled/compute/shape"
	"pooled/compute/token"
	"pooled/session"
)

// BenchCommand measures how fast this computer runs a model.
type BenchCommand struct {
	Model string `arg:"" optional:"" help:"A GGUF file, or a model of 'pooled list' that is here."`
	Shape string `help:"Instead: random weights in the shape of a model, made while they load." placeholder:"NAME"`

	Prompt []int   `help:"Read prompts of these lengths (default: 512,2048; 64 on a software adapter)." placeholder:"N,N"`
	Gen    int     `help:"Decode N tokens; 0 leaves it out (default: 128; 16 on a software adapter)." default:"-1" placeholder:"N"`
	Depth  []int   `help:"Decode behind so many positions (default: ${default})." default:"0" placeholder:"N,N"`
	Spec   string  `help:"Decode with proposals too: off, lookup, draft or all (default: ${default})." default:"all" enum:"off,lookup,draft,all" placeholder:"KIND"`
	Reps   int     `help:"Runs that count, after one that does not (default: ${default})." default:"3" placeholder:"N"`
	Warm   float64 `help:"Seconds of runs that don't count, for clocks that rise slowly (default: 1; 0 on a software adapter)." default:"-1" placeholder:"S"`
	Ctx    int     `help:"Positions of the caches (default: as many as are needed)." placeholder:"N"`
	KV     string  `name:"kv" help:"How keys and values are stored: f16 or f32 (default: ${default})." default:"f16" enum:"f16,f32" placeholder:"KIND"`
	Chunk  int     `help:"Prompt tokens per call of the engine (default: all in one)." placeholder:"N"`

	Layers  int    `help:"With --shape: only so many layers." placeholder:"N"`
	Write   string `help:"With --shape: write the model to this file, and measure nothing." placeholder:"FILE"`
	Backend string `help:"gpu, or ref: plain Go, slow (default: ${default})." default:"gpu" enum:"gpu,ref" placeholder:"KIND"`
	Models  string `help:"Where models are kept (default: ~/.pooled/models; also POOLED_MODELS)." placeholder:"DIR"`
	JSON    bool   `name:"json" help:"Print one JSON object (docs/bench.md)."`
}

// What is measured when nothing is said, on a GPU and on a processor that pretends to be one.
var (
	benchPrompts, softPrompts = []int{512, 2048}, []int{64}
	benchGen, softGen         = 128, 16
)

// benchWarm is how long runs on a GPU go on before they count.
const benchWarm = time.Second

// benchQuestion is what a real model continues: as long as a short question, and with a long answer.
const benchQuestion = "Plan a week of hiking for two friends who like lakes and quiet villages. Give each day a title, a distance and " +
	"a place to sleep, and end with a list of what to pack."

// Measure does what the flags say and returns how to print what came out. Progress goes to stderr when that is a terminal.
func (c *BenchCommand) Measure(ctx context.Context, stderr *os.File) (report func(io.Writer) error, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	line := newProgress(stderr)
	defer line.end()
	run := func(m *compute.Model) (err error) {
		report, err = c.measure(ctx, line, m)
		return err
	}
	if c.Shape == "" {
		err = c.onFiles(run)
		return report, err
	}
	f, err := c.shape()
	if err != nil {
		return nil, err
	}
	if c.Write != "" {
		return c.write(ctx, line, f)
	}
	m, err := compute.OpenModel(f.Part())
	if err != nil {
		return nil, err
	}
	err = run(m)
	return report, err
}

// check finds what can't be meant.
func (c *BenchCommand) check() error {
	switch {
	case c.Model == "" && c.Shape == "":
		return Usage("a model is needed: a GGUF file, a name of 'pooled list', or --shape with one of %s", strings.Join(shape.Names(), ", "))
	case c.Model != "" && c.Shape != "":
		return Usage("one model, not both %q and --shape %q", c.Model, c.Shape)
	case c.Shape == "" && (c.Layers != 0 || c.Write != ""):
		return Usage("--layers and --write need --shape")
	case c.Layers < 0:
		return Usage("--layers takes a number from 1 on: got %d", c.Layers)
	case c.Gen < -1:
		return Usage("--gen takes a number of tokens: got %d", c.Gen)
	case c.Warm != -1 && !(c.Warm >= 0 && c.Warm <= 3600):
		return Usage("--warm takes a number of seconds up to 3600: got %g", c.Warm)
	case c.Ctx < 0 || c.Chunk < 0 || c.Reps < 1:
		return Usage("--ctx, --chunk and --reps take numbers from 1 on")
	}
	return nil
}

// onFiles opens a model of the catalogue or a file.
func (c *BenchCommand) onFiles(do func(*compute.Model) error) (err error) {
	if _, missing := os.Stat(c.Model); missing == nil || strings.HasSuffix(c.Model, ".gguf") || strings.ContainsRune(c.Model, os.PathSeparator) {
		return withModel(c.Model, do)
	}
	store, err := catalog.OpenStore(c.Models)
	if err != nil {
		return err
	}
	entry, err := findModel(store, c.Model)
	if err != nil {
		return err
	}
	var parts []gguf.Part
	var files io.Closer
	if parts, files, err = open(store, entry.Key); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	m, err := compute.OpenModel(parts...)
	if err != nil {
		return err
	}
	return do(m)
}

func (c *BenchCommand) shape() (*shape.File, error) {
	s, err := shape.Find(c.Shape)
	if err == nil && c.Layers > 0 {
		s, err = s.Scaled(c.Layers)
	}
	if err != nil {
		return nil, usageProblem("shape", err, "")
	}
	return s.Open()
}

func (c *BenchCommand) write(ctx context.Context, line *progress, f *shape.File) (func(io.Writer) error, error) {
	err := f.Save(ctx, c.Write, func(done, total int64) { line.percent("write", done, total) })
	if errors.Is(err, shape.ErrSpace) {
		return nil, &session.Problem{
			Code: "disk", What: "the model does not fit on the disk", Why: err.Error(),
			Do: "write it elsewhere, or fewer layers with --layers", Exit: session.ExitFailed, Err: err,
		}
	}
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: %s, %s\n", c.Write, f.Shape().Name, catalog.FormatBytes(f.Size()))
		return err
	}, nil
}

// measure opens the device and measures.
func (c *BenchCommand) measure(ctx context.Context, line *progress, m *compute.Model) (report func(io.Writer) error, err error) {
	dev := compute.OpenRef()
	if c.Backend == "gpu" {
		if dev, err = compute.OpenGPU(ctx, compute.GPUOptions{}); err != nil {
			return nil, gpuProblem(err)
		}
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	o, err := c.options(m, dev.Info())
	if err != nil {
		return nil, err
	}
	o.Note = line.say
	o.Loaded = func(done, total int64) { line.percent("load", done, total) }
	r, err := bench.Run(ctx, dev, m, o)
	if err != nil {
		return nil, benchProblem(err, dev.Info())
	}
	return func(w io.Writer) error {
		if c.JSON {
			return writeJSON(w, r)
		}
		return printBench(w, r)
	}, nil
}

func (c *BenchCommand) options(m *compute.Model, info op.Info) (bench.Options, error) {
	o := bench.Options{
		Prompts: c.Prompt, Gen: c.Gen, Depths: c.Depth, Reps: c.Reps, Ctx: c.Ctx, Spec: bench.Spec(c.Spec), Chunk: c.Chunk,
	}
	soft := info.Software || c.Backend == "ref"
	if soft {
		o.Most = freeRAM() // a device that takes what it likes would end other programs
	}
	switch {
	case c.Warm >= 0:
		o.Warm = time.Duration(c.Warm * float64(time.Second))
	case !soft:
		o.Warm = benchWarm
	}
	if o.Prompts == nil {
		o.Prompts = benchPrompts
		if soft {
			o.Prompts = softPrompts
		}
	}
	if o.Gen < 0 {
		o.Gen = benchGen
		if soft {
			o.Gen = softGen
		}
	}
	if c.KV == "f32" {
		o.KV = op.KVF32
	}
	if c.Shape != "" {
		return o, nil
	}
	t, err := m.Tokenizer()
	if err != nil {
		return o, err
	}
	p, err := m.Profile()
	if err != nil {
		return o, err
	}
	o.Text, err = t.Segments(nil, p.Render(token.Chat{Turns: []token.Turn{{Role: "user", Text: benchQuestion}}}))
	return o, err
}

// benchProblem says what went wrong in a person's words.
func benchProblem(err error, info op.Info) error {
	var memory *bench.MemoryError
	switch {
	case errors.Is(err, bench.ErrOptions):
		return usageProblem("bench", err, "pooled bench --help lists the options")
	case errors.As(err, &memory):
		return &session.Problem{
			Code: "memory", What: "the model does not fit into the memory of " + info.Name,
			Why: fmt.Sprintf("it takes %s with these options, %s are there: %v",
				catalog.FormatBytes(memory.Need), catalog.FormatBytes(memory.Given), memory.Err),
			Do: "take a smaller model, a shorter context (--ctx, --prompt, --depth), or fewer layers of a --shape", Exit: session.ExitFailed, Err: err,
		}
	case errors.Is(err, bench.ErrDiffer):
		return &session.Problem{
			Code: "differ", What: "the runs picked different tokens, so their times mean nothing", Why: err.Error(),
			Do: "report it, with the model and the GPU's name and driver", Exit: session.ExitFailed, Err: err,
		}
	}
	return err
}
