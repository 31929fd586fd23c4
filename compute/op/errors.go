package op

import "errors"

var (
	// ErrNoAdapter: no GPU that the graphics API can use was found.
	ErrNoAdapter = errors.New("no GPU adapter")
	// ErrLost: the device went away (driver reset, unplugged); nothing on it can be used any more.
	ErrLost = errors.New("the GPU device was lost")
	// ErrMemory: the device refused an allocation.
	ErrMemory = errors.New("out of GPU memory")
	// ErrNotFinite: a result holds NaN or an infinity. The text goes to peers, who look for "NaN" (spec room.md 1.8).
	ErrNotFinite = errors.New("NaN or infinity in a result")
	// ErrKernel: a shader could not be built on this device.
	ErrKernel = errors.New("a GPU kernel can't be built")
	// ErrFormat: a weight format without a kernel on this backend.
	ErrFormat = errors.New("weight format not supported")
	// ErrSlot: a checkpoint that is not there.
	ErrSlot = errors.New("no such checkpoint")
	// ErrUndo: columns that were not kept for an undo.
	ErrUndo = errors.New("nothing kept to undo")
	// ErrArgument: a call that can't be right, for the program or the device it was made on.
	ErrArgument = errors.New("wrong argument")
)
