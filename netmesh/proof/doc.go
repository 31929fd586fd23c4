// Package proof computes what two ends of a link prove to each other with: the binding of a link (both ends' DTLS
// fingerprints), commitments, proofs that an invite key or a pass is known, the six digits that people compare, and the
// proofs between devices of one room (spec wire.md 6.1 to 6.5). It does no I/O and keeps nothing.
//
// A secret never crosses a link. What crosses is an HMAC over everything that tells this link from any other: its role, the
// fingerprints, the two ids, and a nonce of either end. So a proof is worth nothing on another link, for another
// peer, a second time, or sent back to who made it.
//
// Texts are UTF-8. Digests and MACs are lower-case hex. The key of an HMAC is the text of the secret, not the bytes that it
// encodes. Lines of what is hashed are joined by one line feed, without a last one.
package proof
