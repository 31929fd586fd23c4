package session

import "time"

// Options is everything a role can be told before it starts, from flags or from a screen: there is no other path.
type Options struct {
	Role     Role
	Code     string // six (or four) characters without a dash; drawn by the host when empty
	Name     string // shown to the room
	ModelKey string // host: which model

	PledgeBytes int64 // how much this computer lends
	PledgeWhy   string

	Ctx        int  // tokens; 0 for the model's default
	StartWith  int  // host: start by itself once this many devices (this one included) are in and it fits; 0 never
	AutoStart  bool // host: start by itself as soon as the pledges hold the model
	WaitModel  time.Duration
	MaxTokens  int     // asker: most tokens of one answer
	System     string  // asker: system prompt
	Think      bool    // start with thinking on
	Temp       float64 // asker: sampling temperature; negative: the room's
	TopK       int     // host: candidates, 1..64
	HostTemp   float64 // host: the room's temperature, 0 greedy
	Seed       uint64  // host: seed of the room's sampler; 0 draws one
	SplitEvery bool    // host: deal over every device by what it lends ("spread"), else the host first ("speed")
}
