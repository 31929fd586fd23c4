// Package gate decides who comes into a room (spec wire.md 6.3 to 6.6): what a host answers to a device that knocks, and what a
// device makes of being let in. It does no I/O, starts nothing and waits for nothing; who calls it sends the messages, holds the
// links and keeps the time limits.
//
//	host                                      device
//	g.First(hello)   Challenge                j.Hello          hello {jc, kc, pid}
//	                 auth {hn}             →
//	g.Proved(proof)                        ←  j.Proof(hn)      auth-proof {jn, kp, pp}
//	                 Admit {pass, via, hp}  →  j.Admitted       OK, Trust or Bad
//	                 or Ask: lobby, then g.Allow or g.Deny
//
// Whoever proves the invite key or a pass is in, before anything else is asked. Raw keys and passes, which devices from
// before the proofs send, are never read: such a device waits for the person's word like one that typed the code.
package gate
