// Package netmesh links this process to other peers by WebRTC: introductions through a signaling server, one data
// connection per peer that an unmodified PeerJS understands, control messages, and hidden-state frames on a channel of
// their own (spec wire.md 3, 4, 7, 10).
//
//	Mesh ── signal.Client                    introductions only
//	  └── link (one per peer) ── RTCPeerConnection
//	        ├── control   in-band, PeerJS's own channel: BinaryPack messages, chunked when long
//	        ├── 77        negotiated, ordered: frames, cut into slices (package wire)
//	        └── 78        negotiated, lossy: keep-alive bytes while frames flow
//
// # Ownership and goroutines
//
// [Mesh.Run] owns everything. One goroutine, the loop, owns the set of links and negotiates; callbacks of the WebRTC
// library only post to it. An open link adds three readers and one flusher, which end with the link. Run returns when all
// of them have ended.
//
// # Delivery
//
// Events are delivered one at a time, from several goroutines, in the order given at [Event]; a frame or message is
// delivered by the goroutine that read it, without another hand-over. Deliver should only queue what it gets: it may call
// Send, SendFrame, Dial and Hang, but not Close, and while it waits every link waits. What it gets belongs to it. A link
// whose peer dials again is replaced: LinkDown of the old one, then LinkUp of the new one. After Close was called, or
// Run's context ended, nothing more is delivered.
//
// # Sending
//
// Send and SendFrame never wait and are safe from any goroutine. Messages of one link arrive in the order sent, frames
// too; the two are not ordered against each other. The end of the control channel is the end of the
// link; without the wire channel frames go as messages. What the network does not take yet is kept, up to 32 MiB for each
// channel of a link; beyond that the link is closed, with a reason.
//
// # Liveness
//
// Every link is pinged every 2.5 s. A link from which nothing came for 15 s (see [Mesh.SetSilence]) is closed, but never
// while [Mesh.SetLoading] says that this end is busy. A connection the library reports as failed, about 15 s after a peer
// vanished, is closed too.
//
// # Limits
//
// A peer can send messages of up to 256 pieces of 16,300 bytes, 8 unfinished at a time, and frames up to the limit of
// [Mesh.SetFrameLimit]. What can't be read is ignored; a peer that sends much of it is hung up on. At most 64 links, 32 of
// them not open yet and 2 of those from one peer. Nothing here proves who a peer is.
package netmesh
