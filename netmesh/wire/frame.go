package wire

// Kind is the sort of a frame (spec wire.md 4.3).
type Kind uint8

// Kinds of frame. The names in comments are those of the control-channel fallback.
const (
	Hidden     Kind = 0 // ai-hidden: one column, worker to worker
	HiddenB    Kind = 1 // ai-hidden-b: N columns, prompt or verify
	HiddenRet  Kind = 2 // ai-hiddenret: one column, last worker to host
	HiddenRetB Kind = 3 // ai-hiddenret-b
)

// Frame is hidden states with the control that rides on them. Zero values mean "absent".
type Frame struct {
	Kind     Kind
	Pos      uint32 // pos, or basePos of a batch
	N        int    // columns, at least 1
	Spec     bool
	Reset    bool
	Rollback int    // column to roll back to plus 1; 0 none (rb 0..62)
	Save     uint16 // checkpoint slot to save to, 0 none
	Load     uint16
	Drop     []uint16 // at most two slots, or exactly DropAll
	Data     []byte   // f16 bit patterns, little-endian, N times the model's width
}

// DropAll in Frame.Drop drops every slot.
const DropAll = 0xFFFF
