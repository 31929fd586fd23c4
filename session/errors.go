package session

import "errors"

var (
	// ErrSubscriptionClosed: Close was called on the subscription.
	ErrSubscriptionClosed = errors.New("subscription closed")
	// ErrBusClosed: the room has ended and every event was delivered.
	ErrBusClosed = errors.New("the room has ended")
	// ErrClosed: the room is leaving or gone, it takes no commands.
	ErrClosed = errors.New("the room is closed")
	// ErrNotHost: only the host can do this.
	ErrNotHost = errors.New("only the host can do that")
	// ErrNoChat: a device that only lends its GPU doesn't ask.
	ErrNoChat = errors.New("this device lends its GPU and has no chat")
	// ErrEmptyAsk: a question without text.
	ErrEmptyAsk = errors.New("the question is empty")
	// ErrLongAsk: a question longer than the room takes.
	ErrLongAsk = errors.New("the question is too long")
	// ErrAnswering: an answer is running.
	ErrAnswering = errors.New("an answer is running")
	// ErrNothingRunning: there is no answer of this device's to stop.
	ErrNothingRunning = errors.New("no answer is running")
	// ErrNotOnline: the layers are not all loaded.
	ErrNotOnline = errors.New("the room is not online yet")
	// ErrDegraded: a device of the deal left.
	ErrDegraded = errors.New("a device left the room, deal the layers again first")
	// ErrStarted: the layers are dealt already.
	ErrStarted = errors.New("the layers are dealt already, re-deal instead")
	// ErrNotStarted: nothing was dealt yet.
	ErrNotStarted = errors.New("nothing is dealt yet, start first")
	// ErrNotOpen: the room has no place on a signaling server yet.
	ErrNotOpen = errors.New("the room is not open yet")
	// ErrNoModelYet: the model's numbers are not known yet.
	ErrNoModelYet = errors.New("the model is still being opened")
)
