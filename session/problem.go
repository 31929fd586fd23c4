package session

import "errors"

// Problem is an error for a person: what happened, why, what to do next, a sentence each without a trailing period,
// and a stable code for scripts. Exit is the process's exit code (style.md 2.7).
type Problem struct {
	Code string `json:"code"`
	What string `json:"what"`
	Why  string `json:"why,omitempty"`
	Do   string `json:"do,omitempty"`
	Exit int    `json:"-"`
	Err  error  `json:"-"`
}

// Exit codes of the program (style.md 2.7).
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNoGPU       = 3
	ExitNoRoom      = 4 // not found or closed
	ExitNotLetIn    = 5
	ExitInterrupted = 130
)

// Error returns what and why on one line.
func (p *Problem) Error() string {
	if p.Why == "" {
		return p.What
	}
	return p.What + ": " + p.Why
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// AsProblem finds the Problem in err, or wraps err in one with code "failed".
func AsProblem(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	return &Problem{Code: "failed", What: err.Error(), Exit: ExitFailed, Err: err}
}
