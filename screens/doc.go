// Package screens is the console: one full-screen page for each role, over a room seen through a session.View.
//
// A [Screen] is built once, gets the newest state and the events since the last time (Apply), and has one list of
// bindings (Keys) that draws the key line, fills the help page and dispatches keys, so the three can't differ. What it
// shows is made by pure functions from *session.State to plain widget models (rows.go, answers.go).
//
// Goroutines. [Run] owns the application. The event loop runs in the caller's goroutine; one pump goroutine collects
// the room's events for at most 50 ms and posts one update. The pump is the only one that queues updates, and it ends
// before the application is stopped, so an update can't wait for a loop that is gone. Code inside the event loop changes
// primitives directly and never queues. A panic in either is caught, the terminal is restored, and Run panics with it
// in its caller's goroutine; other goroutines defer [RestoreOnPanic].
//
// Frames. At most 20 a second reach the terminal, whatever the room or the keyboard do; the newest state wins.
//
// Layouts. From 100x26 cells panes stand side by side, from 72x20 stacked, from 60x16 one at a time under a line of
// tabs; below that one sentence names the minimum. Lines are at most columns-1 cells long outside of borders.
//
// Copying. Text reaches the terminal's clipboard (OSC 52) only when the person presses the key for it.
package screens
