package launch

import (
	"fmt"

	"pooled/session"
)

// MeshFlags say who this device is and where rooms are found. The tags of all flag groups are the command line's grammar.
type MeshFlags struct {
	Name   string `help:"How the room shows this device (default: a name is made)." placeholder:"NAME"`
	Signal string `help:"Signaling server(s), a comma list tried in order (default: ${default})." default:"${signal}" placeholder:"SPEC"`
}

// LendFlags say what this device lends and where its models are.
type LendFlags struct {
	GB     string `name:"gb" help:"How much memory to lend: GB from 1 to 64, or max (default: half of the GPU's largest buffer)." placeholder:"N|max"`
	Models string `help:"Where models are kept (default: ~/.pooled/models; also POOLED_MODELS)." placeholder:"DIR"`
}

// LogFlags choose what a run without a screen prints.
type LogFlags struct {
	JSONLog bool `name:"json-log" help:"One JSON object per event, and no screen." xor:"log"`
	Quiet   bool `help:"Only errors and the status line, and no screen." xor:"log"`
	Verbose bool `help:"Also the GPU driver's own messages." env:"POOLED_VERBOSE"`
}

// HostFlags are the flags of host.
type HostFlags struct {
	Model    string `arg:"" optional:"" help:"The model, or a part of its name (default: qwen3-1.7b when it is here, else mini)."`
	ModelOpt string `name:"model" help:"The same as an option; 'list' prints the models." placeholder:"MODEL"`
	Code     string `help:"The room code to use (default: a random one)." placeholder:"CODE"`
	Ctx      int    `help:"The context to ask for, in tokens, at least 256 (default: the model's)." placeholder:"N"`
	Start    bool   `help:"Start as soon as the pledges hold the model, as it does without a screen."`
	Wait     int    `help:"Start once N devices, this one included, are in and the model fits." aliases:"devices" placeholder:"N"`
	Split    string `help:"speed: this computer first, others as far as they are needed; spread: across all by what each lends (default: ${default})." default:"speed" placeholder:"speed|spread" enum:"speed,spread"`
	Chat     bool   `help:"Open the chat once the room is online."`
	MeshFlags
	LendFlags
	LogFlags
}

// JoinFlags are the flags of join.
type JoinFlags struct {
	Room string `arg:"" help:"The room's code, or its invite link in quotes."`
	MeshFlags
	LendFlags
	LogFlags
}

// ChatFlags are the flags of chat.
type ChatFlags struct {
	Room        string   `arg:"" help:"The room's code, or its invite link in quotes."`
	Prompt      []string `arg:"" optional:"" help:"A question: asked once, the answer is printed."`
	System      string   `help:"A system prompt for the conversation." placeholder:"TEXT"`
	Think       bool     `help:"Let the model think before it answers."`
	MaxTokens   int      `help:"The most tokens of one answer (default: ${default})." default:"8192" placeholder:"N"`
	Temperature float64  `help:"Sampling temperature, 0 to 2 (default: the room's)." default:"-1" placeholder:"X"`
	Wait        float64  `help:"With a question: how many seconds to wait for the room's model, 0 for ever (default: ${default})." default:"120" placeholder:"S"`
	NoColor     bool     `help:"No colour."`
	MeshFlags
}

// Usage is a mistake on the command line.
func Usage(format string, args ...any) error {
	return usageProblem("usage", fmt.Errorf(format, args...), "")
}

// Spec turns the flags into what a host needs. Without a screen the room starts by itself.
func (f *HostFlags) Spec(screen bool) (Spec, error) {
	switch {
	case f.Model != "" && f.ModelOpt != "" && f.Model != f.ModelOpt:
		return Spec{}, Usage("one model, not both %q and --model %q", f.Model, f.ModelOpt)
	case f.Wait < 0 || f.Wait > 64:
		return Spec{}, Usage("--wait takes a number of devices from 1 to 64: got %d", f.Wait)
	case f.Ctx != 0 && f.Ctx < 256:
		return Spec{}, Usage("--ctx takes a number of tokens of at least 256: got %d", f.Ctx)
	}
	gb, err := ParseGB(f.GB)
	if err != nil {
		return Spec{}, err
	}
	model := f.Model
	if model == "" {
		model = f.ModelOpt
	}
	return Spec{
		Options: session.Options{
			Role: session.Host, Code: f.Code, Name: f.Name, Ctx: f.Ctx, StartWith: f.Wait,
			AutoStart: f.Start || !screen && f.Wait == 0, SplitEvery: f.Split == "spread", TopK: 1,
		},
		Model: model, Signal: f.Signal, Models: f.Models, GB: gb,
	}, nil
}

// Spec turns the flags into what a joining device needs.
func (f *JoinFlags) Spec() (Spec, error) {
	gb, err := ParseGB(f.GB)
	return Spec{
		Options: session.Options{Role: session.Worker, Name: f.Name},
		Room:    f.Room, Signal: f.Signal, Models: f.Models, GB: gb,
	}, err
}

// Spec turns the flags into what a client that only asks needs.
func (f *ChatFlags) Spec() (Spec, error) {
	switch {
	case f.MaxTokens < 1 || f.MaxTokens > 65536:
		return Spec{}, Usage("--max-tokens takes a number from 1 to 65536: got %d", f.MaxTokens)
	case f.Temperature != -1 && !(f.Temperature >= 0 && f.Temperature <= 2):
		return Spec{}, Usage("--temperature takes a number from 0 to 2: got %g", f.Temperature)
	case !(f.Wait >= 0):
		return Spec{}, Usage("--wait takes a number of seconds: got %g", f.Wait)
	}
	return Spec{
		Options: session.Options{
			Role: session.Asker, Name: f.Name, System: f.System, Think: f.Think, MaxTokens: f.MaxTokens, Temp: f.Temperature,
		},
		Room: f.Room, Signal: f.Signal,
	}, nil
}
