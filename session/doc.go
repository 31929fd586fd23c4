// Package session is the room: who is in it, who holds which layers, and the answers that come out.
//
// # Words
//
//   - room: the devices that run one model together, found by a six-character code.
//   - host: the device that opened the room. It holds the embedding, the output head, the first layers and the
//     conversation.
//   - peer: any other member. A worker lends a GPU, an asker (API client) only asks; a worker without layers is a guest.
//   - link: one connection between two peers. Control messages and frames each keep their order on it.
//   - pledge: how much memory a device lends, in bytes here and in GB of 2^30 on the wire.
//   - deal: who holds which layers, [lo, hi) from 0. Each deal has an epoch, counting from 1. Package deal decides.
//   - chain: the workers of a deal in layer order, which is the byte order of their peer ids.
//   - lap: one pass of a hidden state from the host around the chain and back.
//   - hop: one link crossed on a lap.
//   - ask, answer: a question to the room's model, and what comes back.
//
// # One goroutine owns the room
//
//	Commands, network events ─┐
//	engine results, progress ─┼─► inbox ─► handle ─► effects ─► network, engine, timers
//	timers ───────────────────┘               └────► events ─► bus ─► subscribers
//
// The room loop takes one input after the other. Handling is a reducer (core and its three roles): it gets the time
// with the input and touches no clock, no network and no GPU; what it wants done comes out as values (effects) that a
// thin executor performs, before the events of the same input are published. State belongs to the loop; readers get
// immutable snapshots that include exactly the events up to State.Seq.
//
// Engine calls run on one goroutine, one at a time, in the order asked; rendering a prompt to tokens runs there too.
// Between a frame's arrival and the next frame's departure there are only the engine's calls and the two hand-overs
// between the loop and that goroutine.
//
// # Delivery
//
// Events have one total order, Seq counting from 1 without gaps. Every subscriber sees every event after its snapshot,
// in order, but of load.progress (per peer), lap and link.rtt (per peer) perhaps only the newest. At most QueueCap
// events wait for one subscriber; past that all that wait are lost to it and it gets one Lagged, to answer with
// Subscription.Resync. Publishing never waits for anyone. After every answer.started there is exactly one answer.done
// with its id, also when the room closes. room.closed is the last event.
//
// # Input that isn't trusted
//
// What peers send is checked in one place: a table (rules) says for every message type which roles take it, from whom,
// and how it is read into a typed struct with a limit on every field. Unknown types and messages from the wrong sender
// are ignored. Text for screens loses control characters there. A peer whose unhandled input passes 2048 items or
// 32 MiB is hung up on. A link that says no hello for 10 s is hung up on.
//
// Units: bytes, unless a name says GB (2^30); durations are time.Duration inside and seconds or milliseconds in
// events, as named; positions and contexts in tokens.
package session
