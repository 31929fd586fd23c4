// Package relay knows the relays (TURN servers) through which peers reach each other when no direct path exists: how they
// are written, how their passwords are made, and how they are asked for.
//
//	--turn turn:relay.example:3478        ValidURL
//	the owner of a coturn, its secret     Mint: a user name with an expiry, and the password that belongs to it
//	POST https://…/api/turn               Fetch: relays with passwords for some hours
//
// A relay carries what two peers send each other, still encrypted between them. It sees how much, when, and from which
// addresses. Formats: spec wire.md 8.
package relay
