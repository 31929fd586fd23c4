package op

import "context"

// L2Floor is the least norm that Delta divides queries and keys by (spec engine.md 3.5 step 4).
const L2Floor = 1e-6

// MaxSlot is the highest number of a slot (spec room.md 5.8).
const MaxSlot = 65534

// RecurrentSpec are the sizes of one DeltaNet layer's state (spec engine.md 3.5).
type RecurrentSpec struct {
	Channels int // of the convolution: queries, keys and values
	Taps     int // of the convolution; Taps-1 inputs are remembered
	Heads    int // value heads
	Dim      int // values of a head
}

// Window is the number of float32 values of the convolution's window.
func (r RecurrentSpec) Window() int { return r.Channels * (r.Taps - 1) }

// State is the number of float32 values of all heads' matrices.
func (r RecurrentSpec) State() int { return r.Heads * r.Dim * r.Dim }

// Bytes is what a checkpoint of the state takes.
func (r RecurrentSpec) Bytes() int64 { return 4 * int64(r.Window()+r.State()) }

// UndoBytes is what Frame.Spec takes beside the state (spec engine.md 4.2, replay): the state as it was before the run,
// and for each column the convolution's input and output, alpha and beta. It is allocated with the state.
func (r RecurrentSpec) UndoBytes() int64 {
	return r.Bytes() + 4*MaxCols*int64(2*r.Channels+2*r.Heads)
}

// Recurrent is the state of one DeltaNet layer: the convolution's last inputs and a matrix per head, all float32. After
// a run that failed it holds nothing of use until Control resets or loads it.
type Recurrent interface {
	Spec() RecurrentSpec
	Bytes() int64 // device memory it takes
	Close()
}

// Control is what happens to a Memory between two runs. The order is fixed: rollback, save, drop, reset, load (spec
// room.md 1.8): a rollback and a save belong to the answer that just ended, only then is the state replaced.
type Control struct {
	Rollback int   // c+1: as if the columns after c of the last run, which had Frame.Spec, had never run; 0: nothing
	Save     int   // copy everything into this slot, replacing what is there; 0: nothing
	Pos      int   // positions in use: rows of the KV caches that Save copies
	Drop     []int // slots to forget; one that is not there is no error
	DropAll  bool
	Reset    bool // zero the recurrent states; KV caches need nothing
	Load     int  // copy a slot back; 0: nothing
}

// Memory is the KV caches and recurrent states of a shard, with numbered slots that hold copies of them on the device.
type Memory interface {
	// Apply does what c says. It is not run in part: a slot that is not there (ErrSlot), a number out of range, a
	// rollback to a column that the last run did not keep (ErrUndo) are found first. A failed allocation leaves the
	// slot empty.
	Apply(ctx context.Context, c Control) error
	Slots() []int // ascending
	Bytes() int64 // of the slots
	Close()
}
