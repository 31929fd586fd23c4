package screens

import "sync"

// live is what has to be undone when the program dies while a screen is up.
var live struct {
	sync.Mutex
	undo func()
}

func setLive(undo func()) {
	live.Lock()
	defer live.Unlock()
	live.undo = undo
}

// Restore gives the terminal and the standard streams back if a screen is up. It may be called from any goroutine, more
// than once.
func Restore() {
	live.Lock()
	undo := live.undo
	live.undo = nil
	live.Unlock()
	if undo != nil {
		undo()
	}
}

// RestoreOnPanic is to be deferred first in a goroutine of this program: when the goroutine panics, the terminal is
// restored before the panic goes on, so that its trace is readable and the shell usable.
func RestoreOnPanic() {
	if p := recover(); p != nil {
		Restore()
		panic(p) //nolint:forbidigo // the same panic, once the terminal is back
	}
}
