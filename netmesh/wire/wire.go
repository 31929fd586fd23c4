// Package wire carries hidden states between two peers: frames cut into slices, sent over one or several negotiated
// data channels, put together and handed over in the order they were sent (spec wire.md 4). It is pure: no I/O, no
// goroutines, no clock. Time comes in as an argument and goes out as "wake me then".
//
// # Slice
//
// A slice is a header of 32 bytes, integers big-endian, and up to 4568 bytes of payload; small enough that an SCTP
// stack sends it in one go. The header, but for the index, is the same on every slice of a frame.
//
//	 0  2  magic 0x5357              16  2  slice count
//	 2  1  kind                      18  2  zero
//	 3  1  flags                     20  4  payload bytes of the whole frame
//	 4  4  frame id, from 1          24  2  save to slot, 0 none
//	 8  4  position                  26  2  load from slot, 0 none
//	12  2  columns                   28  2  drop slot, 0 none, 0xffff all
//	14  2  slice index              30  2  drop second slot, 0 none
//
// flags: bit 0 spec, bit 1 reset, bits 2..7 the column to roll back to plus 1, 0 for none. The payload is float16 bit
// patterns, little-endian: Data is passed on as it is.
//
// # Sending
//
// A Sender numbers frames and chooses, for every slice, the open channel with the least queued; equal channels take
// turns. Frames of up to three slices go out twice, on two channels, when there is more than one.
//
// # Receiving
//
// A Receiver belongs to one link and one direction, and to one goroutine. Frames come out in the order of their ids,
// each at most once. A frame that is missing holds back those behind it until it comes, or until it is given up:
//
//   - at once, when every open channel has shown a later id: channels are ordered, so nothing of it can still come;
//   - after 5 s, when a channel closed in the last 15 s or some channel of the link is unordered;
//   - after 60 s otherwise.
//
// What comes of it later is dropped, never run late.
//
// # Trust
//
// A slice is ignored unless its length is exactly what its header says. What a peer can make this end hold is bounded
// by Limits: bytes of one frame, number and bytes of frames unfinished or waiting.
package wire

import "time"

// Channels of every association that carries frames (spec wire.md 4.1).
const (
	ChannelID        = 77 // negotiated, ordered, reliable: slices
	ChannelLabel     = "swarm-wire"
	KeepAliveID      = 78 // negotiated, unordered, no retransmits: KeepAliveByte
	KeepAliveLabel   = "swarm-ka"
	KeepAliveByte    = 0x00
	DefaultStripes   = 4 // associations of a link, itself included
	DefaultCopyLimit = 3 // frames of up to this many slices are sent twice
)

// Sizes in bytes.
const (
	HeaderBytes  = 32
	PayloadBytes = 4568
	SliceBytes   = HeaderBytes + PayloadBytes

	maxSlices = 65535
	// MaxFrameBytes is the most payload a frame's slice count can express.
	MaxFrameBytes = maxSlices * PayloadBytes
)

// Times of the gap rules and of partial frames (spec wire.md 4.5).
const (
	gapShort    = 5 * time.Second
	gapLong     = 60 * time.Second
	closeWindow = 15 * time.Second
	partialAge  = 30 * time.Second
	partialMany = 64
)
