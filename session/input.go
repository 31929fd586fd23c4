package session

import (
	"time"

	"pooled/compute/token"
	"pooled/netmesh/wire"
)

// input is one thing the loop handles, with the time it was taken up.
type input struct {
	at  time.Time
	msg any // begin, netmesh.Event, command, result, progress, alarm, unsent, flooded
}

// command is something a person or script asked for. answer gets nil or the error, at once.
type command struct {
	do     verb
	text   string
	on     bool
	answer chan error
}

type verb uint8

const (
	verbAsk verb = iota
	verbStop
	verbClear
	verbThinking
	verbStart
	verbRedeal
	verbClose
)

// result ends an engine job.
type result struct {
	id   uint64
	took time.Duration
	out  any
	err  error
}

// progress of the load with this job id, in percent.
type progress struct {
	id      uint64
	percent int
}

// alarm says that the timer of this name went off.
type alarm struct{ name string }

// unsent says that a frame could not be handed to the network.
type unsent struct {
	peer PeerID
	err  error
}

// flooded says that a peer sent more than is kept for it; its input was thrown away.
type flooded struct{ peer PeerID }

// begin is the first input.
type begin struct{ self PeerID }

// effect is something the executor is to do.
type effect interface{ effect() }

type (
	send struct {
		to  PeerID
		msg map[string]any
	}
	sendFrame struct {
		to    PeerID
		frame *wire.Frame
	}
	dial struct{ peer PeerID }
	hang struct {
		peer PeerID
		why  string
	}
	// start queues an engine job; its result comes back under id.
	start struct {
		id uint64
		do work
	}
	// abort cancels the job with this id, waiting or running. Its result still comes.
	abort struct{ id uint64 }
	// timer sets the timer of this name; 0 stops it.
	timer struct {
		name string
		d    time.Duration
	}
	// silence sets how long a peer may be silent (spec room.md 7.1).
	silence struct {
		peer  PeerID
		limit time.Duration
	}
	// busy says whether layers are loading here.
	busy struct{ on bool }
	// end stops the loop.
	end struct{}
)

func (send) effect()      {}
func (sendFrame) effect() {}
func (dial) effect()      {}
func (hang) effect()      {}
func (start) effect()     {}
func (abort) effect()     {}
func (timer) effect()     {}
func (silence) effect()   {}
func (busy) effect()      {}
func (end) effect()       {}

// work is an engine job. The types below are data; job.go runs them.
type work interface{ work() }

type (
	// modelWork opens a model's header. Out: ModelInfo.
	modelWork struct{ key string }
	// loadWork loads layers. Out: loaded.
	loadWork struct{ spec LoadSpec }
	// freeWork releases the layers.
	freeWork struct{}
	// renderWork turns a conversation into tokens. Out: rendered.
	renderWork struct {
		text text
		chat token.Chat
		most int  // tokens
		trim bool // drop the oldest exchanges until it fits
	}
	// embedWork runs tokens through the host's part. Out: []byte, f16 columns.
	embedWork struct {
		pos    int
		tokens []int32
	}
	// soloWork is embedWork on a host that holds every layer, and with draw set, the next token. Out: drawn.
	soloWork struct {
		pos    int
		tokens []int32
		draw   *draw
	}
	// stepWork takes the hidden state of the last position to the next token, and that one through the host's part
	// when run is set. Out: drawn.
	stepWork struct {
		data []byte // f16, columns of width values; the last one counts
		n    int
		pos  int // of the next token
		run  bool
		draw draw
	}
	// hiddenWork runs columns through a worker's layers. Out: []byte, f16 columns.
	hiddenWork struct {
		pos, n int
		data   []byte
	}
)

func (modelWork) work()  {}
func (loadWork) work()   {}
func (freeWork) work()   {}
func (renderWork) work() {}
func (embedWork) work()  {}
func (soloWork) work()   {}
func (stepWork) work()   {}
func (hiddenWork) work() {}

// text is the model's words.
type text struct {
	tok     *token.Tokenizer
	profile token.Profile
}

// draw says how the next token is picked: temp 0 or less is greedy; r is uniform in [0, 1).
type draw struct {
	text text
	temp float64
	k    int
	r    float64
}

type (
	// loaded is what a load tells the room.
	loaded struct {
		info ModelInfo
		text text
		used int64
	}
	// rendered is a prompt. ids is nil when it is longer than allowed even after trimming.
	rendered struct {
		ids     []int32
		n       int // tokens, also when too many
		dropped int // turns left out at the front
	}
	// drawn is the next token.
	drawn struct {
		token int32
		drew  bool   // false: nothing was to be drawn
		stop  bool   // the token ends the turn
		next  []byte // f16 hidden state of token after the host's part, nil when it wasn't run
	}
)
