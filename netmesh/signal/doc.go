// Package signal introduces peers to each other: a client for PeerServer-compatible signaling servers, and such a server.
//
//	client                         server
//	  | GET {path}{key}/id           |   only when no id is wanted
//	  | WebSocket {path}peerjs       |
//	  |<------------------ OPEN -----|   registered
//	  |-- HEARTBEAT every 5 s ------>|   90 s without one: dropped
//	  |-- OFFER dst ---------------->|-- OFFER src --> other client
//	  |<------ EXPIRE src -----------|   nobody came as that id within 5 s
//
// Messages are JSON text, one object {type, src, dst, payload} each (spec wire.md 2.2, 3.1). The sender is what the server
// says; nothing here proves who a peer is.
//
// # Client
//
// [Open] tries a list of servers in order and returns once one of them registered the id. [Client.Run] then owns
// everything: it reads, beats, and when the socket drops it comes back with the same id and token after 2, 4, 8, 16, 30,
// 30 … seconds (spec wire.md 2.3). After a whole round of attempts that no server answered it goes on down the list, so a
// later [Up] may name another server; a server that answers anything, even with a refusal ([Refused]), is kept.
// [Client.Advance] moves on to the next server at once, for a joiner whose room is not here. [Client.Send] never
// waits: it queues for the writer, or fails while the socket is down. [Up], [Down] and [Message] are delivered one at a
// time, each message after the Up of its socket and before its Down.
//
// # Server
//
// [Hub] is the server as an http.Handler; [Listener] adds a TCP socket. Everything a client can send is bounded: the
// number of clients, in all and of one address, the size and rate of messages, the ids, and what waits for ids that are not
// there. A hub also hands out passwords for its owner's relays ([Relays]) and knows its figures ([Stats]).
package signal
