package headless

import (
	"fmt"
	"io"

	"pooled/catalog"
	"pooled/session"
	"pooled/session/usage"
)

// Header prints what a run without a screen begins with (seed 000): the room, the GPU, what is lent and why, who can
// see what, how to leave. How others get in comes in lines.
func Header(w io.Writer, st *session.State, lines ...string) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	p("pooled %s · room %s", verb(st.Role), st.Code)
	gpu := st.Device.GPU
	if st.Device.Software {
		gpu += " (software: slow)"
	}
	p("  GPU      %s · %s", gpu, st.Device.Backend)
	p("  lending  %s  (%s)", catalog.FormatBytes(st.Device.PledgeBytes), st.Device.PledgeWhy)
	for _, l := range lines {
		if l != "" {
			p("  %s", l)
		}
	}
	for _, l := range usage.Trust(st.Role) {
		p("  %s", l)
	}
	if st.Role == session.Host {
		p("  Ctrl-C closes the room")
	} else {
		p("  Ctrl-C leaves the room and frees the GPU")
	}
}

func verb(r session.Role) string {
	if r == session.Host {
		return "host"
	}
	return "join"
}

// Problem prints an error for a person: what and why on one line, what to do on the next.
func Problem(w io.Writer, prog string, p *session.Problem) {
	_, _ = fmt.Fprintf(w, "%s: %s\n", prog, p.Error())
	if p.Do != "" {
		_, _ = fmt.Fprintf(w, "  %s\n", p.Do)
	}
}
