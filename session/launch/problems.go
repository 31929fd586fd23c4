package launch

import (
	"errors"
	"fmt"
	"strings"

	"pooled/compute/op"
	"pooled/netmesh"
	"pooled/netmesh/invite"
	"pooled/netmesh/signal"
	"pooled/session"
)

// usageProblem is a mistake on the command line.
func usageProblem(code string, err error, do string) *session.Problem {
	return &session.Problem{Code: code, What: err.Error(), Do: do, Exit: session.ExitUsage, Err: err}
}

// gpuProblem says why the GPU can't be used (spec cli.md 10).
func gpuProblem(err error) *session.Problem {
	p := &session.Problem{Code: "no-gpu", Why: err.Error(), Exit: session.ExitNoGPU, Err: err}
	switch {
	case errors.Is(err, op.ErrKernel):
		p.Code, p.What = "kernel", "this GPU's driver can't build one of the kernels"
		p.Do = "update the GPU driver; pooled chat works without a GPU"
	case errors.Is(err, op.ErrNoAdapter):
		p.What = "no GPU that can be used was found on this computer"
		p.Do = "it needs Vulkan (Linux: the driver of the GPU, or Mesa's), Metal (macOS) or Direct3D 12 (Windows); " +
			"pooled chat works without a GPU"
	default:
		p.What = "the GPU can't be opened"
		p.Do = "close other programs that use it, or update its driver"
	}
	return p
}

// meshProblem says why the signaling server did not take this device.
func meshProblem(err error, s Spec, servers []signal.Server) *session.Problem {
	var p *session.Problem
	if errors.As(err, &p) {
		return p
	}
	switch {
	case errors.Is(err, netmesh.ErrIDTaken):
		shown := invite.Code(s.Code).Shown()
		return &session.Problem{
			Code: "code-taken", What: fmt.Sprintf("room code %s is taken", shown),
			Why: "another host holds it on " + labels(servers),
			Do:  "pick another with --code, or leave --code out for a random one", Exit: session.ExitFailed, Err: err,
		}
	case errors.Is(err, netmesh.ErrSignalDown):
		why := err.Error()
		var down *signal.DownError
		if errors.As(err, &down) {
			why = down.Error() // which servers were tried, and what became of each
		}
		return &session.Problem{
			Code: "signal-down", What: "the signaling server can't be reached", Why: why,
			Do:   "start one on this computer with 'pooled signal', or name another with --signal",
			Exit: session.ExitFailed, Err: err,
		}
	}
	return session.AsProblem(err)
}

func labels(servers []signal.Server) string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Label()
	}
	return strings.Join(names, ", ")
}
