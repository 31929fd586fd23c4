package session

// Commands is what screens and scripts can ask of a running room. Every method returns at once; outcomes arrive as
// events. An error means the command can't be right now (empty question, not the host, nothing running).
type Commands interface {
	// Ask puts a question to the room's model. The conversation is the room's (host) or this client's own (asker).
	Ask(text string) error
	// Stop ends the running answer after the lap in flight. Only the asker's own answers, or any for the host.
	Stop() error
	// Clear forgets the conversation.
	Clear() error
	// SetThinking switches whether the model thinks before it answers, from the next question on.
	SetThinking(on bool) error
	// Start deals the layers over the devices in the room and loads them (host).
	Start() error
	// Redeal deals again over the devices now in the room (host).
	Redeal() error
	// Close leaves the room. The host closes it for everyone.
	Close() error
}

// View is what a screen needs of a room: its state, its events and its commands.
type View interface {
	Commands
	// Snapshot returns the current state. It includes exactly the events up to State.Seq.
	Snapshot() *State
	// Subscribe starts a subscription that sees every event after the returned snapshot. name is for debugging.
	Subscribe(name string) (*Subscription, *State)
}
