package usage

import (
	"fmt"
	"strings"

	"pooled/netmesh/invite"
)

// Phases of a Status. Those that session.Phase has too are spelled the same.
const (
	Connecting = "connecting"
	Lobby      = "lobby" // the host was asked
	Waiting    = "waiting"
	Loading    = "loading"
	Loaded     = "loaded"
	Guest      = "guest"
	Online     = "online"
	Degraded   = "degraded"
	HostGone   = "hostgone"
	Rejoining  = "rejoining"
	Leaving    = "leaving"
	Closed     = "closed"
)

// Status is what the status line tells. Zero means unknown, and the part is left out.
type Status struct {
	Code       string // with or without its dash
	Phase      string
	Host       bool // this device is the host
	Answering  bool // online, and at work
	LoadPct    int  // 0..100 while loading
	Try        int  // of rejoining, from 1
	Devices    int
	Lo, Hi     int    // layers held here, [Lo, Hi)
	Head       bool   // holds the embedding and the head too
	Unneeded   bool   // has no layers because the others hold all of them
	Small      bool   // has no layers because it lends too little
	Model      string // key
	PerSec     float64
	AtDoor     int // devices waiting to join (host)
	Passes     int
	SignalDown bool
}

// StatusLine is the line (spec cli.md 6.4): room, phase, devices, layers, speed, who waits, passes, signaling, as far
// as each is known. Passes are always there. It is not cut: see CutCells.
func StatusLine(s Status) string {
	parts := make([]string, 0, 8)
	add := func(text string) {
		if text != "" {
			parts = append(parts, text)
		}
	}
	if s.Code != "" {
		add("room " + invite.Code(s.Code).Shown())
	}
	add(PhaseText(s))
	if s.Devices > 0 {
		add(count(s.Devices, "device"))
	}
	add(holds(s))
	add(TokPerSec(s.PerSec))
	if s.Host && s.AtDoor > 0 {
		add(fmt.Sprintf("%d waiting to join", s.AtDoor))
	}
	if s.Passes == 1 {
		add("1 pass")
	} else {
		add(fmt.Sprintf("%d passes", s.Passes))
	}
	if s.SignalDown {
		add("signaling down (links still up)")
	}
	return strings.Join(parts, " · ")
}

// PhaseText is the phase in words. An unknown phase is its own text.
func PhaseText(s Status) string {
	switch s.Phase {
	case Lobby:
		return "waiting for the host to let you in"
	case Waiting:
		if s.Host {
			return "waiting for devices"
		}
		return "waiting for the host to deal layers"
	case Loading:
		return fmt.Sprintf("loading layers %d%%", s.LoadPct)
	case Loaded:
		return "layers loaded: waiting for the rest of the room"
	case Guest:
		return "in the room without layers (" + GuestText(s.Unneeded, s.Small) + ")"
	case Online:
		if s.Answering {
			return "answering"
		}
	case Degraded:
		return "a device left: waiting for it"
	case HostGone:
		return "lost the host: knocking"
	case Rejoining:
		return fmt.Sprintf("rejoining (try %d)", s.Try)
	}
	return s.Phase
}

// GuestText says why a device in the room has no layers, and what would change that.
func GuestText(unneeded, small bool) string {
	switch {
	case unneeded:
		return "the others hold all of them"
	case small:
		return "it lends too little for one: see --gb"
	}
	return "the host re-deals to include this device"
}

// holds is what part of which model is here: "layers 0-8 + embed/head of qwen3-1.7b".
func holds(s Status) string {
	var have []string
	if s.Hi > s.Lo {
		have = append(have, fmt.Sprintf("layers %d-%d", s.Lo, s.Hi-1))
	}
	if s.Head {
		have = append(have, "embed/head")
	}
	text := strings.Join(have, " + ")
	switch {
	case text == "":
		return s.Model
	case s.Model == "":
		return text
	}
	return text + " of " + s.Model
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Passes counts the passes of a device over engines that each start at 0. The zero value is ready.
type Passes struct {
	before int // of the engines that are gone
	engine int // of this one
}

// Observe takes the engine's own count and returns the device's. A count that falls means that the engine is new.
func (p *Passes) Observe(engine int) int {
	if engine < p.engine {
		p.before += p.engine
	}
	p.engine = engine
	return p.before + engine
}
